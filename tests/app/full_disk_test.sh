# A disk that is full: training goes on, says so, tries again, and at the end exits 73 with the old checkpoint intact.
set -euo pipefail
source "$MOTLEY_SOURCE_DIR/tests/app/small_run.sh"
mkdir disk
if ! mount -t tmpfs -o size=6m motley-test disk 2>/dev/null; then
  echo "SKIPPED: a small file system cannot be mounted here (it takes root)"
  exit 77
fi
trap 'umount disk' EXIT
make_data
make_run disk/run

expect_code 75 "$MOTLEY" train run.toml train.exit_at_step=2
saved=$(tensors disk/run)
# Room for log lines is left, none for a checkpoint of half a megabyte.
fallocate -l $(($(df --output=avail -k disk | tail -n 1) - 200))K disk/filler
expect_code 73 "$MOTLEY" train run.toml checkpoint.interval=3
expect_text "Training goes on"
expect_text "step 20/20"
[ "$(tensors disk/run)" = "$saved" ] || fail "the old checkpoint changed"
expect_code 0 "$MOTLEY" checkpoint verify disk/run
[ -z "$(find disk/run -name '*.tmp')" ] || fail "something half-written was left"
rm disk/filler
expect_code 0 "$MOTLEY" train run.toml checkpoint.interval=3
expect_text "is durable"
