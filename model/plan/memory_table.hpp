#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace motley::model {

/// Predicted host or device memory of a rank, by class.
struct MemoryTable {
  struct Row {
    std::string what;  ///< e.g. "gradients"
    std::size_t bytes = 0;
  };
  std::vector<Row> rows;

  /// Adds to a row, which is appended if there is none of that name.
  void add(std::string_view what, std::size_t bytes);
  [[nodiscard]] std::size_t total_bytes() const noexcept;
  /// Bytes of a row; 0 if there is none of that name.
  [[nodiscard]] std::size_t bytes_of(std::string_view what) const noexcept;
  /// One line per row and the total, in GiB.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace motley::model
