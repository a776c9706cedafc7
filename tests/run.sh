#!/usr/bin/env bash
# Builds motley and runs its test suite, installing what is missing; ends with "N passed, N failed, N skipped".
#
#   tests/run.sh [options]
#     -p, --part PART     run this part alone (may be given again): lint, cpu-debug, cpu, cuda; default: all
#     -R, --tests REGEX   run only tests whose name matches, such as '^comm\.'
#     -L, --label LABEL   run only tests with this label: unit, mpi, gpu, perf, e2e, lint
#     -j, --jobs N        run N compilers and tests at a time; default: one per core
#     -n, --no-install    install nothing
#     -h, --help          this text
#
# Parts, in this order: lint (format, includes, headers alone, clang-tidy), cpu-debug (contracts, AddressSanitizer and
# UndefinedBehaviorSanitizer), cpu (Release, warnings are errors), cuda (the kernels compile, where there is nvcc).
# Tests labelled perf measure speed and run only when asked for with -L perf.
# Environment: MOTLEY_REQUIRE, a list such as torch,cuda, names what must not be skipped; MOTLEY_ARCH as for CMake.
# Exits with 0 if all passed, 1 if something failed, was skipped though required, or no test ran.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
source tests/require.sh

all_parts=(lint cpu-debug cpu cuda)
parts=()
select=()
label=
jobs=$(nproc)
install=true
passed=0
failed=0
skipped=0

usage_error() {
  echo "run.sh: $1; see tests/run.sh --help" >&2
  exit 64
}

parse_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      -p | --part | -R | --tests | -L | --label | -j | --jobs)
        [ $# -ge 2 ] || usage_error "'$1' needs a value"
        ;;&
      -p | --part)
        [[ " ${all_parts[*]} " == *" $2 "* ]] || usage_error "there is no part '$2' (there are ${all_parts[*]})"
        parts+=("$2")
        shift
        ;;
      -R | --tests) select+=(--tests-regex "$2"); shift ;;
      -L | --label) label=$2; select+=(--label-regex "^$2\$"); shift ;;
      -j | --jobs) jobs=$2; shift ;;
      -n | --no-install) install=false ;;
      -h | --help)
        sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
      *) usage_error "unknown option '$1'" ;;
    esac
    shift
  done
  [ ${#parts[@]} -gt 0 ] || parts=("${all_parts[@]}")
}

has_part() { [[ " ${parts[*]} " == *" $1 "* ]]; }

headline() { printf '\n=== %s (%d min %02d s) ===\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

# Counts one step that is no CTest test.
count() { # passed|failed|skipped NAME
  printf '%s: %s\n' "$1" "$2"
  declare -g "$1=$((${!1} + 1))"
}

# Says the sum and ends the run.
finish() {
  printf '\n%d min %02d s\n' $((SECONDS / 60)) $((SECONDS % 60))
  [ $((passed + failed)) -gt 0 ] || echo "no test ran"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ $failed = 0 ] && [ $passed -gt 0 ]
  exit
}

# Configures a preset; anew when the folder was configured for another CPU or compiler.
configure() {
  local preset=$1 backend=openmp fresh=() log=build/$1.configure.log
  [ "$preset" != cuda ] || backend=cuda
  if [ -e "build/$preset/cpu.stamp" ] &&
    [ "$(cat "build/$preset/cpu.stamp")" != "$(jobscripts/bootstrap.sh --key $backend)" ]; then
    echo "build/$preset was made for another CPU or compiler, configuring it anew"
    fresh=(--fresh)
  fi
  mkdir -p build
  cmake --preset "$preset" "${fresh[@]}" ${MOTLEY_ARCH:+-DMOTLEY_ARCH=$MOTLEY_ARCH} >"$log" 2>&1 || {
    cat "$log"
    return 1
  }
}

build() {
  cmake --build "build/$1" --parallel "$jobs" >"build/$1.build.log" 2>&1 || {
    grep -v '^\[[0-9/]*\] [A-Z]' "build/$1.build.log" | tail -n 200
    return 1
  }
}

# Kokkos, configuration and build of a preset; a failure of any is one failed step.
prepare() { # PRESET openmp|cuda [configure-only]
  local step
  for step in kokkos configure build; do
    [ "$step" != build ] || [ "${3:-}" != configure-only ] || break
    case $step in
      kokkos) [ "$2" = openmp ] && jobscripts/bootstrap.sh --installed || jobscripts/bootstrap.sh "$2" >/dev/null ;;
      configure) configure "$1" ;;
      build) build "$1" ;;
    esac || {
      count failed "$step $1"
      return 1
    }
  done
}

# One number of the report CTest writes: tests, failures, disabled or skipped.
reported() { # REPORT NAME
  sed -n "s/^[[:space:]]*$2=\"\([0-9]*\)\".*/\1/p" "$1" | head -n 1
}

# Runs tests of a build and adds what CTest counted.
run_ctest() { # PRESET CTEST-OPTION...
  local preset=$1 report=$root/build/$1.junit.xml rc=0
  shift
  rm -f "$report"
  ctest --test-dir "build/$preset" --parallel "$jobs" --output-on-failure --no-tests=ignore \
    --output-junit "$report" "$@" "${select[@]}" || rc=$?
  if [ ! -e "$report" ]; then
    [ $rc = 0 ] || count failed "ctest in build/$preset"
    return
  fi
  local failures unrun
  failures=$(reported "$report" failures)
  unrun=$(($(reported "$report" disabled) + $(reported "$report" skipped)))
  passed=$((passed + $(reported "$report" tests) - failures - unrun))
  failed=$((failed + failures))
  skipped=$((skipped + unrun))
  if [ $rc != 0 ] && [ "$failures" = 0 ]; then count failed "ctest in build/$preset (exit code $rc)"; fi
}

run_lint() {
  headline "lint"
  prepare cpu openmp configure-only && run_ctest cpu --label-regex '^lint$'
}

run_debug() {
  headline "cpu-debug: contracts and sanitizers"
  prepare cpu-debug openmp && run_ctest cpu-debug --label-regex '^(unit|mpi)$' --label-exclude '^(perf|e2e)$'
}

run_release() {
  local exclude='^(lint|perf|cluster)$'
  [ "$label" != perf ] || exclude='^(lint|cluster)$'
  headline "cpu: Release"
  prepare cpu openmp && run_ctest cpu --label-exclude "$exclude"
}

run_cuda() {
  headline "cuda: compile only"
  if ! command -v nvcc >/dev/null; then
    (require_or_skip cuda "there is no nvcc on the PATH")
    if [ $? = 77 ]; then count skipped "the kernels compile for CUDA"; else count failed "the kernels compile for CUDA"; fi
    return
  fi
  prepare cuda cuda && count passed "the kernels compile for CUDA"
}

main() {
  parse_options "$@"
  if [ $install = true ] && ! jobscripts/install_packages.sh suite; then
    count failed "installing packages"
    finish
  fi
  if has_part lint; then run_lint; fi
  if has_part cpu-debug; then run_debug; fi
  if has_part cpu; then run_release; fi
  # A choice of tests by name or label chooses none here: this part is one step without a name.
  if has_part cuda && [ ${#select[@]} = 0 ]; then run_cuda; fi
  finish
}

main "$@"
