#pragma once

#include <string>

#include "app/command.hpp"
#include "app/config/run_config.hpp"
#include "model/plan/memory_table.hpp"

namespace motley::app {

/// Version, ranks, variables of the environment that change a run, and parameters: what rank 0 logs
/// before anything is allocated.
[[nodiscard]] std::string start_report(RunConfig const& config, Ranks const& ranks);

/// The memory table and, beside its total, what the process has really held at its peak.
[[nodiscard]] std::string memory_report(model::MemoryTable const& predicted);

}  // namespace motley::app
