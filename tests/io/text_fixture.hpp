#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizer/detail/byte_alphabet.hpp"
#include "io/tokenizer/tokenizer.hpp"
#include "tests/io/scratch.hpp"

namespace motley::test {

inline void write_file(std::filesystem::path const& file, std::string_view content) {
  std::ofstream{file, std::ios::binary} << content;
}

inline std::string read_file(std::filesystem::path const& file) {
  std::ifstream stream{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

/// Names in a folder, sorted.
inline std::vector<std::string> names_in(std::filesystem::path const& folder) {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator{folder}) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A model without merges: the 256 bytes in GPT-2's order, then the end of text with id 256.
inline io::BpeModel bytes_model() {
  io::BpeModel model;
  for (std::uint8_t const byte : io::detail::byte_alphabet.byte_at) {
    model.tokens.emplace_back(1, static_cast<char>(byte));
  }
  model.end_of_text_id = 256;
  model.special_ids = {256};
  model.tokens.emplace_back(io::end_of_text);
  return model;
}

/// Appends the merge of the tokens with these bytes.
inline void add_merge(io::BpeModel& model, std::string const& left, std::string const& right) {
  auto const id_of = [&](std::string const& bytes) {
    auto const found = std::find(model.tokens.begin(), model.tokens.end(), bytes);
    return static_cast<std::int32_t>(found - model.tokens.begin());
  };
  model.merges.push_back(
      {id_of(left), id_of(right), static_cast<std::int32_t>(model.tokens.size())});
  model.tokens.push_back(left + right);
}

inline std::string random_bytes(std::mt19937& random, int size) {
  std::uniform_int_distribution<int> draw{0, 255};
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(draw(random));
  return bytes;
}

/// Words, white space of all kinds, signs, letters of several scripts and bytes that are no UTF-8.
inline std::string random_text(std::mt19937& random, int parts) {
  static constexpr std::array<std::string_view, 24> choices{
      "the",    "low",    "est",    "'ll",          "'",          " ",    " ",        "  ",
      "\n",     "\n\n",   "\r\n",   "\t",           "12",         "3",    "!?",       "-",
      "\u00e9", "\u00a0", "\u3000", "\u4e2d\u6587", "\U0001f600", "\xff", "\xe4\xb8", "a"};
  std::uniform_int_distribution<std::size_t> draw{0, choices.size() - 1};
  std::string text;
  for (int i = 0; i < parts; ++i) text += choices[draw(random)];
  return text;
}

}  // namespace motley::test
