#pragma once

#include <filesystem>

#include "io/tokenizer/tokenizer.hpp"

namespace motley::io::detail {

/// See Tokenizer::load and Tokenizer::save.
[[nodiscard]] BpeModel read_tokenizer_json(std::filesystem::path const& path);
void write_tokenizer_json(std::filesystem::path const& path, BpeModel const& model);

}  // namespace motley::io::detail
