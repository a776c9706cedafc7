#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/checkpoint/checksum.hpp"
#include "io/run_folder.hpp"
#include "kernels/base/named_tensor.hpp"

// A checkpoint is a folder that holds whole logical tensors and knows nothing of ranks:
//
//   checkpoints/step_00001000/state.h5       /param/<name> /master/<name> /adam/m/<name>
//                                            /adam/v/<name>; /data /sched /rng with attributes
//   checkpoints/step_00001000/manifest.json  written last: without it the rest does not count
//   checkpoints/latest                       the name of the newest folder
//
// Data sets are contiguous and 4 KiB aligned, and any HDF5 tool reads them; bf16 is an HDF5 float
// type of 16 bits (sign 1, exponent 8, mantissa 7), which h5py shows as float32. `latest` is a file
// and no symbolic link, since tools that copy folders follow links and would copy gigabytes twice.

namespace motley::io {

/// The kinds of state a logical tensor has, each a group of state.h5.
enum class StateKind { parameter, master, first_moment, second_moment };

inline constexpr StateKind state_kinds[] = {
    StateKind::parameter, StateKind::master, StateKind::first_moment, StateKind::second_moment};

/// "/param", "/master", "/adam/m", "/adam/v"
[[nodiscard]] std::string_view group_of(StateKind kind) noexcept;

/// The state of a model in memory. A tensor may come as several intervals of rows; for a save they
/// cover it whole and without overlap, for a load they may be any. Masters are empty where the
/// parameters themselves are fp32 or fp64.
struct StateTensors {
  std::span<NamedTensor const> parameters;
  std::span<NamedTensor const> masters;
  std::span<NamedTensor const> first_moments;
  std::span<NamedTensor const> second_moments;
  /// On load: whether the tensors given of a kind are all that a checkpoint should hold of it.
  enum class Coverage { whole_model, part_of_model };
  Coverage coverage = Coverage::whole_model;

  [[nodiscard]] std::span<NamedTensor const> of(StateKind kind) const noexcept;
};

/// Small named values: attributes of a group of state.h5 and keys of the manifest. Numbers are
/// finite.
using Attributes = std::map<std::string, std::variant<std::int64_t, double, std::string>>;

/// What a checkpoint says beside its tensors.
struct CheckpointMeta {
  std::int64_t step = 0;         ///< optimizer updates done
  std::int64_t tokens = 0;       ///< valid tokens trained on so far
  std::int64_t next_sample = 0;  ///< data cursor: global position of the first sample not yet used
  std::string data_fingerprint;  ///< of the data set, its tokenizer and the order of samples
  std::string model_hash;        ///< of the model specification
  std::string config;            ///< resolved run.toml
  std::string plan;              ///< plan.toml, empty where there is none
  Attributes data;               ///< more of the data reader's state, such as its epoch
  Attributes schedule;           ///< state of the learning-rate schedule and of the loss scale
  Attributes random;             ///< seed
};

struct SaveOptions {
  std::int64_t keep_last = 3;  ///< newest checkpoints that are kept, at least 1
  std::int64_t keep_every =
      0;  ///< steps; checkpoints at multiples of it are kept for ever; 0: none
  bool verify =
      true;         ///< never delete the only checkpoint that was read back, see `save_checkpoint`
  int threads = 0;  ///< 0: as many as OpenMP would take
};

struct SaveReport {
  std::filesystem::path folder;
  std::int64_t bytes = 0;
  double seconds = 0.0;  ///< from the call to the durable rename
  double gb_per_s = 0.0;
  double verify_seconds = 0.0;  ///< reading one back before an older one was deleted; often 0
  std::vector<std::string>
      warnings;  ///< for the log, such as a checkpoint that could not be deleted
};

/// Writes a checkpoint: free space is checked, everything goes to `step_NNNNNNNN.epoch_<n>.tmp`, is
/// synced and renamed; then `latest` is replaced, and folders beyond the keep rules are deleted.
/// With `verify`, the newest checkpoint is read back before a deletion that would leave none that
/// this process has loaded or read back (about one save in `keep_last`). An older checkpoint of the
/// same step is replaced.
///
/// Throws   Error{write} if it cannot be written (full disk): nothing of it is left, and the
///          checkpoints before it are as they were: training may go on and save again later.
///          Error{usage} if another process owns the run folder. Error{bug} if intervals overlap or
///          leave gaps
/// Cost     one pass over the state, checksums included
SaveReport save_checkpoint(RunFolder const& folder,
                           CheckpointMeta const& meta,
                           StateTensors const& tensors,
                           SaveOptions const& options = {});

/// Renames the checkpoints of later steps ("step_00003000.abandoned_<epoch>"), so that none of them
/// is taken for the newest. To be called once the run goes on after `step`: what lies beyond is
/// damaged, or a past that the user went back from.
///
/// Returns  the new names, for the log
/// Throws   Error{usage} if another process owns the run folder; Error{write}
std::vector<std::filesystem::path> set_aside_checkpoints_after(RunFolder const& folder,
                                                               std::int64_t step);

/// checkpoint.resume: "never", "auto" or a path.
struct Resume {
  enum class Mode { never, newest, path };
  Mode mode = Mode::newest;
  std::filesystem::path path;  ///< a checkpoint folder, or a run folder: its newest one
};

[[nodiscard]] Resume parse_resume(std::string_view value);

struct LoadReport {
  CheckpointMeta meta;
  std::filesystem::path folder;
  std::int64_t bytes = 0;  ///< read
  double seconds = 0.0;
  double gb_per_s = 0.0;
};

/// Looks at the meta data of a checkpoint before its tensors are read, and refuses it by throwing:
/// other model (Error{checkpoint}), other data (Error{data}), other optimizer key (Error{usage}).
using AcceptCheckpoint = std::function<void(CheckpointMeta const&)>;

/// Fills `tensors` from the newest intact checkpoint, or from the one that `resume` names.
/// Damaged ones are skipped with a warning that names file and tensor; what `accept` throws ends
/// the search. Every tensor is checked whole against the manifest, also where only a part is
/// wanted.
///
/// Returns  empty if there is nothing to resume (said in one loud line), or for `never`
/// Throws   Error{usage} for `never` in a folder that holds a run; Error{checkpoint} if a named
///          checkpoint is missing or damaged, if all are damaged, or if names, shapes or dtypes
///          differ from the tensors asked for (all differences are listed); what `accept` throws
[[nodiscard]] std::optional<LoadReport> resume_checkpoint(std::filesystem::path const& run_folder,
                                                          Resume const& resume,
                                                          StateTensors const& tensors,
                                                          AcceptCheckpoint const& accept = {},
                                                          int threads = 0);

/// Meta data of a checkpoint (or of the newest of a run folder) without its tensors: what is needed
/// to build the model, as for `motley sample`.
///
/// Throws   Error{checkpoint} if it is missing or damaged
[[nodiscard]] CheckpointMeta read_checkpoint_meta(std::filesystem::path const& path);

/// Fills `tensors` from one checkpoint (or from the newest of a run folder).
///
/// Throws   Error{checkpoint} as resume_checkpoint does for a path
LoadReport load_checkpoint(std::filesystem::path const& path,
                           StateTensors const& tensors,
                           AcceptCheckpoint const& accept = {},
                           int threads = 0);

/// One tensor of a checkpoint, as `motley checkpoint inspect` shows it.
struct TensorRecord {
  StateKind kind = StateKind::parameter;
  std::string name;
  DType dtype = DType::fp32;
  Shape shape;
  std::int64_t offset_bytes = 0;  ///< in state.h5
  Checksum checksum;

  [[nodiscard]] std::int64_t bytes() const noexcept {
    return shape.count() * static_cast<std::int64_t>(size_bytes(dtype));
  }
};

struct TensorNorm {
  double norm = 0.0;     ///< √Σx²
  double max_abs = 0.0;  ///< NaN if an element is not finite
};

struct CheckpointInfo {
  std::filesystem::path folder;
  CheckpointMeta meta;
  std::int64_t file_bytes = 0;  ///< of state.h5
  std::vector<TensorRecord> tensors;
  std::vector<TensorNorm> norms;  ///< one per tensor if asked for, else empty
};

enum class InspectNorms { no, yes };

/// What a checkpoint holds; `yes` reads all its tensors. Needs no MPI.
///
/// Throws   Error{checkpoint} if it is missing or its manifest or HDF5 metadata is damaged
[[nodiscard]] CheckpointInfo inspect_checkpoint(std::filesystem::path const& path,
                                                InspectNorms norms = InspectNorms::no);

/// The text of `motley checkpoint inspect`.
[[nodiscard]] std::string to_text(CheckpointInfo const& info);

/// All damage of a checkpoint, one sentence each, file and tensor named; empty if it is intact.
/// Reads everything, and compares what HDF5 finds with the manifest. Needs no MPI.
[[nodiscard]] std::vector<std::string> verify_checkpoint(std::filesystem::path const& path,
                                                         int threads = 0);

}  // namespace motley::io
