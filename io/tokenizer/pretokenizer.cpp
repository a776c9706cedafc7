#include "io/tokenizer/pretokenizer.hpp"

#include <algorithm>
#include <array>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

constexpr std::size_t longest_utf8_char = 4;

// gpt2_pattern with its white space written out. Both \s of PCRE2 and the White_Space property that
// Hugging Face's \s means hold \p{Z}, U+0009 to U+000D and U+0085; PCRE2's holds U+180E besides.
constexpr char const* compiled_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{Z}\t-\r\x{85}\p{L}\p{N}]+)"
    R"(|[\p{Z}\t-\r\x{85}]+(?![^\p{Z}\t-\r\x{85}])|[\p{Z}\t-\r\x{85}]+)";

// White space beyond ASCII: U+0085, \p{Z}.
constexpr std::array<std::string_view, 19> wide_spaces{"\xC2\x85",
                                                       "\xC2\xA0",
                                                       "\xE1\x9A\x80",
                                                       "\xE2\x80\x80",
                                                       "\xE2\x80\x81",
                                                       "\xE2\x80\x82",
                                                       "\xE2\x80\x83",
                                                       "\xE2\x80\x84",
                                                       "\xE2\x80\x85",
                                                       "\xE2\x80\x86",
                                                       "\xE2\x80\x87",
                                                       "\xE2\x80\x88",
                                                       "\xE2\x80\x89",
                                                       "\xE2\x80\x8A",
                                                       "\xE2\x80\xA8",
                                                       "\xE2\x80\xA9",
                                                       "\xE2\x80\xAF",
                                                       "\xE2\x81\x9F",
                                                       "\xE3\x80\x80"};

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

PCRE2_SPTR code_units(std::string_view text) {
  // An empty view may be null, which PCRE2 takes for an error.
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

std::string describe(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return {text.begin(), std::find(text.begin(), text.end(), 0)};
}

void check(bool ok, char const* call, int code) {
  MOTLEY_VALIDATE(bug,
                  ok,
                  "PCRE2's " << call << " says \"" << describe(code)
                             << "\" (cutting text into pre-tokens needs it); check that PCRE2 is "
                                "10.40 or newer with Unicode");
}

bool is_utf8_error(int code) {
  return code <= PCRE2_ERROR_UTF8_ERR1 && code >= PCRE2_ERROR_UTF8_ERR21;
}

}  // namespace

void PreTokenizer::CodeTraits::release(Raw raw) noexcept { pcre2_code_free(raw); }
void PreTokenizer::MatchTraits::release(Raw raw) noexcept { pcre2_match_data_free(raw); }
void PreTokenizer::ContextTraits::release(Raw raw) noexcept { pcre2_match_context_free(raw); }
void PreTokenizer::StackTraits::release(Raw raw) noexcept { pcre2_jit_stack_free(raw); }

PreTokenizer::PreTokenizer() {
  int error = 0;
  std::size_t place = 0;
  code_ = UniqueHandle<CodeTraits>{pcre2_compile(reinterpret_cast<PCRE2_SPTR>(compiled_pattern),
                                                 PCRE2_ZERO_TERMINATED,
                                                 PCRE2_UTF | PCRE2_UCP,
                                                 &error,
                                                 &place,
                                                 nullptr)};
  check(static_cast<bool>(code_), "pcre2_compile", error);
  match_ = UniqueHandle<MatchTraits>{pcre2_match_data_create(1, nullptr)};
  context_ = UniqueHandle<ContextTraits>{pcre2_match_context_create(nullptr)};
  check(match_ && context_, "pcre2_match_data_create", PCRE2_ERROR_NOMEMORY);
  // Without machine code (a hardened kernel may forbid it) PCRE2 interprets, slower and the same.
  if (pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) != 0) return;
  constexpr std::size_t stack_start_bytes = 32 << 10U;
  constexpr std::size_t stack_limit_bytes = 1 << 20U;
  stack_ = UniqueHandle<StackTraits>{
      pcre2_jit_stack_create(stack_start_bytes, stack_limit_bytes, nullptr)};
  check(static_cast<bool>(stack_), "pcre2_jit_stack_create", PCRE2_ERROR_NOMEMORY);
  pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
}

void PreTokenizer::start(std::string_view text) {
  text_ = text;
  position_ = 0;
  valid_end_ = 0;
}

/// Length of the pre-token at the start of the subject; where the subject is found not to be UTF-8,
/// 0, with the number of valid bytes in valid_end_ (relative to the subject).
std::size_t PreTokenizer::match(std::string_view subject, bool is_checked) {
  // The second matcher goes straight to the machine code, without the check of the subject.
  auto const matcher = is_checked && stack_ ? pcre2_jit_match : pcre2_match;
  int const code = matcher(code_.get(),
                           code_units(subject),
                           subject.size(),
                           0,
                           is_checked && !stack_ ? PCRE2_NO_UTF_CHECK : 0U,
                           match_.get(),
                           context_.get());
  if (!is_checked && is_utf8_error(code)) {
    valid_end_ = pcre2_get_startchar(match_.get());
    return 0;
  }
  check(code > 0, "pcre2_match", code);
  std::size_t const* const ends = pcre2_get_ovector_pointer(match_.get());
  // Every character is white space, letter, number or none of these: a match starts at once.
  MOTLEY_ENSURE(ends[0] == 0 && ends[1] > 0);
  return ends[1];
}

bool PreTokenizer::next(std::string_view& token) {
  if (position_ == text_.size()) return false;
  std::size_t length = 0;
  if (position_ < valid_end_) {
    length = match(text_.substr(position_, valid_end_ - position_), true);
  } else {
    valid_end_ = text_.size() - position_;
    length = match(text_.substr(position_), false);
    valid_end_ += position_;
    if (length == 0) {
      length = valid_end_ == position_
                   ? 1
                   : match(text_.substr(position_, valid_end_ - position_), true);
    }
  }
  token = text_.substr(position_, length);
  position_ += length;
  return true;
}

bool PreTokenizer::is_visible_at(std::string_view text, std::size_t position) {
  std::string_view const rest = text.substr(position, longest_utf8_char);
  auto const first = static_cast<unsigned char>(rest.front());
  if (first < 0x80) return first > ' ' && first < 0x7F;
  bool const is_space =
      std::any_of(wide_spaces.begin(), wide_spaces.end(), [&](std::string_view space) {
        return rest.starts_with(space);
      });
  std::string_view token;
  start(rest);
  // A byte outside valid UTF-8 would come alone.
  return !is_space && next(token) && token.size() > 1;
}

std::size_t PreTokenizer::last_safe_cut(std::string_view text) {
  for (std::size_t cut = text.size(); cut-- > 1;) {
    if (is_ascii_space(text[cut]) && cut + 1 < text.size() && is_visible_at(text, cut + 1)) {
      return cut;
    }
  }
  return 0;
}

std::size_t PreTokenizer::last_cut(std::string_view text) {
  MOTLEY_EXPECT(text.size() > 1);
  if (std::size_t const cut = last_safe_cut(text); cut > 0) return cut;
  auto const continues_character = [&](std::size_t place) {
    return (static_cast<unsigned char>(text[place]) & 0xC0U) == 0x80U;
  };
  std::size_t const last = text.size() - 1;
  std::size_t cut = last;
  while (cut > 1 && last - cut < longest_utf8_char - 1 && continues_character(cut)) --cut;
  return cut;
}

}  // namespace motley::io
