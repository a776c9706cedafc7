#include "model/train/state_layout.hpp"

#include <algorithm>

#include "kernels/base/error.hpp"

namespace motley::model {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

StateLayout::StateLayout(ModelSpec const& spec, StageShard const& shard) {
  for (LogicalTensor const& tensor : logical_tensors(spec)) {
    if (!holds(spec, shard, tensor)) continue;
    LocalTensor local{tensor, local_rows(spec, shard, tensor)};
    local.padded_rows = tensor.split == Split::vocab_rows ? round_up(local.rows.size(), vocab_unit)
                                                          : local.rows.size();
    tensors_.push_back(local);
  }
  place(true);
  matrix_count_ = count_;
  place(false);
}

void StateLayout::place(bool matrices) {
  for (LocalTensor& local : tensors_) {
    if (local.tensor.is_matrix() != matrices) continue;
    if (!local.tensor.joins_previous) count_ = round_up(count_, alignment);
    local.offset = count_;
    count_ += local.padded_count();
  }
  count_ = round_up(count_, alignment);
}

bool StateLayout::contains(std::string_view name) const noexcept {
  return std::any_of(tensors_.begin(), tensors_.end(), [&](LocalTensor const& local) {
    return local.tensor.name == name;
  });
}

LocalTensor const& StateLayout::find(std::string_view name) const {
  auto const found = std::find_if(tensors_.begin(), tensors_.end(), [&](LocalTensor const& local) {
    return local.tensor.name == name;
  });
  MOTLEY_VALIDATE(bug,
                  found != tensors_.end(),
                  "this rank holds no tensor \"" << name
                                                 << "\" (its layers need it); this is a bug of "
                                                    "motley, please report it");
  return *found;
}

}  // namespace motley::model
