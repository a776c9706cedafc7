#include "model/plan/memory_table.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace motley::model {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

void write_row(std::ostream& out, std::string_view what, std::size_t bytes) {
  out << std::left << std::setw(24) << what << std::right << std::setw(10) << std::fixed
      << std::setprecision(3) << static_cast<double>(bytes) / gib << " GiB\n";
}

}  // namespace

void MemoryTable::add(std::string_view what, std::size_t bytes) {
  auto const row =
      std::find_if(rows.begin(), rows.end(), [&](Row const& each) { return each.what == what; });
  if (row == rows.end()) {
    rows.push_back({std::string{what}, bytes});
  } else {
    row->bytes += bytes;
  }
}

std::size_t MemoryTable::total_bytes() const noexcept {
  std::size_t total = 0;
  for (Row const& row : rows) total += row.bytes;
  return total;
}

std::size_t MemoryTable::bytes_of(std::string_view what) const noexcept {
  auto const row =
      std::find_if(rows.begin(), rows.end(), [&](Row const& each) { return each.what == what; });
  return row == rows.end() ? 0 : row->bytes;
}

std::string MemoryTable::to_string() const {
  std::ostringstream out;
  for (Row const& row : rows) write_row(out, row.what, row.bytes);
  write_row(out, "total", total_bytes());
  return out.str();
}

}  // namespace motley::model
