#include "io/detail/window_source.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/base/batch.hpp"
#include "kernels/base/error.hpp"

namespace motley::io::detail {
namespace {

template <class T>
void widen(std::byte const* from, std::span<std::int32_t> to) {
  auto const* const values = reinterpret_cast<T const*>(from);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::int32_t>(values[i]);
}

/// Copies elements [first, first + out.size()) of an array, which may lie in several chunks.
void copy_elements(StoredArray const& array,
                   ChunkCache& cache,
                   ChunkDecoder& decoder,
                   std::int64_t first,
                   std::span<std::int32_t> out) {
  while (!out.empty()) {
    std::int64_t const chunk = first / array.chunk_elements();
    std::int64_t const at = first % array.chunk_elements();
    std::int64_t const count =
        std::min(static_cast<std::int64_t>(out.size()), array.chunk_elements() - at);
    std::span<std::int32_t> const part = out.first(static_cast<std::size_t>(count));
    cache.with_chunk(chunk, decoder, [&](std::span<std::byte const> bytes) {
      std::byte const* const from = bytes.data() + at * array.element_bytes();
      if (array.element_bytes() == 1) widen<std::uint8_t>(from, part);
      if (array.element_bytes() == 2) widen<std::uint16_t>(from, part);
      if (array.element_bytes() == 4) widen<std::uint32_t>(from, part);
    });
    first += count;
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

/// The share of the budget for tokens; the loss mask has one byte for each.
std::size_t token_budget(Dataset const& dataset, std::size_t cache_bytes) {
  if (dataset.loss_mask() == nullptr) return cache_bytes;
  auto const width = static_cast<std::size_t>(dataset.tokens().element_bytes());
  return cache_bytes / (width + 1) * width;
}

Dataset expect_window(Dataset dataset, std::int64_t seq_length) {
  std::int64_t const tokens = dataset.info().tokens;
  MOTLEY_VALIDATE(data,
                  tokens > seq_length,
                  "data set \"" << dataset.info().path << "\" has " << tokens
                                << " tokens (one window needs train.seq_length + 1 = "
                                << seq_length + 1 << "); use more text or a shorter seq_length");
  return dataset;
}

}  // namespace

WindowSource::WindowSource(Dataset dataset,
                           std::int64_t seq_length,
                           std::size_t cache_bytes,
                           int users)
    : dataset_{expect_window(std::move(dataset), seq_length)},
      seq_length_{seq_length},
      tokens_{dataset_.tokens(), token_budget(dataset_, cache_bytes), users} {
  if (dataset_.loss_mask() == nullptr) return;
  loss_mask_.emplace(
      *dataset_.loss_mask(), cache_bytes - token_budget(dataset_, cache_bytes), users);
}

WindowSource::Scratch WindowSource::make_scratch() const {
  StoredArray const& tokens = dataset_.tokens();
  auto const size = static_cast<std::size_t>(seq_length_);
  Scratch scratch{ChunkDecoder{tokens.chunk_bytes(), tokens.element_bytes()},
                  std::nullopt,
                  std::vector<std::int32_t>(size + 1),
                  std::vector<std::int32_t>(size)};
  if (StoredArray const* const mask = dataset_.loss_mask(); mask != nullptr) {
    scratch.loss_mask.emplace(mask->chunk_bytes(), mask->element_bytes());
  }
  return scratch;
}

std::size_t WindowSource::memory_bytes() const noexcept {
  return tokens_.memory_bytes() + (loss_mask_ ? loss_mask_->memory_bytes() : 0);
}

std::int64_t WindowSource::read(std::int64_t sample,
                                Scratch& scratch,
                                std::span<std::int32_t> inputs,
                                std::span<std::int32_t> targets) {
  std::span<std::int32_t> const window{scratch.window};
  copy_elements(dataset_.tokens(), tokens_, scratch.tokens, sample * seq_length_, window);
  std::copy(window.begin(), window.end() - 1, inputs.begin());
  std::copy(window.begin() + 1, window.end(), targets.begin());
  if (!loss_mask_) return seq_length_;
  std::int64_t const valid = valid_tokens(sample, scratch);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (scratch.counts[i] == 0) targets[i] = Batch::ignored_target;
  }
  return valid;
}

std::int64_t WindowSource::valid_tokens(std::int64_t sample, Scratch& scratch) {
  if (!loss_mask_) return seq_length_;
  // The mask says of each token whether predicting it counts, so it goes with the targets.
  copy_elements(*dataset_.loss_mask(),
                *loss_mask_,
                *scratch.loss_mask,
                sample * seq_length_ + 1,
                scratch.counts);
  return std::accumulate(scratch.counts.begin(), scratch.counts.end(), std::int64_t{0});
}

}  // namespace motley::io::detail
