#include "kernels/base/arena.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include <sys/mman.h>

namespace motley {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20U;
constexpr bool is_host_memory =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, DeviceMemory>::accessible;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Touches every page once, by the threads that will use it.
void touch(std::byte* base, std::size_t bytes) {
  auto const pages = static_cast<std::int64_t>(bytes / huge_page_bytes);
  Kokkos::parallel_for(
      "motley::base::Arena::touch",
      Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, pages),
      [=](std::int64_t page) {
        std::memset(base + static_cast<std::size_t>(page) * huge_page_bytes, 0, huge_page_bytes);
      });
  Kokkos::DefaultHostExecutionSpace{}.fence("motley::base::Arena::touch");
}

std::byte* map_host(std::size_t bytes) {
  // One huge page more than needed, so that the start can be aligned; the ends are unmapped.
  std::size_t const mapped = bytes + huge_page_bytes;
  void* const raw =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MOTLEY_VALIDATE(plan,
                  raw != MAP_FAILED,
                  "the system refused " << bytes << " bytes of memory (" << std::strerror(errno)
                                        << "); use a smaller model or micro-batch, or more ranks");
  auto* const start = static_cast<std::byte*>(raw);
  std::size_t const lead = round_up(reinterpret_cast<std::size_t>(start), huge_page_bytes) -
                           reinterpret_cast<std::size_t>(start);
  if (lead > 0) munmap(start, lead);
  if (lead < huge_page_bytes) munmap(start + lead + bytes, huge_page_bytes - lead);
  std::byte* const base = start + lead;
  // Advice only: without transparent huge pages the run is slower, not wrong.
  static_cast<void>(madvise(base, bytes, MADV_HUGEPAGE));
  touch(base, bytes);
  return base;
}

}  // namespace

Arena Arena::counting() { return Arena{CountingTag{}}; }

Arena::Arena(CountingTag /*tag*/) noexcept
    : is_counting_{true}, capacity_{std::numeric_limits<std::size_t>::max()} {}

Arena::Arena(std::size_t capacity_bytes)
    : capacity_{round_up(std::max(capacity_bytes, std::size_t{1}), huge_page_bytes)} {
  if constexpr (is_host_memory) {
    base_ = map_host(capacity_);
  } else {
    base_ = static_cast<std::byte*>(
        Kokkos::kokkos_malloc<DeviceMemory>("motley::base::Arena::memory", capacity_));
  }
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other) return *this;
  release();
  is_counting_ = other.is_counting_;
  base_ = std::exchange(other.base_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  used_ = std::exchange(other.used_, 0);
  peak_ = std::exchange(other.peak_, 0);
  scopes_ = std::exchange(other.scopes_, 0);
  entries_ = std::move(other.entries_);
  return *this;
}

Arena::~Arena() { release(); }

void Arena::release() noexcept {
  if (base_ == nullptr) return;
  if constexpr (is_host_memory) {
    munmap(base_, capacity_);
  } else {
    Kokkos::kokkos_free<DeviceMemory>(base_);
  }
  base_ = nullptr;
}

void* Arena::take(std::string_view label, std::size_t bytes) {
  std::size_t const rounded = round_up(bytes, alignment_bytes);
  MOTLEY_VALIDATE(bug,
                  rounded <= capacity_ - used_,
                  "arena has no room for \""
                      << label << "\" (" << rounded << " bytes asked, " << capacity_ - used_
                      << " of " << capacity_
                      << " left); the memory model missed it, please report");
  std::byte* const start = is_counting_ ? nullptr : base_ + used_;
  used_ += rounded;
  peak_ = std::max(peak_, used_);
  if (scopes_ == 0) entries_.push_back({std::string{label}, rounded});
  return start;
}

}  // namespace motley
