#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "io/detail/chunk_decoder.hpp"
#include "io/detail/stored_array.hpp"

namespace motley::io::detail {

/// Decoded chunks of an array, shared by threads; the least recently used one makes room. If all
/// fit, each is decoded once.
class ChunkCache {
 public:
  /// @param users threads that use it at the same time; each holds one chunk at most
  ChunkCache(StoredArray const& array, std::size_t budget_bytes, int users);

  /// Calls `use` with the bytes of a chunk, which stay in memory that long.
  ///
  /// Throws   what StoredArray::read_chunk throws; the chunk is tried again at the next call
  template <class Use>
  void with_chunk(std::int64_t chunk, ChunkDecoder& decoder, Use&& use) {
    Hold const hold{*this, acquire(chunk, decoder)};
    use(std::span<std::byte const>{hold.slot.bytes});
  }

  [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_.size(); }

 private:
  enum class State { empty, loading, ready };
  struct Slot {
    State state = State::empty;
    std::int64_t chunk = -1;
    int users = 0;
    std::uint64_t last_use = 0;
    std::span<std::byte> bytes;
  };
  struct Hold {
    ChunkCache& cache;
    Slot& slot;
    Hold(ChunkCache& owner, Slot& held) : cache{owner}, slot{held} {}
    Hold(Hold const&) = delete;
    Hold& operator=(Hold const&) = delete;
    Hold(Hold&&) = delete;
    Hold& operator=(Hold&&) = delete;
    ~Hold() { cache.release(slot); }
  };

  [[nodiscard]] Slot& acquire(std::int64_t chunk, ChunkDecoder& decoder);
  void release(Slot& slot) noexcept;
  /// A slot that nobody uses, taken from its chunk.
  [[nodiscard]] Slot& take_oldest();

  StoredArray const& array_;
  std::vector<std::byte> memory_;
  std::vector<Slot> slots_;
  std::vector<Slot*> slot_of_;  ///< by chunk; null if it is not here
  std::uint64_t clock_ = 0;
  std::mutex mutex_;
  std::condition_variable loaded_;
};

}  // namespace motley::io::detail
