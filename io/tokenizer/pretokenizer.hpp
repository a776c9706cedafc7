#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/base/unique_handle.hpp"

// PCRE2's types of 8-bit code units; its header stays in pretokenizer.cpp.
struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace motley::io {

/// GPT-2's pattern, as tokenizer.json files write it.
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Cuts text into pre-tokens by GPT-2's pattern; a byte outside valid UTF-8 is one of its own.
///
/// The pre-tokens of a text, joined, are the text. One per thread: it holds the matcher's memory.
///
/// Cost     one pass to check UTF-8, one to match (compiled to machine code where the CPU allows)
/// Source   Radford et al. 2019, section 2.2; openai/gpt-2, src/encoder.py, line 53
class PreTokenizer {
 public:
  PreTokenizer();

  /// Starts on a text, which must stay where it is until the last `next`.
  void start(std::string_view text);
  /// The next pre-token; false at the end of the text.
  [[nodiscard]] bool next(std::string_view& token);

  /// The largest position in (0, size) at which the text may be cut so that the pre-tokens of both
  /// parts, joined, are those of the whole whatever stands around it; 0 if there is none.
  ///
  /// Such places lie before a white-space character that a visible one follows: there the pattern
  /// starts afresh, and what it makes of the left part is the same with or without the right one.
  [[nodiscard]] std::size_t last_safe_cut(std::string_view text);
  /// Where to cut a text of two bytes or more in any case: the last safe place or, where there is
  /// none, between the last two characters.
  [[nodiscard]] std::size_t last_cut(std::string_view text);

 private:
  struct CodeTraits {
    using Raw = pcre2_real_code_8*;
    static Raw null() noexcept { return nullptr; }
    static void release(Raw raw) noexcept;
  };
  struct MatchTraits {
    using Raw = pcre2_real_match_data_8*;
    static Raw null() noexcept { return nullptr; }
    static void release(Raw raw) noexcept;
  };
  struct ContextTraits {
    using Raw = pcre2_real_match_context_8*;
    static Raw null() noexcept { return nullptr; }
    static void release(Raw raw) noexcept;
  };
  struct StackTraits {
    using Raw = pcre2_real_jit_stack_8*;
    static Raw null() noexcept { return nullptr; }
    static void release(Raw raw) noexcept;
  };

  std::size_t match(std::string_view subject, bool is_checked);
  bool is_visible_at(std::string_view text, std::size_t position);

  UniqueHandle<CodeTraits> code_;
  UniqueHandle<MatchTraits> match_;
  UniqueHandle<ContextTraits> context_;
  UniqueHandle<StackTraits> stack_;
  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t valid_end_ = 0;  // up to here the text is known to be valid UTF-8
};

}  // namespace motley::io
