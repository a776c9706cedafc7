#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/base/arena.hpp"
#include "model/plan/memory_table.hpp"

namespace motley::model {

/// Writes what was taken from an arena since the last mark into rows of a memory table.
///
/// The code that allocates marks its classes as it goes; run on a counting arena it is the memory
/// model, run on a real one it allocates just that.
class MemoryMeter final {
 public:
  explicit MemoryMeter(Arena const& arena) : arena_{arena}, marked_{arena.used_bytes()} {}

  /// Adds what was taken since the last mark to the row `what`.
  void mark(std::string_view what) {
    std::size_t const used = arena_.used_bytes();
    table_.add(what, used - marked_);
    marked_ = used;
  }
  [[nodiscard]] MemoryTable const& table() const noexcept { return table_; }

 private:
  Arena const& arena_;
  std::size_t marked_;
  MemoryTable table_;
};

}  // namespace motley::model
