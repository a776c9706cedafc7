#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace motley::io {

/// The order in which samples are used: each epoch is a permutation of [0, count) of its own.
///
/// A position counts samples over all epochs, so it alone says where a run stands; nothing depends
/// on the number of ranks or steps. Permutations are computed, never stored: a keyed bijection on
/// the bits of count - 1 (four Feistel rounds), applied again until its value is below count.
///
/// Cost     four Philox calls per application, less than two applications on average above 512
///          samples, at most 1024; no memory
/// Source   Luby, Rackoff: "How to construct pseudorandom permutations from pseudorandom
///          functions", SIAM J. Comput. 17 (1988); cycle walking: Black, Rogaway: "Ciphers with
///          arbitrary finite domains", CT-RSA 2002, section 3
class SampleOrder {
 public:
  /// Shuffled by (seed, epoch, fingerprint of the data).
  ///
  /// Throws   Error{data} if `count` is not in [1, 2⁶²]
  SampleOrder(std::uint64_t seed, std::string_view fingerprint, std::int64_t count);
  /// In file order, the same in every epoch: for validation.
  [[nodiscard]] static SampleOrder sequential(std::int64_t count);

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t epoch(std::uint64_t position) const noexcept;
  /// The sample at a position, in [0, count).
  [[nodiscard]] std::int64_t sample(std::uint64_t position) const noexcept;

 private:
  explicit SampleOrder(std::int64_t count);
  [[nodiscard]] std::uint64_t permute(std::uint64_t key, std::uint64_t value) const noexcept;

  std::int64_t count_;
  std::uint64_t key_ = 0;
  bool is_shuffled_ = false;
  int low_bits_ = 0;  ///< the two parts of an index that rounds change in turn
  int high_bits_ = 0;
};

/// What identifies the tokens of a data set: a copy or a renamed file has the same identity.
struct DataIdentity {
  std::string content_hash;
  std::int64_t tokens = 0;
  std::int64_t token_bytes = 0;
};

/// SHA-256, in hexadecimal, over the data sets in order, the window length and the split: equal
/// fingerprints, seeds and positions mean equal samples.
[[nodiscard]] std::string data_fingerprint(std::span<DataIdentity const> sets,
                                           std::int64_t seq_length,
                                           std::string_view split);

}  // namespace motley::io
