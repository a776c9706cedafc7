#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/text/byte_source.hpp"

namespace motley::io::detail {

/// Reads a file line by line.
class LineReader {
 public:
  explicit LineReader(std::filesystem::path const& path)
      : source_{open_byte_source(path)}, buffer_(buffer_bytes) {}

  /// Appends the next line, with its LF, to `line`; at most `limit` bytes of it: the rest of a
  /// longer line comes with the next call. False at the end of the file.
  [[nodiscard]] bool append_line(std::string& line, std::size_t limit);

  [[nodiscard]] std::int64_t file_position() const { return source_->file_position(); }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{256} << 10U;

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is in the buffer and not yet given out
  std::size_t end_ = 0;
};

}  // namespace motley::io::detail
