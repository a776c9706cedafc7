#include "model/train/trainer.hpp"

#include <sstream>

#include "model/train/detail/trainer_of.hpp"
#include "model/train/host_memory.hpp"

namespace motley::model {
namespace {

void validate(TrainerConfig const& config) {
  Problems const found = problems(config);
  if (found.empty()) return;
  std::ostringstream text;
  text << "the configuration has " << found.size() << " problem(s) (see each); correct them:";
  for (Problem const& problem : found) text << "\n  " << problem.key << ": " << problem.message;
  MOTLEY_FAIL(usage, text.str());
}

MemoryTable count(TrainerConfig const& config) {
  kernels::MatmulEngine engine;
  comm::Group const group;
  switch (config.model.dtype) {
    case DType::fp32:
      return detail::count_memory<float>(config, group, engine);
    case DType::fp64:
      return detail::count_memory<double>(config, group, engine);
    default:
      return detail::count_memory<BFloat16>(config, group, engine);
  }
}

}  // namespace

MemoryTable predict_memory(TrainerConfig const& config) {
  validate(config);
  MemoryTable table = count(config);
  table.add("process", resident_memory_bytes());
  table.add("data", config.data_bytes);
  return table;
}

std::unique_ptr<Trainer> make_trainer(TrainerConfig const& config, comm::Group const& group) {
  validate(config);
  switch (config.model.dtype) {
    case DType::fp32:
      return std::make_unique<detail::TrainerOf<float>>(config, group);
    case DType::fp64:
      return std::make_unique<detail::TrainerOf<double>>(config, group);
    default:
      return std::make_unique<detail::TrainerOf<BFloat16>>(config, group);
  }
}

}  // namespace motley::model
