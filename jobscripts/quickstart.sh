#!/usr/bin/env bash
# From nothing to a trained model on this machine: installs what is missing, builds motley, makes a tokenizer and a
# data set of real text, trains a small GPT for a few minutes, stops it half-way by a signal, resumes it, samples it.
#
#   jobscripts/quickstart.sh [text file ...]
#
# Default text: the dictionary of Debian's package dict-gcide. A second run reuses whatever is there already.
# Environment: MOTLEY_QUICKSTART_STEPS (default 160), MOTLEY_QUICKSTART_DIR (default runs/quickstart).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
steps=${MOTLEY_QUICKSTART_STEPS:-160}
trap 'if [ -n "${trainer:-}" ]; then kill "$trainer" 2>/dev/null || true; fi' EXIT

say() { printf '\n== %s\n' "$*"; }
die() {
  echo "quickstart: $*" >&2
  exit 1
}

case ${1:-} in
  -h | --help)
    sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac

texts=()
for text in "$@"; do
  [ -s "$text" ] || die "text file '$text' is missing or empty; name files that hold text"
  texts+=("$(realpath "$text")")
done

say "Packages and build"
"$root/jobscripts/install_packages.sh" quickstart
"$root/jobscripts/bootstrap.sh" openmp >/dev/null
cd "$root"
cmake --preset cpu >/dev/null
cmake --build --preset cpu --target motley
motley=$root/build/cpu/motley
"$motley" --version

if [ ${#texts[@]} = 0 ]; then texts=(/usr/share/dictd/gcide.dict.dz); fi
# One folder per text: other files do not meet the tokenizer and the run of these.
key=$(stat -L --format='%n %s %Y' "${texts[@]}" | sha256sum | cut -c 1-8)
work=${MOTLEY_QUICKSTART_DIR:-$root/runs/quickstart}/$key
mkdir -p "$work"
cd "$work"

say "Tokenizer and data set in $work"
[ -s tokenizer.json ] || "$motley" tokenizer train "${texts[@]}" -o tokenizer.json --vocab 4096
if [ ! -s train.h5 ] || [ ! -s valid.h5 ]; then
  "$motley" data build "${texts[@]}" --tokenizer tokenizer.json -o train.h5 --valid-output valid.h5 \
    --valid-fraction 0.02 --overwrite
fi
"$motley" data inspect train.h5

cat >run.toml <<EOF
# A GPT-2 shaped model of 4.3 million parameters.
[run]
dir = "$work/run"
name = "quickstart"

[model]
family = "gpt2"
n_layers = 4
hidden = 256
heads = 4
vocab = 4096
dtype = "fp32"

[data]
train = "$work/train.h5"
valid = "$work/valid.h5"
tokenizer = "$work/tokenizer.json"

[train]
global_batch_size = 32
micro_batch_size = 8
seq_length = 128
train_iters = $steps

[optimizer]
lr = 2e-3
lr_warmup_iters = $((steps / 12))
weight_decay = 0.1

[eval]
interval = $((steps / 4))
iters = 20

[checkpoint]
interval = 0
EOF

# Reads a number of the newest row of metrics.jsonl that has it.
newest() { { sed -n "s/.*\"$1\":\([0-9.eE+-]*\).*/\1/p" run/metrics.jsonl 2>/dev/null || true; } | tail -n 1; }

half=$((steps / 2))
done_steps=$(newest step)
if [ "${done_steps:-0}" -lt $half ]; then
  say "Training $steps steps; stopped by a signal half-way"
  "$motley" train run.toml &
  trainer=$!
  while kill -0 "$trainer" 2>/dev/null; do
    done_steps=$(newest step)
    if [ "${done_steps:-0}" -ge $half ]; then
      kill -USR2 "$trainer" || true
      break
    fi
    sleep 0.5
  done
  code=0
  wait "$trainer" || code=$?
  trainer=
  [ $code = 75 ] || [ $code = 0 ] || die "motley train ended with exit code $code; see $work/run/motley.log"
  echo "motley train ended with exit code $code (75: checkpoint written, run me again)"
fi

say "Going on from the checkpoint"
"$motley" train run.toml || die "motley train ended with exit code $?; see $work/run/motley.log"

say "A text by the model"
"$motley" sample run --prompt "A ship is" --tokens 80 --temperature 0.8 --top-k 40

say "Result"
entropy=$("$motley" data inspect train.h5 --json | sed -n 's/.*"unigram_entropy_nats": *\([0-9.]*\).*/\1/p')
loss=$(newest val_loss)
awk -v loss="$loss" -v entropy="$entropy" 'BEGIN {
  printf "validation loss %.3f nats per token = %.2f x the unigram entropy of the tokens, %.3f (goal: at most 0.85 x)\n",
    loss, loss / entropy, entropy
  exit !(loss <= 0.85 * entropy)
}' || die "the model has not learnt enough; see $work/run/motley.log"
echo "run folder $work/run, log $work/run/motley.log; train longer with: $motley train $work/run.toml train_iters=$((4 * steps))"
