# 2N steps equal N steps, a stop and N steps more, bit for bit: losses, parameters, moments; also twice from scratch.
set -euo pipefail
source "$MOTLEY_SOURCE_DIR/tests/app/small_run.sh"
make_data

for dtype in fp32 bf16; do
  for family in gpt2 llama; do
    export MODEL_FAMILY=$family MODEL_DTYPE=$dtype
    name=$family-$dtype
    make_run whole
    expect_code 0 "$MOTLEY" train run.toml run.dir="whole-$name"
    expect_code 0 "$MOTLEY" train run.toml run.dir="again-$name"
    expect_code 75 "$MOTLEY" train run.toml run.dir="parts-$name" train.exit_at_step=7
    expect_code 75 "$MOTLEY" train run.toml run.dir="parts-$name" train.exit_at_step=10
    expect_code 0 "$MOTLEY" train run.toml run.dir="parts-$name"
    expect_text "resumed from"
    [ "$(losses "whole-$name" | wc -l)" = 20 ] || fail "$name: there are not 20 rows of losses"
    for other in again parts; do
      diff <(losses "whole-$name") <(losses "$other-$name") || fail "$name: the losses of '$other' differ"
      diff <(tensors "whole-$name") <(tensors "$other-$name") || fail "$name: the tensors of '$other' differ"
    done
    [ "$(tensors "whole-$name" | sort -u | wc -l)" -gt 20 ] || fail "$name: checksums are not told apart"
    first=$(losses "whole-$name" | head -n 1 | cut -d ' ' -f 2)
    last=$(losses "whole-$name" | tail -n 1 | cut -d ' ' -f 2)
    awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a - 0.5) }' || fail "$name: the loss went from $first to $last only"
  done
done
