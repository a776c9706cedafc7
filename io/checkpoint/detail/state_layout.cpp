#include "io/checkpoint/detail/state_layout.hpp"

#include <algorithm>

#include "io/checkpoint/detail/manifest.hpp"
#include "io/durable_file.hpp"
#include "io/hash.hpp"
#include "io/hdf5/file.hpp"
#include "kernels/base/error.hpp"

namespace motley::io::detail {
namespace {

constexpr std::int64_t alignment_bytes = 4096;  // a page, and the block of common file systems

void set_attributes(hdf5::File& file, std::string const& group, Attributes const& attributes) {
  hdf5::GroupHandle const handle = file.make_group(group);
  hdf5::Attributes target{handle.get(), {file.path(), group, ErrorKind::write}};
  for (auto const& [name, value] : attributes) {
    std::visit([&, &key = name](auto const& plain) { target.set(key, plain); }, value);
  }
}

void set_groups(hdf5::File& file, CheckpointMeta const& meta) {
  Attributes data = meta.data;
  data["fingerprint"] = meta.data_fingerprint;
  data["next_sample"] = meta.next_sample;
  Attributes schedule = meta.schedule;
  schedule["step"] = meta.step;
  schedule["tokens"] = meta.tokens;
  set_attributes(file, "/data", data);
  set_attributes(file, "/sched", schedule);
  set_attributes(file, "/rng", meta.random);
}

std::vector<std::int64_t> extents_of(Shape const& shape) {
  std::vector<std::int64_t> extents;
  extents.reserve(static_cast<std::size_t>(shape.order()));
  for (int dim = 0; dim < shape.order(); ++dim) extents.push_back(shape[dim]);
  return extents;
}

void create_tensors(hdf5::File& file, std::vector<TensorRecord>& tensors) {
  static_cast<void>(file.make_group("/adam"));
  for (StateKind const kind : state_kinds) {
    bool const is_used =
        std::any_of(tensors.begin(), tensors.end(), [&](TensorRecord const& record) {
          return record.kind == kind;
        });
    if (is_used) static_cast<void>(file.make_group(std::string{group_of(kind)}));
  }
  for (TensorRecord& record : tensors) {
    hdf5::DatasetSpec spec;
    spec.element = hdf5::element_of_dtype(record.dtype);
    spec.extents = extents_of(record.shape);
    hdf5::Dataset dataset = file.create_dataset(path_of(record), spec);
    auto const offset = dataset.file_offset();
    MOTLEY_VALIDATE(bug,
                    offset.has_value(),
                    "data set \"" << path_of(record)
                                  << "\" has no place in its file (HDF5 allocates it early); "
                                     "this is a bug of motley, please report it");
    record.offset_bytes = static_cast<std::int64_t>(*offset);
    dataset.close();
  }
}

/// A range of bytes of a file.
struct ByteRange {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

std::vector<ByteRange> outside_ranges(std::span<TensorRecord const> tensors,
                                      std::int64_t file_bytes) {
  std::vector<TensorRecord const*> order;
  for (TensorRecord const& record : tensors) order.push_back(&record);
  std::sort(order.begin(), order.end(), [](TensorRecord const* a, TensorRecord const* b) {
    return a->offset_bytes < b->offset_bytes;
  });
  std::vector<ByteRange> ranges;
  std::int64_t position = 0;
  for (TensorRecord const* const record : order) {
    std::int64_t const gap = record->offset_bytes - position;
    if (gap > 0) ranges.push_back({position, gap});
    position = std::max(position, record->offset_bytes + record->bytes());
  }
  if (file_bytes > position) ranges.push_back({position, file_bytes - position});
  return ranges;
}

}  // namespace

void create_state_file(std::filesystem::path const& file,
                       CheckpointMeta const& meta,
                       std::vector<TensorRecord>& tensors) {
  hdf5::File state = hdf5::File::create(file.string(), {ErrorKind::write, alignment_bytes});
  create_tensors(state, tensors);
  set_groups(state, meta);
  state.close();
}

std::int64_t most_bytes(std::span<TensorRecord const> tensors) noexcept {
  // An object header takes 272 bytes and its name in the group some more; alignment takes a page.
  constexpr std::int64_t overhead_bytes = 2 * alignment_bytes;
  constexpr std::int64_t fixed_bytes = 1 << 20;
  std::int64_t bytes = fixed_bytes;
  for (TensorRecord const& record : tensors) {
    bytes += record.bytes() + overhead_bytes + static_cast<std::int64_t>(record.name.size());
  }
  return bytes;
}

std::optional<std::string> hash_outside(int descriptor,
                                        std::span<TensorRecord const> tensors,
                                        std::int64_t file_bytes) {
  Sha256 hash;
  std::vector<std::byte> content;
  for (ByteRange const& range : outside_ranges(tensors, file_bytes)) {
    content.resize(static_cast<std::size_t>(range.bytes));
    std::int64_t const count = read_at(descriptor, content, range.offset);
    if (count != range.bytes) return std::nullopt;
    hash.update(content);
  }
  return to_hex(hash.finish());
}

}  // namespace motley::io::detail
