#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

namespace motley::test {

/// Records what Kokkos does while it lives: kernels, allocations, copies, fences and regions, with
/// their labels, through the callbacks of Kokkos Tools. One at a time; main thread only.
class KokkosEvents {
 public:
  enum class Kind { kernel, allocation, release, copy, fence_of_instance, global_fence, region };

  struct Event {
    Kind kind;
    std::string label;
  };

  KokkosEvents() : saved_{Kokkos::Tools::Experimental::get_callbacks()} {
    recorder() = this;
    namespace tools = Kokkos::Tools::Experimental;
    tools::set_begin_parallel_for_callback(on_kernel);
    tools::set_begin_parallel_reduce_callback(on_kernel);
    tools::set_begin_parallel_scan_callback(on_kernel);
    tools::set_begin_fence_callback(on_fence);
    tools::set_allocate_data_callback(on_allocation);
    tools::set_deallocate_data_callback(on_release);
    tools::set_begin_deep_copy_callback(on_copy);
    tools::set_push_region_callback(on_region);
  }
  KokkosEvents(KokkosEvents const&) = delete;
  KokkosEvents& operator=(KokkosEvents const&) = delete;
  KokkosEvents(KokkosEvents&&) = delete;
  KokkosEvents& operator=(KokkosEvents&&) = delete;
  ~KokkosEvents() {
    Kokkos::Tools::Experimental::set_callbacks(saved_);
    recorder() = nullptr;
  }

  [[nodiscard]] std::vector<Event> const& all() const { return events_; }

  [[nodiscard]] std::size_t count(Kind kind) const {
    return static_cast<std::size_t>(std::count_if(
        events_.begin(), events_.end(), [&](Event const& event) { return event.kind == kind; }));
  }

  /// Forgets what was recorded: call it after the warm-up.
  void clear() { events_.clear(); }

  /// EXPECT_TRUE(events.are_steady()): nothing was allocated, released or copied, and no fence was
  /// global; what a training step must keep to (S36).
  [[nodiscard]] testing::AssertionResult are_steady() const {
    return without("an allocation, a copy or a global fence", [](Event const& event) {
      return event.kind != Kind::kernel && event.kind != Kind::region &&
             event.kind != Kind::fence_of_instance;
    });
  }

  /// EXPECT_TRUE(events.are_named("motley::")): every label starts with the prefix (S35).
  [[nodiscard]] testing::AssertionResult are_named(std::string_view prefix) const {
    return without("a label of another form than " + std::string{prefix} + "folder::Thing::what",
                   [&](Event const& event) {
                     std::string_view const label = event.label;
                     return !label.starts_with(prefix) || parts_of(label) < 4;
                   });
  }

 private:
  template <class Predicate>
  [[nodiscard]] testing::AssertionResult without(std::string const& what,
                                                 Predicate const& is_bad) const {
    std::string found;
    for (Event const& event : events_) {
      if (is_bad(event)) found += "\n  " + std::string{name_of(event.kind)} + " " + event.label;
    }
    if (found.empty()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "there is " << what << ":" << found;
  }

  static std::size_t parts_of(std::string_view label) {
    std::size_t parts = 1;
    for (std::size_t at = label.find("::"); at != std::string_view::npos;
         at = label.find("::", at + 2)) {
      ++parts;
    }
    return parts;
  }

  static std::string_view name_of(Kind kind) {
    switch (kind) {
      case Kind::kernel:
        return "kernel";
      case Kind::allocation:
        return "allocation";
      case Kind::release:
        return "release";
      case Kind::copy:
        return "copy";
      case Kind::fence_of_instance:
        return "fence of an instance";
      case Kind::global_fence:
        return "global fence";
      case Kind::region:
        break;
    }
    return "region";
  }

  // The callbacks carry no pointer of ours, so the recorder has to be found from nothing.
  static KokkosEvents*& recorder() {
    static KokkosEvents* current = nullptr;
    return current;
  }

  static void record(Kind kind, char const* label) {
    if (recorder() != nullptr) recorder()->events_.push_back({kind, label});
  }
  static void on_kernel(char const* label, std::uint32_t /*device*/, std::uint64_t* /*id*/) {
    record(Kind::kernel, label);
  }
  static void on_fence(char const* label, std::uint32_t device, std::uint64_t* /*id*/) {
    // Kokkos fences before each callback while there are any; that is our doing, not the program's.
    if (std::string_view{label}.starts_with("Kokkos::Tools::")) return;
    // Kokkos numbers real instances from 1; 0 stands for all of a device.
    bool const is_global =
        Kokkos::Tools::Experimental::identifier_from_devid(device).instance_id == 0;
    record(is_global ? Kind::global_fence : Kind::fence_of_instance, label);
  }
  static void on_allocation(Kokkos_Profiling_SpaceHandle /*space*/,
                            char const* label,
                            void const* /*address*/,
                            std::uint64_t /*bytes*/) {
    record(Kind::allocation, label);
  }
  static void on_release(Kokkos_Profiling_SpaceHandle /*space*/,
                         char const* label,
                         void const* /*address*/,
                         std::uint64_t /*bytes*/) {
    record(Kind::release, label);
  }
  static void on_copy(Kokkos_Profiling_SpaceHandle /*to*/,
                      char const* to_label,
                      void const* /*to_address*/,
                      Kokkos_Profiling_SpaceHandle /*from*/,
                      char const* /*from_label*/,
                      void const* /*from_address*/,
                      std::uint64_t /*bytes*/) {
    record(Kind::copy, to_label);
  }
  static void on_region(char const* label) { record(Kind::region, label); }

  Kokkos::Tools::Experimental::EventSet saved_;
  std::vector<Event> events_;
};

}  // namespace motley::test
