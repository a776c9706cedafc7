#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

#include <zlib.h>

#include "io/durable_file.hpp"
#include "io/text/detail/sources.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/unique_handle.hpp"

namespace motley::io::detail {
namespace {

constexpr unsigned buffer_bytes = 256U << 10U;

struct GzipTraits {
  using Raw = gzFile;
  static Raw null() noexcept { return nullptr; }
  static void release(Raw raw) noexcept { static_cast<void>(gzclose_r(raw)); }
};

/// gzip of one or many members, or plain bytes: zlib tells them apart itself.
class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::filesystem::path const& path)
      : path_{path}, file_{gzopen64(path.c_str(), "rb")} {
    MOTLEY_VALIDATE(data,
                    file_ && gzbuffer(file_.get(), buffer_bytes) == 0,
                    "text file " << path_ << " cannot be opened (" << system_error_text(errno)
                                 << "); check the path and its permissions");
  }

  std::size_t read(std::span<char> buffer) override {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
      std::size_t const wanted = std::min(buffer.size() - filled, std::size_t{INT_MAX});
      int const count = gzread(file_.get(), buffer.data() + filled, static_cast<unsigned>(wanted));
      if (count <= 0) break;
      filled += static_cast<std::size_t>(count);
    }
    check();
    return filled;
  }

  [[nodiscard]] std::int64_t file_position() const override { return gzoffset64(file_.get()); }

 private:
  void check() const {
    int code = Z_OK;
    char const* const text = gzerror(file_.get(), &code);
    // At the end of a file that was cut short the last bytes come out, then this code is set.
    MOTLEY_VALIDATE(data,
                    code != Z_BUF_ERROR,
                    "text file " << path_ << " is cut short (its gzip stream has no end); fetch "
                                 << "it again");
    MOTLEY_VALIDATE(data,
                    code == Z_OK || code == Z_STREAM_END,
                    "text file " << path_ << " cannot be read ("
                                 << (code == Z_ERRNO ? system_error_text(errno) : text)
                                 << "); fetch it again");
  }

  std::filesystem::path path_;
  UniqueHandle<GzipTraits> file_;
};

}  // namespace

std::unique_ptr<ByteSource> open_gzip_or_plain(std::filesystem::path const& path) {
  return std::make_unique<GzipSource>(path);
}

}  // namespace motley::io::detail
