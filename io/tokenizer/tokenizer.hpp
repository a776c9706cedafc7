#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace motley::io {

inline constexpr std::string_view end_of_text = "<|endoftext|>";

/// One rule of a byte-pair encoding: `left` followed by `right` becomes `result`.
struct Merge {
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::int32_t result = 0;
  bool operator==(Merge const&) const = default;
};

/// What defines a byte-level BPE tokenizer. Ids run from 0 without gaps.
struct BpeModel {
  std::vector<std::string> tokens;        ///< bytes of each id; each single byte is among them
  std::vector<Merge> merges;              ///< in order of rank: the first is applied first
  std::vector<std::int32_t> special_ids;  ///< ids that text does not produce by merging
  std::int32_t end_of_text_id = 0;        ///< one of special_ids
};

/// A byte-level BPE tokenizer: any bytes, valid UTF-8 or not, become ids and come back unchanged.
///
/// Text is cut into pre-tokens by GPT-2's pattern, then each is merged. A byte that is not part of
/// valid UTF-8 is a pre-token of its own. Cheap to copy (the model is shared), immutable, usable
/// from any thread. Special tokens written out in a text are ordinary text: no document can forge
/// the end of another.
///
/// Source   Sennrich et al. 2016, section 3.2; Radford et al. 2019, section 2.2
class Tokenizer final {
 public:
  /// Throws Error{data} if the model contradicts itself.
  explicit Tokenizer(BpeModel model);

  /// Reads Hugging Face's tokenizer.json of a byte-level BPE with GPT-2's pattern.
  /// Throws Error{data}, naming file and field, on damage and on features it does not know.
  [[nodiscard]] static Tokenizer load(std::filesystem::path const& path);
  /// Writes tokenizer.json (temporary name, then rename). Throws Error{write}.
  void save(std::filesystem::path const& path) const;

  /// Ids of a text. For many texts, or in threads, use an Encoder each.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const;
  /// Bytes of ids. Throws Error{data} on an id outside the vocabulary, naming it and its place.
  [[nodiscard]] std::string decode(std::span<std::int32_t const> ids) const;

  [[nodiscard]] std::int64_t vocab_size() const noexcept;
  [[nodiscard]] std::int32_t end_of_text_id() const noexcept;
  /// Bytes of one id, which must be in [0, vocab_size()).
  [[nodiscard]] std::string_view token_bytes(std::int32_t id) const;
  /// SHA-256 (hex) of what determines ids: tokens, merges, special ids. The same after save and
  /// load, whatever the layout of the file.
  [[nodiscard]] std::string const& fingerprint() const noexcept;
  [[nodiscard]] BpeModel const& model() const noexcept;

 private:
  friend class Encoder;
  struct State;
  std::shared_ptr<State const> state_;
};

/// The working memory of one encoding thread: matcher, cache of pre-tokens, merge buffers.
class Encoder final {
 public:
  explicit Encoder(Tokenizer tokenizer);
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;
  Encoder(Encoder const&) = delete;
  Encoder& operator=(Encoder const&) = delete;
  ~Encoder();

  /// Appends the ids of `text` to `ids`.
  ///
  /// Cost     linear in the text, n log n in the length of one pre-token
  void encode(std::string_view text, std::vector<std::int32_t>& ids);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace motley::io
