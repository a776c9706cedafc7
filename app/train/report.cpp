#include "app/train/report.hpp"

#include <array>
#include <cstdlib>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "app/step_line.hpp"
#include "app/version.hpp"
#include "kernels/base/view.hpp"
#include "model/spec/logical_tensors.hpp"
#include "model/train/host_memory.hpp"

namespace motley::app {
namespace {

// Variables that change speed or behaviour and are set outside motley.
constexpr std::array<char const*, 9> watched_variables{"OMP_NUM_THREADS",
                                                       "OMP_PROC_BIND",
                                                       "OMP_PLACES",
                                                       "HDF5_USE_FILE_LOCKING",
                                                       "CUDA_VISIBLE_DEVICES",
                                                       "ROCR_VISIBLE_DEVICES",
                                                       "NCCL_DEBUG",
                                                       "OMPI_MCA_btl",
                                                       "MOTLEY_LOG"};

std::string environment_lines() {
  std::string text;
  for (char const* const name : watched_variables) {
    char const* const value = std::getenv(name);
    if (value != nullptr) text += fmt::format("\n  {}={}", name, value);
  }
  return text.empty() ? "" : "environment" + text + "\n";
}

/// "layers.3.norm1.weight" as "layers.*.norm1.weight": one row for all layers.
std::string row_name(std::string const& name) {
  constexpr std::string_view prefix = "layers.";
  if (!name.starts_with(prefix)) return name;
  std::size_t const dot = name.find('.', prefix.size());
  return std::string{prefix} + "*" + name.substr(dot);
}

std::string parameter_lines(model::ModelSpec const& spec) {
  struct Row {
    std::string name;
    Shape shape;
    std::int64_t tensors = 0;
    std::int64_t count = 0;
  };
  std::vector<Row> rows;
  std::map<std::string, std::size_t> place;
  for (model::LogicalTensor const& tensor : model::logical_tensors(spec)) {
    std::string const name = row_name(tensor.name);
    auto const [found, is_new] = place.try_emplace(name, rows.size());
    if (is_new) rows.push_back({name, tensor.shape, 0, 0});
    Row& row = rows[found->second];
    ++row.tensors;
    row.count += tensor.shape.count();
  }
  std::string text = fmt::format("parameters {:>38} {:>16}", "shape", "count");
  for (Row const& row : rows) {
    std::string const shape =
        (row.tensors > 1 ? fmt::format("{} × ", row.tensors) : std::string{}) +
        row.shape.to_string();
    text += fmt::format("\n  {:<30} {:>16} {:>16}", row.name, shape, row.count);
  }
  return text +
         fmt::format("\n  {:<30} {:>16} {:>16}\n", "total", "", model::parameter_count(spec));
}

}  // namespace

std::string start_report(RunConfig const& config, Ranks const& ranks) {
  std::string text = version_text() + "\n";
  if (!config.run.name.empty()) text += "run " + config.run.name + "\n";
  text += fmt::format("rank {:>4} of {} on {}: {}, {} threads\n",
                      ranks.rank,
                      ranks.size,
                      ranks.host,
                      Exec::name(),
                      Exec{}.concurrency());
  return text + environment_lines() + parameter_lines(config.model);
}

std::string memory_report(model::MemoryTable const& predicted) {
  auto const peak = static_cast<double>(model::peak_resident_memory_bytes());
  auto const total = static_cast<double>(predicted.total_bytes());
  return predicted.to_string() + fmt::format("\n  measured peak {} ({:+.1f}% of the prediction)",
                                             format_bytes(peak),
                                             100 * (peak - total) / total);
}

}  // namespace motley::app
