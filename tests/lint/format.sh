#!/usr/bin/env bash
# Checks the format of all C++ files of a tree: tests/lint/format.sh ROOT
# Other versions than 14, that of Debian 12, break lines elsewhere.
set -euo pipefail
cd "$1"
formatter=clang-format
if command -v clang-format-14 >/dev/null; then formatter=clang-format-14; fi
if ! "$formatter" --version | grep -q ' version 14\.'; then
  echo "lint: $formatter is not of version 14 (versions differ in their results); install clang-format-14" >&2
  exit 1
fi
find kernels comm io model app tests -name '*.[hc]pp' -o -name '*.cu' -o -name '*.cuh' | sort |
  xargs --no-run-if-empty "$formatter" --dry-run -Werror
