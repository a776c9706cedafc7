#include "model/train/host_memory.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace motley::model {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

/// Value of "<key> <number>" or "<key>: <number> kB" in a file of such lines, in bytes.
std::optional<std::size_t> find_value(std::filesystem::path const& file, std::string_view key) {
  std::ifstream in{file};
  std::string name;
  std::size_t value = 0;
  while (in >> name) {
    if (name == key && in >> value) {
      std::string unit;
      std::getline(in, unit);
      return unit.find("kB") == std::string::npos ? value : value * 1024;
    }
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

std::optional<std::size_t> read_number(std::filesystem::path const& file) {
  std::ifstream in{file};
  std::size_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // missing, or "max"
}

/// What one control group leaves to the processes in it.
std::size_t left_in_group(std::filesystem::path const& group) {
  auto const limit = read_number(group / "memory.max");
  auto const used = read_number(group / "memory.current");
  if (!limit || !used) return unlimited;
  std::size_t const cache = find_value(group / "memory.stat", "inactive_file").value_or(0);
  std::size_t const held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

/// Path of the control group of this process under the unified hierarchy; empty if there is none.
std::string own_group() {
  std::ifstream in{"/proc/self/cgroup"};
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return {};
}

std::size_t left_in_groups() {
  std::filesystem::path const root{"/sys/fs/cgroup"};
  std::filesystem::path group = root / std::filesystem::path{own_group()}.relative_path();
  std::size_t left = left_in_group(root);
  for (; group != root && group.has_relative_path(); group = group.parent_path()) {
    left = std::min(left, left_in_group(group));
  }
  return left;
}

}  // namespace

std::size_t available_memory_bytes() {
  return std::min(find_value("/proc/meminfo", "MemAvailable:").value_or(unlimited),
                  left_in_groups());
}

std::size_t resident_memory_bytes() {
  return find_value("/proc/self/status", "VmRSS:").value_or(0);
}

std::size_t peak_resident_memory_bytes() {
  return find_value("/proc/self/status", "VmHWM:").value_or(0);
}

}  // namespace motley::model
