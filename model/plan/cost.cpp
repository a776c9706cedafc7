#include "model/plan/cost.hpp"

#include "model/spec/logical_tensors.hpp"

namespace motley::model {

std::int64_t multiplied_parameter_count(ModelSpec const& spec) {
  std::int64_t count = parameter_count(spec);
  for (LogicalTensor const& tensor : logical_tensors(spec)) {
    bool const is_head_too = spec.tied && tensor.split == Split::vocab_rows;
    if (tensor.place == Place::embedding && !is_head_too) count -= tensor.shape.count();
  }
  return count;
}

double step_flop(ModelSpec const& spec, std::int64_t windows, std::int64_t tokens) {
  double const parameters = static_cast<double>(multiplied_parameter_count(spec));
  double const scores = static_cast<double>(spec.n_layers * spec.heads * spec.head_width()) *
                        static_cast<double>(tokens);
  return (6.0 * parameters + 12.0 * scores) * static_cast<double>(windows * tokens);
}

}  // namespace motley::model
