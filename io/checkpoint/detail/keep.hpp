#pragma once

#include "io/checkpoint/checkpoint.hpp"

namespace motley::io::detail {

/// Deletes the checkpoints that SaveOptions no longer keep. Where none of the kept ones has been
/// read back yet (an empty file `verified` in its folder says so), the newest is read back first,
/// and if it is damaged nothing is deleted. What goes wrong is a warning of the report.
///
/// Throws   Error{usage} if another process owns the run folder
void apply_keep_rules(RunFolder const& folder, SaveOptions const& options, SaveReport& report);

}  // namespace motley::io::detail
