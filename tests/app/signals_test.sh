# Signals: USR1 saves and goes on; USR2, TERM and INT save and exit 75; the run then goes on to its end.
set -euo pipefail
source "$MOTLEY_SOURCE_DIR/tests/app/small_run.sh"
make_data
make_run run

# start: trains in the background until its third step is logged.
start() {
  "$MOTLEY" train run.toml train.train_iters=100000 eval.interval=0 run.dir="$1" >out.txt 2>&1 &
  trainer=$!
  trap 'kill -9 $trainer 2>/dev/null || true' EXIT
  for _ in $(seq 600); do
    grep -q "^step" out.txt && return 0
    kill -0 $trainer 2>/dev/null || break
    sleep 0.1
  done
  cat out.txt >&2
  fail "training did not start"
}

finish() {
  local code=0
  wait $trainer || code=$?
  [ $code = 75 ] || {
    cat out.txt >&2
    fail "exit code $code after $1"
  }
  grep -q "signal ${1#SIG}" out.txt || fail "the log does not name the signal $1"
  grep -q '"code": *75' run-"$1"/last_exit.json || fail "last_exit.json does not say 75"
}

for signal in USR2 TERM INT; do
  start run-$signal
  if [ $signal = USR2 ]; then
    kill -USR1 $trainer
    for _ in $(seq 100); do
      grep -q "is durable" out.txt && break
      sleep 0.1
    done
    grep -q "is durable" out.txt || fail "USR1 wrote no checkpoint"
    kill -0 $trainer || fail "USR1 ended the run"
  fi
  kill -$signal $trainer
  finish $signal
  "$MOTLEY" checkpoint verify run-$signal || fail "the checkpoint after $signal is damaged"
done
