# Sourced by the tests of the program: a small text, tokenizer, data sets and run.toml in the current folder.
#
# Uses MOTLEY (the program), set by motley_add_script_test.

export MOTLEY_LOG=info  # the tests read what the program says

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# expect_code CODE command...: runs the command, its output in out.txt, and checks its exit code.
expect_code() {
  local wanted=$1 code=0
  shift
  "$@" >out.txt 2>&1 || code=$?
  [ "$code" = "$wanted" ] || {
    cat out.txt >&2
    fail "exit code $code where $wanted was expected: $*"
  }
}

# expect_text TEXT: the output of the last command contains it.
expect_text() {
  grep -qF -- "$1" out.txt || {
    cat out.txt >&2
    fail "the output does not say: $1"
  }
}

# A text with some order in it, so that there is something to learn.
make_text() {
  awk -v lines="${1:-4000}" 'BEGIN {
    srand(5)
    split("cat dog ship king river house road tree", noun, " ")
    split("sees finds loves holds leaves", verb, " ")
    split("red old small deep quiet", kind, " ")
    for (i = 0; i < lines; ++i)
      printf "The %s %s %s the %s %s.\n", kind[1 + int(rand() * 5)], noun[1 + int(rand() * 8)],
        verb[1 + int(rand() * 5)], kind[1 + int(rand() * 5)], noun[1 + int(rand() * 8)]
  }'
}

make_data() {
  make_text >text.txt
  "$MOTLEY" tokenizer train text.txt -o tokenizer.json --vocab 300 --threads 1
  "$MOTLEY" data build text.txt --tokenizer tokenizer.json -o train.h5 --valid-output valid.h5 --valid-fraction 0.1 --threads 1
}

# make_run DIR [line...]: run.toml of a tiny model; more lines are appended.
make_run() {
  local family=${MODEL_FAMILY:-gpt2} kv_heads=4
  if [ "$family" = llama ]; then kv_heads=2; fi
  cat >run.toml <<EOF
[run]
dir = "$1"
threads = 1
[model]
family = "$family"
n_layers = 2
hidden = 32
heads = 4
kv_heads = $kv_heads
vocab = 300
dtype = "${MODEL_DTYPE:-fp32}"
[data]
train = "train.h5"
valid = "valid.h5"
tokenizer = "tokenizer.json"
[train]
global_batch_size = 8
micro_batch_size = 4
seq_length = 32
train_iters = 20
[optimizer]
lr = 3e-3
lr_warmup_iters = 4
[eval]
interval = 10
iters = 3
[checkpoint]
interval = 0
[log]
interval = 1
EOF
}

# losses DIR: step and loss of every row, as printed by the log with all digits.
losses() { sed -n 's/.*"step":\([0-9]*\).*"loss":\([^,]*\),.*/\1 \2/p' "$1/metrics.jsonl"; }

# tensors DIR: the checksums of all tensors of the newest checkpoint.
tensors() { grep -o '"checksum": *"[0-9a-f]*"' "$1/checkpoints/$(cat "$1/checkpoints/latest")/manifest.json"; }
