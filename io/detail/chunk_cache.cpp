#include "io/detail/chunk_cache.hpp"

#include <algorithm>

#include "kernels/base/error.hpp"

namespace motley::io::detail {

ChunkCache::ChunkCache(StoredArray const& array, std::size_t budget_bytes, int users)
    : array_{array}, slot_of_(static_cast<std::size_t>(array.chunk_count()), nullptr) {
  auto const chunk_bytes = static_cast<std::size_t>(array.chunk_bytes());
  std::size_t const wanted = std::max(budget_bytes / chunk_bytes, static_cast<std::size_t>(users));
  slots_.resize(std::min(wanted, slot_of_.size()));
  memory_.resize(slots_.size() * chunk_bytes);  // zeroed, so that no page is new later on
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].bytes = std::span{memory_}.subspan(i * chunk_bytes, chunk_bytes);
  }
}

ChunkCache::Slot& ChunkCache::acquire(std::int64_t chunk, ChunkDecoder& decoder) {
  Slot*& place = slot_of_[static_cast<std::size_t>(chunk)];
  std::unique_lock lock{mutex_};
  loaded_.wait(lock, [&] { return place == nullptr || place->state == State::ready; });
  if (place != nullptr) {
    ++place->users;
    place->last_use = ++clock_;
    return *place;
  }
  Slot& slot = take_oldest();
  slot = {State::loading, chunk, 1, ++clock_, slot.bytes};
  place = &slot;
  lock.unlock();
  try {
    array_.read_chunk(chunk, decoder, slot.bytes);
  } catch (...) {
    lock.lock();
    slot = {State::empty, -1, 0, 0, slot.bytes};
    place = nullptr;
    loaded_.notify_all();
    throw;
  }
  lock.lock();
  slot.state = State::ready;
  loaded_.notify_all();
  return slot;
}

void ChunkCache::release(Slot& slot) noexcept {
  std::scoped_lock const lock{mutex_};
  --slot.users;
}

ChunkCache::Slot& ChunkCache::take_oldest() {
  // There is one: each user holds one slot at most, and this one holds none now.
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    if (slot.users == 0 && (oldest == nullptr || slot.last_use < oldest->last_use)) oldest = &slot;
  }
  MOTLEY_VALIDATE(bug,
                  oldest != nullptr,
                  "all " << slots_.size() << " chunks of the data cache are in use (more threads "
                         << "than it was made for); this is a bug of motley, please report it");
  if (oldest->chunk >= 0) slot_of_[static_cast<std::size_t>(oldest->chunk)] = nullptr;
  return *oldest;
}

}  // namespace motley::io::detail
