#include "io/text/detail/line_reader.hpp"

#include <algorithm>

namespace motley::io::detail {

bool LineReader::append_line(std::string& line, std::size_t limit) {
  std::size_t taken = 0;
  while (taken < limit) {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = source_->read(buffer_);
      if (end_ == 0) break;
    }
    char const* const first = buffer_.data() + begin_;
    char const* const last = first + std::min(end_ - begin_, limit - taken);
    char const* const line_feed = std::find(first, last, '\n');
    char const* const stop = line_feed == last ? last : line_feed + 1;
    line.append(first, stop);
    auto const count = static_cast<std::size_t>(stop - first);
    begin_ += count;
    taken += count;
    if (line_feed != last) break;
  }
  return taken > 0;
}

}  // namespace motley::io::detail
