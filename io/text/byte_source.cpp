#include "io/text/byte_source.hpp"

#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>

#include "io/durable_file.hpp"
#include "io/text/detail/sources.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

constexpr std::string_view gzip_magic = "\x1F\x8B";
constexpr std::string_view zstd_magic = "\x28\xB5\x2F\xFD";

std::string read_magic(std::filesystem::path const& path) {
  std::error_code error;
  MOTLEY_VALIDATE(data,
                  !std::filesystem::is_directory(path, error),
                  "text file " << path << " is a folder (a file is needed); name the files in it");
  errno = 0;
  std::ifstream file{path, std::ios::binary};
  MOTLEY_VALIDATE(data,
                  file.is_open(),
                  "text file " << path << " cannot be opened (" << system_error_text(errno)
                               << "); check the path and its permissions");
  std::string magic(zstd_magic.size(), '\0');
  file.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  magic.resize(static_cast<std::size_t>(file.gcount()));
  return magic;
}

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(std::filesystem::path const& path) {
  std::string const magic = read_magic(path);
  bool const is_gzip = magic.starts_with(gzip_magic);
  bool const is_zstd = magic == zstd_magic;
  auto const ending = path.extension();
  MOTLEY_VALIDATE(data,
                  !magic.empty(),
                  "text file " << path << " is empty (there is nothing to read in it); leave it "
                               << "out or fetch it again");
  bool const keeps_promise =
      ending == ".zst" ? is_zstd : is_gzip || (ending != ".gz" && ending != ".dz");
  MOTLEY_VALIDATE(data,
                  keeps_promise,
                  "text file " << path << " is not what its name says (it does not begin as "
                               << ending << " files do); rename it or fetch it again");
  return is_zstd ? detail::open_zstd(path) : detail::open_gzip_or_plain(path);
}

}  // namespace motley::io
