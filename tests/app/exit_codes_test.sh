# Bad input: each a clear message that names key or file, the documented exit code, and nothing half-written.
set -euo pipefail
source "$MOTLEY_SOURCE_DIR/tests/app/small_run.sh"
make_data
make_run run

expect_code 64 "$MOTLEY"
expect_code 64 "$MOTLEY" fly
expect_code 0 "$MOTLEY" --help
expect_text "Exit codes"
expect_code 0 "$MOTLEY" --version
expect_text "HDF5"
expect_code 0 "$MOTLEY" train --help
expect_text "optimizer.lr_warmup_iters"

expect_code 64 "$MOTLEY" train run.toml optimizer.learning_rate=1
expect_text "optimizer.learning_rate"
expect_code 64 "$MOTLEY" train run.toml --optimizer.lr
expect_code 64 "$MOTLEY" train missing.toml
expect_text "missing.toml"
expect_code 64 "$MOTLEY" train run.toml model.heads=5 model.n_layers=0 train.micro_batch_size=3
expect_text "model.heads"
expect_text "model.n_layers"
expect_text "train.global_batch_size"
expect_code 64 "$MOTLEY" train run.toml model.n_layers=two
expect_text "takes an integer"
[ ! -e run ] || fail "a refused configuration left a run folder"

expect_code 65 "$MOTLEY" train run.toml data.train=missing.h5
expect_text "missing.h5"
head -c 3000 train.h5 >short.h5
expect_code 65 "$MOTLEY" train run.toml data.train=short.h5
expect_text "short.h5"
expect_code 65 "$MOTLEY" train run.toml model.vocab=280
expect_text "train.h5"
: >empty.txt
expect_code 65 "$MOTLEY" tokenizer train empty.txt -o empty.json --vocab 300
expect_text "empty.txt"
[ ! -e empty.json ] || fail "a tokenizer of nothing was written"
expect_code 65 "$MOTLEY" data build empty.txt --tokenizer tokenizer.json -o empty.h5
[ ! -e empty.h5 ] || fail "a data set of nothing was written"
expect_code 64 "$MOTLEY" data build text.txt --tokenizer tokenizer.json -o train.h5
expect_text "train.h5"

expect_code 66 "$MOTLEY" train run.toml checkpoint.resume=nowhere/step_00000001
expect_text "nowhere"
expect_code 66 "$MOTLEY" checkpoint verify nowhere
expect_code 66 "$MOTLEY" sample nowhere

expect_code 78 "$MOTLEY" train run.toml model.hidden=65536 model.heads=64 model.kv_heads=64 model.n_layers=64
expect_text "parameters"

expect_code 64 "$MOTLEY_LAUNCH" 2 "$MOTLEY" train run.toml run.dir=two
expect_text "2 ranks"

# A run that was trained: what may not change at resume, and what may.
expect_code 75 "$MOTLEY" train run.toml run.dir=done train.exit_at_step=2
expect_code 64 "$MOTLEY" train run.toml run.dir=done optimizer.lr=1e-3
expect_text "optimizer.lr"
expect_code 66 "$MOTLEY" train run.toml run.dir=done model.ffn=64
expect_text "model.ffn"
expect_code 65 "$MOTLEY" train run.toml run.dir=done run.seed=99
expect_text "fingerprint"
expect_code 64 "$MOTLEY" train run.toml run.dir=done checkpoint.resume=never
expect_code 75 "$MOTLEY" train run.toml run.dir=done train.exit_at_step=3 optimizer.lr=1e-3 optimizer.override_on_resume=allow log.interval=2
expect_text "optimizer.lr was 0.003"
expect_code 0 "$MOTLEY" checkpoint inspect done --norms
expect_text "layers.1.attention.q.weight"

# A flipped bit in the newest checkpoint: verify names the tensor; with an older one the run goes on from that.
state=done/checkpoints/$(cat done/checkpoints/latest)/state.h5
python3 - "$state" <<'EOF'
import os, sys
with open(sys.argv[1], "r+b") as file:
    file.seek(os.path.getsize(sys.argv[1]) // 8)  # among the parameters, which come first
    byte = file.read(1)
    file.seek(-1, 1)
    file.write(bytes([byte[0] ^ 4]))
EOF
expect_code 66 "$MOTLEY" checkpoint verify done
expect_text "state.h5"
expect_code 66 "$MOTLEY" sample done --tokens 1
expect_code 75 "$MOTLEY" train run.toml run.dir=done train.exit_at_step=5 optimizer.override_on_resume=allow
expect_text "resumed from"
expect_text "step_00000002"

expect_code 0 "$MOTLEY" sample done --prompt "The cat" --tokens 5
expect_text "The cat"
expect_code 0 "$MOTLEY" data inspect train.h5 --verify
