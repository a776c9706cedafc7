#include "tests/bench/kernel_profile.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>

#include <Kokkos_Core.hpp>

namespace motley::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Running {
  std::string label;
  Clock::time_point start;
};

/// The callbacks of Kokkos Tools carry no user data, so what they write to is static.
struct Profile {
  std::map<std::string, KernelTime> kernels;
  std::vector<Running> running;
};
Profile& profile() {
  static Profile instance;
  return instance;
}

void begin(char const* label, std::uint32_t /*device*/, std::uint64_t* id) {
  *id = profile().running.size();
  profile().running.push_back({label, Clock::now()});
}

void end(std::uint64_t /*id*/) {
  if (profile().running.empty()) return;
  Running const last = profile().running.back();
  profile().running.pop_back();
  KernelTime& kernel = profile().kernels[last.label];
  kernel.label = last.label;
  kernel.seconds += std::chrono::duration<double>(Clock::now() - last.start).count();
  ++kernel.calls;
}

void push(char const* label) {
  std::uint64_t ignored = 0;
  begin(label, 0, &ignored);
}
void pop() { end(0); }

}  // namespace

void start_profile() {
  namespace tools = Kokkos::Tools::Experimental;
  profile() = {};
  tools::set_begin_parallel_for_callback(begin);
  tools::set_end_parallel_for_callback(end);
  tools::set_begin_parallel_reduce_callback(begin);
  tools::set_end_parallel_reduce_callback(end);
  tools::set_begin_parallel_scan_callback(begin);
  tools::set_end_parallel_scan_callback(end);
  tools::set_push_region_callback(push);
  tools::set_pop_region_callback(pop);
}

std::vector<KernelTime> stop_profile() {
  Kokkos::Tools::Experimental::pause_tools();
  std::vector<KernelTime> list;
  for (auto const& entry : profile().kernels) list.push_back(entry.second);
  std::sort(list.begin(), list.end(), [](KernelTime const& a, KernelTime const& b) {
    return a.seconds > b.seconds;
  });
  return list;
}

}  // namespace motley::bench
