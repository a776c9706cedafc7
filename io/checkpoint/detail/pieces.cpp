#include "io/checkpoint/detail/pieces.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include <omp.h>

#include "io/checkpoint/detail/manifest.hpp"
#include "io/durable_file.hpp"
#include "kernels/base/error.hpp"

namespace motley::io::detail {
namespace {

// Large enough for a disk, small enough to stay in a cache between checksum and copy.
constexpr std::int64_t piece_bytes = std::int64_t{1} << 20;

/// Indices of records by their path.
std::map<std::string, std::size_t> index_of(std::span<TensorRecord const> records) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < records.size(); ++i) index[path_of(records[i])] = i;
  return index;
}

TensorRecord record_of(StateKind kind, NamedTensor const& tensor) {
  return {kind, tensor.name, tensor.dtype, tensor.shape, 0, {}};
}

/// The intervals of each tensor of a state, by path, sorted by their first row.
std::map<std::string, std::vector<NamedTensor const*>> intervals_of(StateTensors const& state) {
  std::map<std::string, std::vector<NamedTensor const*>> intervals;
  for (StateKind const kind : state_kinds) {
    for (NamedTensor const& tensor : state.of(kind)) {
      if (!tensor.interval.is_empty()) {
        intervals[path_of(record_of(kind, tensor))].push_back(&tensor);
      }
    }
  }
  for (auto& [path, tensors] : intervals) {
    std::sort(tensors.begin(), tensors.end(), [](NamedTensor const* a, NamedTensor const* b) {
      return a->interval.begin < b->interval.begin;
    });
  }
  return intervals;
}

void expect_covered_once(std::string const& path, std::span<NamedTensor const* const> intervals) {
  std::int64_t covered = 0;
  for (NamedTensor const* const tensor : intervals) {
    MOTLEY_VALIDATE(bug,
                    tensor->interval.begin == covered,
                    "rows " << tensor->interval << " of \"" << path << "\" follow row " << covered
                            << " (a save wants every row once); this is a bug of motley, please "
                               "report it");
    covered = tensor->interval.end;
  }
  std::int64_t const rows = intervals.front()->shape[0];
  MOTLEY_VALIDATE(bug,
                  covered == rows,
                  "rows of \"" << path << "\" end at " << covered << " of " << rows
                               << " (a save wants every row once); this is a bug of motley, "
                                  "please report it");
}

/// Appends the elements [first, end) of a tensor, which start at `data` in memory, in pieces.
void append(std::vector<Piece>& pieces, TensorRecord const& record, Piece piece, std::int64_t end) {
  auto const element_bytes = static_cast<std::int64_t>(size_bytes(record.dtype));
  while (piece.first < end) {
    piece.count = std::min(end - piece.first, piece_bytes / element_bytes);
    pieces.push_back(piece);
    piece.first += piece.count;
    if (piece.data != nullptr) piece.data += piece.count * element_bytes;
  }
}

/// Appends all rows of one tensor: those wanted, and those between them.
void append_tensor(std::vector<Piece>& pieces,
                   TensorRecord const& record,
                   std::size_t index,
                   std::span<NamedTensor const* const> intervals) {
  std::int64_t const row = record.shape.row_count();
  std::int64_t covered = 0;
  for (NamedTensor const* const tensor : intervals) {
    auto* data = static_cast<std::byte*>(tensor->data);
    auto const row_bytes = row * static_cast<std::int64_t>(size_bytes(record.dtype));
    auto const [begin, end] = tensor->interval;
    append(pieces, record, {index, nullptr, covered * row, 0, true}, begin * row);
    covered = std::max(covered, begin);
    std::int64_t const repeated_end = std::clamp(covered, begin, end);
    append(pieces, record, {index, data, begin * row, 0, false}, repeated_end * row);
    data += (repeated_end - begin) * row_bytes;
    append(pieces, record, {index, data, repeated_end * row, 0, true}, end * row);
    covered = std::max(covered, end);
  }
  append(pieces, record, {index, nullptr, covered * row, 0, true}, record.shape.count());
}

void sort_by_offset(std::vector<Piece>& pieces, std::span<TensorRecord const> records) {
  std::stable_sort(pieces.begin(), pieces.end(), [&](Piece const& a, Piece const& b) {
    return file_offset(records[a.record], a) < file_offset(records[b.record], b);
  });
}

/// What was found out about a tensor while its pieces were read.
struct Findings {
  Checksum sum;
  std::string trouble;  ///< why it could not be read
};

/// Adds the record of a tensor, or checks that a further interval of it belongs to the same.
void add_record(StateKind kind,
                NamedTensor const& tensor,
                std::vector<TensorRecord>& records,
                std::map<std::string, std::size_t>& index) {
  MOTLEY_VALIDATE(bug,
                  !tensor.name.empty() && tensor.name != "." &&
                      tensor.name.find('/') == std::string::npos && tensor.shape.order() > 0 &&
                      tensor.shape.count() > 0,
                  "tensor \"" << tensor.name << "\" of shape " << tensor.shape
                              << " cannot be a data set (it needs elements, and a name without "
                                 "'/'); this is a bug of motley, please report it");
  TensorRecord const record = record_of(kind, tensor);
  auto const [place, is_new] = index.try_emplace(path_of(record), records.size());
  if (is_new) records.push_back(record);
  TensorRecord const& first = records[place->second];
  MOTLEY_VALIDATE(bug,
                  first.shape == tensor.shape && first.dtype == tensor.dtype,
                  "two intervals of \"" << place->first
                                        << "\" differ in shape or dtype (they are parts of one "
                                           "tensor); this is a bug of motley, please report it");
}

/// What the findings say against the manifest, one sentence for each damaged tensor.
std::vector<std::string> damage_of(std::span<TensorRecord const> records,
                                   std::vector<Findings> const& findings,
                                   std::vector<bool> const& is_read) {
  std::vector<std::string> damage;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!is_read[i]) continue;
    std::string const name = std::string{"tensor "} + path_of(records[i]) + " of state.h5 ";
    if (!findings[i].trouble.empty()) {
      damage.push_back(name + "cannot be read (" + findings[i].trouble + ")");
    } else if (findings[i].sum != records[i].checksum) {
      damage.push_back(name + "is damaged (its checksum is " + io::to_hex(findings[i].sum) +
                       ", the manifest says " + io::to_hex(records[i].checksum) + ")");
    }
  }
  return damage;
}

}  // namespace

std::vector<TensorRecord> records_of(StateTensors const& state) {
  std::vector<TensorRecord> records;
  std::map<std::string, std::size_t> index;
  for (StateKind const kind : state_kinds) {
    for (NamedTensor const& tensor : state.of(kind)) {
      add_record(kind, tensor, records, index);
    }
  }
  for (auto const& [path, tensors] : intervals_of(state)) expect_covered_once(path, tensors);
  return records;
}

std::vector<std::string> differences(std::span<TensorRecord const> records,
                                     StateTensors const& state) {
  std::vector<std::string> result;
  std::set<std::string> wanted;
  auto const index = index_of(records);
  for (StateKind const kind : state_kinds) {
    for (NamedTensor const& tensor : state.of(kind)) {
      std::string const path = path_of(record_of(kind, tensor));
      if (!wanted.insert(path).second) continue;
      auto const found = index.find(path);
      std::ostringstream text;
      if (found == index.end()) {
        text << path << " is not in the checkpoint";
      } else if (TensorRecord const& record = records[found->second];
                 record.shape != tensor.shape || record.dtype != tensor.dtype) {
        text << path << " is " << to_string(record.dtype) << " " << record.shape
             << " in the checkpoint and " << to_string(tensor.dtype) << " " << tensor.shape
             << " in the model";
      }
      if (!text.str().empty()) result.push_back(text.str());
    }
  }
  if (state.coverage == StateTensors::Coverage::part_of_model) return result;
  for (TensorRecord const& record : records) {
    if (!state.of(record.kind).empty() && !wanted.contains(path_of(record))) {
      result.push_back(path_of(record) + " is not in the model");
    }
  }
  return result;
}

std::vector<Piece> pieces_of(std::span<TensorRecord const> records, StateTensors const& state) {
  std::vector<Piece> pieces;
  auto const index = index_of(records);
  for (auto const& [path, tensors] : intervals_of(state)) {
    std::size_t const i = index.at(path);
    append_tensor(pieces, records[i], i, tensors);
  }
  sort_by_offset(pieces, records);
  return pieces;
}

std::vector<Piece> pieces_of_all(std::span<TensorRecord const> records) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < records.size(); ++i) append_tensor(pieces, records[i], i, {});
  sort_by_offset(pieces, records);
  return pieces;
}

std::int64_t file_offset(TensorRecord const& record, Piece const& piece) noexcept {
  return record.offset_bytes + piece.first * static_cast<std::int64_t>(size_bytes(record.dtype));
}

std::size_t bytes_of(TensorRecord const& record, Piece const& piece) noexcept {
  return static_cast<std::size_t>(piece.count) * size_bytes(record.dtype);
}

void run_parallel(std::int64_t count,
                  int threads,
                  std::function<void(std::int64_t)> const& action) {
  std::atomic<bool> is_failed{false};
  std::exception_ptr failure;
  std::mutex mutex;
  // OpenMP's threads, since they are spread over the cores already where the run binds threads.
#pragma omp parallel for schedule(dynamic, 1) \
    num_threads(threads > 0 ? threads : omp_get_max_threads())
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_failed) continue;
    try {
      action(i);
    } catch (...) {
      std::lock_guard const guard{mutex};
      if (!is_failed.exchange(true)) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

std::vector<std::string> read_pieces(int descriptor,
                                     std::span<TensorRecord const> records,
                                     std::span<Piece const> pieces,
                                     int threads,
                                     VisitPiece const& visit) {
  std::vector<Findings> findings(records.size());
  std::vector<bool> is_read(records.size());
  for (Piece const& piece : pieces) is_read[piece.record] = true;
  std::mutex mutex;
  auto const read = [&](std::int64_t i) {
    Piece const& piece = pieces[static_cast<std::size_t>(i)];
    TensorRecord const& record = records[piece.record];
    thread_local std::vector<std::byte> scratch;
    std::size_t const bytes = bytes_of(record, piece);
    if (piece.data == nullptr && scratch.size() < bytes) scratch.resize(bytes);
    std::span const target{piece.data != nullptr ? piece.data : scratch.data(), bytes};
    std::int64_t const count = read_at(descriptor, target, file_offset(record, piece));
    bool const is_whole = count == static_cast<std::int64_t>(bytes);
    Checksum part;
    if (is_whole && piece.is_counted) {
      part = checksum_part(record.dtype, target.data(), piece.first, piece.count);
    }
    if (is_whole && visit) visit(piece, target);
    std::lock_guard const guard{mutex};
    findings[piece.record].sum += part;
    if (count < 0) findings[piece.record].trouble = system_error_text(static_cast<int>(-count));
    if (count >= 0 && !is_whole) findings[piece.record].trouble = "the file ends inside it";
  };
  run_parallel(static_cast<std::int64_t>(pieces.size()), threads, read);

  return damage_of(records, findings, is_read);
}

}  // namespace motley::io::detail
