#include <cmath>
#include <limits>
#include <mutex>
#include <ostream>
#include <sstream>

#include <fcntl.h>

#include "io/checkpoint/checkpoint.hpp"
#include "io/checkpoint/detail/opened.hpp"
#include "io/checkpoint/detail/pieces.hpp"
#include "io/hdf5/file.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

namespace fs = std::filesystem;

/// Σx² and max |x| of some elements.
struct Moments {
  double square_sum = 0.0;
  double max_abs = 0.0;
};

template <class T>
Moments moments_of(std::span<std::byte const> bytes) {
  Moments moments;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the file says what the bytes are
  auto const* const values = reinterpret_cast<T const*>(bytes.data());
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    auto const value = static_cast<double>(values[i]);
    moments.square_sum += value * value;
    if (!(std::abs(value) <= moments.max_abs)) moments.max_abs = std::abs(value);
    if (!std::isfinite(value)) moments.max_abs = std::numeric_limits<double>::quiet_NaN();
  }
  return moments;
}

Moments moments_of(DType dtype, std::span<std::byte const> bytes) {
  switch (dtype) {
    case DType::fp32:
      return moments_of<float>(bytes);
    case DType::bf16:
      return moments_of<BFloat16>(bytes);
    case DType::fp64:
      return moments_of<double>(bytes);
    case DType::fp16:
      break;
  }
  return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
}

std::vector<TensorNorm> read_norms(detail::OpenedCheckpoint const& opened) {
  auto const& records = opened.manifest.tensors;
  std::vector<Moments> sums(records.size());
  std::mutex mutex;
  auto const add = [&](detail::Piece const& piece, std::span<std::byte const> bytes) {
    Moments const part = moments_of(records[piece.record].dtype, bytes);
    std::lock_guard const guard{mutex};
    Moments& sum = sums[piece.record];
    sum.square_sum += part.square_sum;
    if (!(part.max_abs <= sum.max_abs)) sum.max_abs = part.max_abs;
  };
  auto const damage =
      detail::read_pieces(opened.state.get(), records, detail::pieces_of_all(records), 0, add);
  MOTLEY_VALIDATE(checkpoint,
                  damage.empty(),
                  "checkpoint " << opened.folder << " is damaged (" << detail::joined(damage)
                                << "); choose another one");
  std::vector<TensorNorm> norms;
  norms.reserve(sums.size());
  for (Moments const& sum : sums) norms.push_back({std::sqrt(sum.square_sum), sum.max_abs});
  return norms;
}

void print(std::ostream& out, char const* group, Attributes const& attributes) {
  for (auto const& [name, value] : attributes) {
    out << group << "." << name << " = ";
    std::visit([&](auto const& plain) { out << plain; }, value);
    out << "\n";
  }
}

/// What HDF5 finds in a file whose metadata are intact, compared with the manifest.
void compare_with_hdf5(detail::OpenedCheckpoint const& opened, std::vector<std::string>& damage) {
  fs::path const path = opened.folder / detail::state_file;
  hdf5::File const file = hdf5::File::open_to_read(path.string(), ErrorKind::checkpoint);
  for (TensorRecord const& record : opened.manifest.tensors) {
    std::string const name = detail::path_of(record);
    if (!file.contains(name)) {
      damage.push_back("tensor " + name + " is not in state.h5");
      continue;
    }
    hdf5::Dataset const dataset = file.open_dataset(name);
    bool is_same = dataset.element() == hdf5::element_of_dtype(record.dtype) &&
                   dataset.file_offset() == static_cast<std::uint64_t>(record.offset_bytes) &&
                   dataset.extents().size() == static_cast<std::size_t>(record.shape.order());
    for (int dim = 0; is_same && dim < record.shape.order(); ++dim) {
      is_same = dataset.extents()[static_cast<std::size_t>(dim)] == record.shape[dim];
    }
    if (!is_same) damage.push_back("tensor " + name + " of state.h5 is not what the manifest says");
  }
}

}  // namespace

std::string_view group_of(StateKind kind) noexcept {
  switch (kind) {
    case StateKind::parameter:
      return "/param";
    case StateKind::master:
      return "/master";
    case StateKind::first_moment:
      return "/adam/m";
    case StateKind::second_moment:
      break;
  }
  return "/adam/v";
}

std::span<NamedTensor const> StateTensors::of(StateKind kind) const noexcept {
  switch (kind) {
    case StateKind::parameter:
      return parameters;
    case StateKind::master:
      return masters;
    case StateKind::first_moment:
      return first_moments;
    case StateKind::second_moment:
      break;
  }
  return second_moments;
}

CheckpointInfo inspect_checkpoint(fs::path const& path, InspectNorms norms) {
  CheckpointInfo info;
  info.folder = detail::resolve_checkpoint(path);
  std::vector<std::string> damage;
  auto opened = detail::open_checkpoint(info.folder, damage);
  MOTLEY_VALIDATE(checkpoint,
                  opened && damage.empty(),
                  "checkpoint " << info.folder << " is damaged (" << detail::joined(damage)
                                << "); choose another one");
  if (norms == InspectNorms::yes) info.norms = read_norms(*opened);
  info.file_bytes = opened->manifest.file_bytes;
  info.tensors = std::move(opened->manifest.tensors);
  info.meta = std::move(opened->manifest.meta);
  return info;
}

std::string to_text(CheckpointInfo const& info) {
  std::ostringstream out;
  CheckpointMeta const& meta = info.meta;
  out << "checkpoint " << info.folder.string() << "\n"
      << "step = " << meta.step << "\ntokens = " << meta.tokens
      << "\nnext_sample = " << meta.next_sample << "\ndata_fingerprint = " << meta.data_fingerprint
      << "\nmodel_hash = " << meta.model_hash << "\n";
  print(out, "data", meta.data);
  print(out, "sched", meta.schedule);
  print(out, "rng", meta.random);
  out << "state.h5: " << 1e-9 * static_cast<double>(info.file_bytes) << " GB in "
      << info.tensors.size() << " tensors\n";
  for (std::size_t i = 0; i < info.tensors.size(); ++i) {
    TensorRecord const& record = info.tensors[i];
    out << detail::path_of(record) << " " << to_string(record.dtype) << " " << record.shape;
    if (!info.norms.empty()) {
      out << " norm=" << info.norms[i].norm << " max_abs=" << info.norms[i].max_abs;
    }
    out << "\n";
  }
  return out.str();
}

std::vector<std::string> verify_checkpoint(fs::path const& path, int threads) {
  std::vector<std::string> damage;
  auto const opened = detail::open_checkpoint(detail::resolve_checkpoint(path), damage);
  if (!opened) return damage;
  bool const is_readable = damage.empty();
  // What was just written is still in memory: the disk is to be read.
  ::posix_fadvise(opened->state.get(), 0, 0, POSIX_FADV_DONTNEED);
  auto const& records = opened->manifest.tensors;
  for (std::string& sentence :
       detail::read_pieces(opened->state.get(), records, detail::pieces_of_all(records), threads)) {
    damage.push_back(std::move(sentence));
  }
  if (is_readable) compare_with_hdf5(*opened, damage);
  return damage;
}

}  // namespace motley::io
