#!/usr/bin/env bash
# Runs a command in an empty folder of its own, which is removed unless the command fails.
set -uo pipefail
scratch=$(mktemp -d "${TMPDIR:-/tmp}/motley-test.XXXXXX") || exit 1
cd "$scratch" || exit 1
"$@"
rc=$?
if [ $rc -eq 0 ] || [ $rc -eq 77 ]; then
  rm -rf "$scratch"
else
  echo "what the test left is in $scratch" >&2
fi
exit $rc
