#!/usr/bin/env bash
# Installs what is missing of the Debian packages motley needs, as root or through sudo.
#
#   jobscripts/install_packages.sh build        to compile and run it
#   jobscripts/install_packages.sh suite        the same and what its test suite needs
#   jobscripts/install_packages.sh quickstart   to compile it, and the text jobscripts/quickstart.sh trains on
set -euo pipefail

build=(ca-certificates ccache cmake curl g++ libcli11-dev libdeflate-dev libdnnl-dev libfmt-dev libgtest-dev
  libhdf5-openmpi-dev libopenmpi-dev libpcre2-dev libspdlog-dev libssl-dev libtomlplusplus-dev libxxhash-dev libzstd-dev ninja-build
  nlohmann-json3-dev ocl-icd-opencl-dev openmpi-bin patch pkg-config python3-pip zlib1g-dev)
suite=("${build[@]}" clang-format git hdf5-tools python3-h5py python3-numpy python3-torch)
quickstart=("${build[@]}" dict-gcide)

is_installed() { [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "install_packages: packages are missing and only root may install them (there is no sudo here);" \
      "run as root: apt-get install ${missing[*]}" >&2
    exit 69
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -q "$@" >&2
}

case ${1:-} in
  build) wanted=("${build[@]}") ;;
  suite) wanted=("${suite[@]}") ;;
  quickstart) wanted=("${quickstart[@]}") ;;
  *)
    sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 64
    ;;
esac

if ! command -v apt-get >/dev/null; then
  echo "install_packages: this is not Debian; install what README.md lists by other means" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
# clang-tidy 22 skips system headers: four times faster than the 14 that "clang-tidy" means on Debian 12.
needs_tidy=false
if [ "$1" = suite ] && ! is_installed clang-tidy-22; then needs_tidy=true; fi
if [ ${#missing[@]} = 0 ] && [ $needs_tidy = false ]; then exit 0; fi

apt update || echo "install_packages: the package lists could not be renewed, trying with the old ones" >&2
if [ $needs_tidy = true ]; then
  if apt-cache show clang-tidy-22 >/dev/null 2>&1; then
    missing+=(clang-tidy-22)
  elif ! is_installed clang-tidy; then
    missing+=(clang-tidy)
  fi
fi
if [ ${#missing[@]} = 0 ]; then exit 0; fi
echo "install_packages: installing ${missing[*]}" >&2
apt install --yes --no-install-recommends "${missing[@]}" || {
  echo "install_packages: installing ${missing[*]} did not succeed (see above);" \
    "check the network and /etc/apt/sources.list, then run this again" >&2
  exit 69
}
