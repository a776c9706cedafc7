#include <cerrno>
#include <fstream>
#include <vector>

#include <zstd.h>

#include "io/durable_file.hpp"
#include "io/text/detail/sources.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/unique_handle.hpp"

namespace motley::io::detail {
namespace {

// Window of `zstd --ultra --long=31`, the largest there is. Memory is taken as a file asks for it.
constexpr int largest_window_log = 31;

struct ZstdTraits {
  using Raw = ZSTD_DCtx*;
  static Raw null() noexcept { return nullptr; }
  static void release(Raw raw) noexcept { ZSTD_freeDCtx(raw); }
};

/// zstd of one or many frames.
class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(std::filesystem::path const& path)
      : path_{path},
        file_{path, std::ios::binary},
        context_{ZSTD_createDCtx()},
        input_buffer_(ZSTD_DStreamInSize()) {
    MOTLEY_VALIDATE(data,
                    file_.is_open(),
                    "text file " << path_ << " cannot be opened (" << system_error_text(errno)
                                 << "); check the path and its permissions");
    check(context_ ? ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, largest_window_log)
                   : std::size_t{0});
  }

  std::size_t read(std::span<char> buffer) override {
    ZSTD_outBuffer output{buffer.data(), buffer.size(), 0};
    while (output.pos < output.size) {
      if (input_.pos == input_.size && !refill()) {
        // Nothing more to read: what the decoder still holds comes out without input.
        std::size_t const before = output.pos;
        if (is_frame_open_) decode(output);
        if (output.pos == before) break;
      } else {
        decode(output);
      }
    }
    MOTLEY_VALIDATE(data,
                    output.pos == output.size || !is_frame_open_,
                    "text file " << path_ << " is cut short (its last zstd frame has no end); "
                                 << "fetch it again");
    return output.pos;
  }

  [[nodiscard]] std::int64_t file_position() const override {
    return consumed_ - static_cast<std::int64_t>(input_.size - input_.pos);
  }

 private:
  void decode(ZSTD_outBuffer& output) {
    std::size_t const rest = ZSTD_decompressStream(context_.get(), &output, &input_);
    check(rest);
    is_frame_open_ = rest != 0;
  }

  bool refill() {
    errno = 0;
    file_.read(input_buffer_.data(), static_cast<std::streamsize>(input_buffer_.size()));
    MOTLEY_VALIDATE(data,
                    !file_.bad(),
                    "text file " << path_ << " cannot be read (" << system_error_text(errno)
                                 << "); fetch it again");
    input_ = {input_buffer_.data(), static_cast<std::size_t>(file_.gcount()), 0};
    consumed_ += file_.gcount();
    return input_.size > 0;
  }

  void check(std::size_t code) const {
    MOTLEY_VALIDATE(data,
                    ZSTD_isError(code) == 0,
                    "text file " << path_ << " cannot be read (zstd: " << ZSTD_getErrorName(code)
                                 << "); fetch it again");
  }

  std::filesystem::path path_;
  std::ifstream file_;
  UniqueHandle<ZstdTraits> context_;
  std::vector<char> input_buffer_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  std::int64_t consumed_ = 0;
  bool is_frame_open_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_zstd(std::filesystem::path const& path) {
  return std::make_unique<ZstdSource>(path);
}

}  // namespace motley::io::detail
