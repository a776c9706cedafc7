# The number of threads changes speed only: the losses of 1 and 2 threads agree within rounding, the same number
# twice gives the same bits.
set -euo pipefail
source "$MOTLEY_SOURCE_DIR/tests/app/small_run.sh"
make_data
make_run run
for threads in 1 2; do
  for time in a b; do
    expect_code 0 "$MOTLEY" train run.toml run.dir=$threads$time run.threads=$threads
  done
  diff <(losses ${threads}a) <(losses ${threads}b) || fail "$threads threads: two runs differ"
  diff <(tensors ${threads}a) <(tensors ${threads}b) || fail "$threads threads: the tensors of two runs differ"
done
paste <(losses 1a) <(losses 2a) | awk '
  { d = $2 - $4; if (d < 0) d = -d; if (d > 1e-5 * $2) { print "step", $1, ":", $2, "and", $4; bad = 1 } ++n }
  END { exit bad || n != 20 }' || fail "1 and 2 threads give other losses"
