#pragma once

#include <filesystem>
#include <memory>

#include "io/text/byte_source.hpp"

namespace motley::io::detail {

[[nodiscard]] std::unique_ptr<ByteSource> open_gzip_or_plain(std::filesystem::path const& path);
[[nodiscard]] std::unique_ptr<ByteSource> open_zstd(std::filesystem::path const& path);

}  // namespace motley::io::detail
