#!/usr/bin/env bash
# Builds Kokkos once into the user's cache, for the CPU or for NVIDIA GPUs.
#
#   jobscripts/bootstrap.sh [openmp|cuda]           build it unless it is there, print its folder
#   jobscripts/bootstrap.sh --where [openmp|cuda]   print the folder, build nothing
#   jobscripts/bootstrap.sh --key [openmp|cuda]     print the key of compiler and CPU alone
#   jobscripts/bootstrap.sh --installed             succeed if CMake finds an installed Kokkos instead
#
# The folder is ${XDG_CACHE_HOME:-~/.cache}/motley/kokkos-<version>-<backend>-<key>. The key covers the
# compiler and every instruction set it may use, so one home directory serves unlike machines.
# Environment: MOTLEY_ARCH (default native), MOTLEY_CUDA_ARCH (default 90, Hopper), CXX (default g++).
set -euo pipefail

version=4.7.00
archive_url="https://github.com/kokkos/kokkos/releases/download/$version/kokkos-$version.tar.gz"
archive_sha256=126b774a24dde8c1085c4aede7564c0b7492d6a07d85380f2b387a712cea1ff5
# This Python source package carries the same tree in tpls/kokkos; the registry is often reachable where the site is not.
sdist=pygenten-0.1.5
sdist_sha256=e620f05c742905e2db705d875f1cac92ef0ed453f9e6734e9beda26cc0f9cce7

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
arch=${MOTLEY_ARCH:-native}
cuda_arch=${MOTLEY_CUDA_ARCH:-90}
cxx=${CXX:-g++}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/motley

die() {
  echo "bootstrap: $*" >&2
  exit 69
}

say() { echo "bootstrap: $*" >&2; }

# What the compiler makes of the target on this CPU: its predefined macros name every instruction set.
build_key() {
  {
    "$cxx" "-march=$arch" -x c++ -dM -E - </dev/null | sort
    if [ "$1" = cuda ]; then
      echo "cuda $cuda_arch"
      nvcc --version | tail -n 1
    fi
  } | sha256sum | cut -c 1-12
}

key_of() {
  command -v "$cxx" >/dev/null || die "there is no compiler '$cxx'; install g++ or set CXX"
  if [ "$1" = cuda ]; then
    command -v nvcc >/dev/null || die "there is no nvcc on the PATH, which Kokkos for CUDA needs; install the CUDA toolkit"
  fi
  local key
  key=$(build_key "$1" 2>/dev/null) || die "'$cxx' does not know the target '$arch'; set MOTLEY_ARCH to one it knows"
  echo "$key"
}

verified() {
  echo "$2  $1" | sha256sum --check --status || die "$1 is damaged or not what it says (its SHA-256 differs); try again"
}

# Leaves the Kokkos source tree in $1/kokkos.
fetch_source() {
  local dir=$1
  if curl --fail --silent --show-error --location --connect-timeout 5 --max-time 120 \
    --output "$dir/kokkos.tar.gz" "$archive_url" 2>"$dir/curl.log"; then
    verified "$dir/kokkos.tar.gz" "$archive_sha256"
    tar -C "$dir" -xzf "$dir/kokkos.tar.gz"
    mv "$dir/kokkos-$version" "$dir/kokkos"
    return
  fi
  say "the release archive of Kokkos cannot be reached, taking the Python source package $sdist"
  local python=/usr/bin/python3
  "$python" -m pip --version >/dev/null 2>&1 || python=python3
  "$python" -m pip download --quiet --no-deps --no-binary pygenten --dest "$dir" "${sdist/-/==}" >&2 ||
    die "neither $archive_url nor $sdist can be downloaded; connect this machine, or install Kokkos 4.7 or newer and set CMAKE_PREFIX_PATH"
  verified "$dir/$sdist.tar.gz" "$sdist_sha256"
  tar -C "$dir" -xzf "$dir/$sdist.tar.gz" "$sdist/tpls/kokkos"
  mv "$dir/$sdist/tpls/kokkos" "$dir/kokkos"
}

# Builds the tree $1/kokkos for backend $2 and leaves an install tree in $1/install.
build() {
  local dir=$1 backend=$2
  local options=(-DKokkos_ENABLE_OPENMP=ON -DKokkos_ENABLE_SERIAL=ON -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_STANDARD=20 -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_LIBDIR=lib
    "-DCMAKE_CXX_FLAGS=-march=$arch" "-DCMAKE_INSTALL_PREFIX=$3")
  if [ "$backend" = cuda ]; then
    patch --quiet -d "$dir/kokkos" -p 1 <"$here/kokkos-$version-cuda-13.patch"
    options+=(-DKokkos_ENABLE_CUDA=ON "$(cuda_arch_option)" "-DCMAKE_CXX_COMPILER=$dir/kokkos/bin/nvcc_wrapper")
    export NVCC_WRAPPER_DEFAULT_COMPILER=$cxx
  else
    options+=("-DCMAKE_CXX_COMPILER=$cxx")
  fi
  cmake -S "$dir/kokkos" -B "$dir/build" "${options[@]}" >"$dir/log" 2>&1 &&
    cmake --build "$dir/build" --parallel "$(nproc)" >>"$dir/log" 2>&1 &&
    DESTDIR="$dir/install" cmake --install "$dir/build" >>"$dir/log" 2>&1 || {
    tail -n 30 "$dir/log" >&2
    die "Kokkos did not build (see above)"
  }
}

cuda_arch_option() {
  case $cuda_arch in
    80) echo -DKokkos_ARCH_AMPERE80=ON ;;
    86) echo -DKokkos_ARCH_AMPERE86=ON ;;
    89) echo -DKokkos_ARCH_ADA89=ON ;;
    90) echo -DKokkos_ARCH_HOPPER90=ON ;;
    100) echo -DKokkos_ARCH_BLACKWELL100=ON ;;
    120) echo -DKokkos_ARCH_BLACKWELL120=ON ;;
    *) die "MOTLEY_CUDA_ARCH is '$cuda_arch'; set it to one of 80, 86, 89, 90, 100, 120" ;;
  esac
}

# True if CMake finds a Kokkos with OpenMP of at least 4.7 outside our cache (CMAKE_PREFIX_PATH or the system).
installed() {
  local dir
  dir=$(mktemp -d)
  cat >"$dir/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(find_kokkos LANGUAGES CXX)
find_package(Kokkos 4.7 CONFIG REQUIRED)
if(NOT "OPENMP" IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "without OpenMP")
endif()
CMAKE
  local rc=0
  cmake -S "$dir" -B "$dir/build" >/dev/null 2>&1 || rc=1
  rm -rf "$dir"
  return $rc
}

main() {
  local mode=build
  case ${1:-} in
    --where | --key | --installed) mode=${1#--}; shift ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  esac
  local backend=${1:-openmp}
  case $backend in
    openmp | cuda) ;;
    *) echo "bootstrap: unknown backend '$backend'; it is openmp or cuda" >&2; exit 64 ;;
  esac
  if [ "$mode" = installed ]; then installed; exit; fi

  local key prefix
  key=$(key_of "$backend")
  if [ "$mode" = key ]; then echo "$key"; exit; fi
  prefix=$cache/kokkos-$version-$backend-$key
  if [ "$mode" = build ] && [ ! -e "$prefix" ]; then
    mkdir -p "$cache"
    exec 9>"$prefix.lock"
    flock 9 # a second bootstrap waits here, then finds the folder
    if [ ! -e "$prefix" ]; then
      local started=$SECONDS
      dir=$(mktemp -d "$prefix.XXXXXX") # global: the trap outlives this function
      trap 'rm -rf "$dir"' EXIT
      say "building Kokkos $version ($backend, $arch) into $prefix"
      fetch_source "$dir"
      build "$dir" "$backend" "$prefix"
      mv "$dir/install$prefix" "$prefix" # the rename makes it appear whole or not at all
      say "done in $((SECONDS - started)) s"
    fi
  fi
  echo "$prefix"
}

main "$@"
exit
