#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/view.hpp"

namespace motley {

/// Owner of all device memory of a rank: one mapping, huge-page aligned, touched once, handed out
/// as views in order and never freed inside a step.
///
/// The same code sizes and fills it: run the allocating function once on a `counting()` arena
/// (views without memory, for their sizes only), check the total against the machine, then run it
/// again on an arena of that capacity. So what the memory model predicts is what is allocated.
///
/// Scratch memory is taken under an `ArenaScope`, which gives it back at its end: stack order.
class Arena {
 public:
  static constexpr std::size_t alignment_bytes = 256;  // a cache line on CPU, a segment on GPU

  struct Entry {
    std::string label;
    std::size_t bytes = 0;
  };

  /// An arena without memory: counts, and hands out views that must not be dereferenced.
  [[nodiscard]] static Arena counting();
  /// Maps and touches `capacity_bytes`. Throws Error{plan} if the system refuses.
  explicit Arena(std::size_t capacity_bytes);

  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;
  Arena(Arena const&) = delete;
  Arena& operator=(Arena const&) = delete;
  ~Arena();

  /// A zeroed (on first use) view of the given extents. Throws Error{bug} beyond the capacity.
  template <class T>
  [[nodiscard]] View1<T> make(std::string_view label, std::int64_t n0) {
    return View1<T>{static_cast<T*>(take(label, bytes_of<T>({n0}))), size(n0)};
  }
  template <class T>
  [[nodiscard]] View2<T> make(std::string_view label, std::int64_t n0, std::int64_t n1) {
    return View2<T>{static_cast<T*>(take(label, bytes_of<T>({n0, n1}))), size(n0), size(n1)};
  }
  template <class T>
  [[nodiscard]] View3<T> make(std::string_view label,
                              std::int64_t n0,
                              std::int64_t n1,
                              std::int64_t n2) {
    return View3<T>{
        static_cast<T*>(take(label, bytes_of<T>({n0, n1, n2}))), size(n0), size(n1), size(n2)};
  }
  /// Raw bytes, aligned to `alignment_bytes`; null on a counting arena.
  [[nodiscard]] void* take(std::string_view label, std::size_t bytes);

  [[nodiscard]] bool is_counting() const noexcept { return is_counting_; }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_; }
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_; }
  [[nodiscard]] std::size_t capacity_bytes() const noexcept { return capacity_; }
  /// What was taken outside scopes, in order: the rows of the memory table.
  [[nodiscard]] std::vector<Entry> const& entries() const noexcept { return entries_; }

 private:
  friend class ArenaScope;
  struct CountingTag {};
  explicit Arena(CountingTag) noexcept;

  template <class T>
  static std::size_t bytes_of(Shape const& shape) {
    return static_cast<std::size_t>(shape.count()) * sizeof(T);
  }
  static std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }
  void release() noexcept;

  bool is_counting_ = false;
  std::byte* base_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
  int scopes_ = 0;
  std::vector<Entry> entries_;
};

/// Gives back, at the end of the scope, what was taken from the arena inside it.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) noexcept : arena_{arena}, mark_{arena.used_} {
    ++arena.scopes_;
  }
  ArenaScope(ArenaScope const&) = delete;
  ArenaScope& operator=(ArenaScope const&) = delete;
  ArenaScope(ArenaScope&&) = delete;
  ArenaScope& operator=(ArenaScope&&) = delete;
  ~ArenaScope() {
    arena_.used_ = mark_;
    --arena_.scopes_;
  }

 private:
  Arena& arena_;
  std::size_t mark_;
};

}  // namespace motley
