#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/attention_tiles.hpp"

// What lies where in the workspace of the CPU attention, and who works on it.
//
// B batch, T tokens, N query heads, H head width; C tiles of tokens in a window.

namespace motley::kernels::cpu {

/// Cuts memory into arrays, each aligned to a cache line; on null it only counts.
class MemoryCutter {
 public:
  explicit MemoryCutter(std::byte* base) : base_{base} {}

  template <class S>
  [[nodiscard]] S* take(std::int64_t count) {
    std::int64_t const bytes = count * static_cast<std::int64_t>(sizeof(S));
    auto* const start = base_ == nullptr ? nullptr : reinterpret_cast<S*>(base_ + used_bytes_);
    used_bytes_ += divide_up(bytes, line_bytes) * line_bytes;
    return start;
  }
  [[nodiscard]] std::int64_t used_bytes() const { return used_bytes_; }

 private:
  static constexpr std::int64_t line_bytes = 64;
  std::byte* base_;
  std::int64_t used_bytes_ = 0;
};

/// Tiles of queries that a forward task owns at most.
inline constexpr std::int64_t parts_per_task = 3;

/// A worker's memory in the forward pass.
struct ForwardScratch {
  float* query;  ///< [parts, H, tile] scaled by 1/√H
  float* out;    ///< [parts, tile, padded H], to be divided by `sum`
  float* top;    ///< [parts, tile] largest score so far
  float* sum;    ///< [parts, tile] Σ exp(score - top)
  float* key;    ///< [tile, padded H]
  float* value;  ///< [tile, padded H]
  float* score;  ///< [keys, queries]
  float* keep;   ///< [tile] exp(last top - top)
};

inline ForwardScratch cut_forward(AttentionShape const& shape, MemoryCutter& cutter) {
  std::int64_t const vectors = tile_tokens * padded_width(shape);
  return {cutter.take<float>(parts_per_task * tile_tokens * shape.head_width),
          cutter.take<float>(parts_per_task * vectors),
          cutter.take<float>(parts_per_task * tile_tokens),
          cutter.take<float>(parts_per_task * tile_tokens),
          cutter.take<float>(vectors),
          cutter.take<float>(vectors),
          cutter.take<float>(tile_tokens * tile_tokens),
          cutter.take<float>(tile_tokens)};
}

/// A worker's memory in the backward pass.
struct BackwardScratch {
  float* key;               ///< [tile, padded H] scaled by 1/√H
  float* key_transposed;    ///< [H, tile] scaled by 1/√H
  float* value_transposed;  ///< [H, tile]
  float* dkey;              ///< [tile, padded H], to be scaled by 1/√H
  float* dvalue;            ///< [tile, padded H]
  float* query;             ///< [tile, padded H]
  float* dout;              ///< [tile, padded H]
  float* dquery;            ///< [tile, padded H] from one tile of keys
  float* probability;       ///< [queries, keys] first the score
  float* dscore;            ///< [queries, keys] first the gradient of the probability
};

inline BackwardScratch cut_backward(AttentionShape const& shape, MemoryCutter& cutter) {
  std::int64_t const vectors = tile_tokens * padded_width(shape);
  std::int64_t const pairs = tile_tokens * tile_tokens;
  return {cutter.take<float>(vectors),
          cutter.take<float>(tile_tokens * shape.head_width),
          cutter.take<float>(tile_tokens * shape.head_width),
          cutter.take<float>(vectors),
          cutter.take<float>(vectors),
          cutter.take<float>(vectors),
          cutter.take<float>(vectors),
          cutter.take<float>(vectors),
          cutter.take<float>(pairs),
          cutter.take<float>(pairs)};
}

/// The memory that workers share, and where their own begins.
struct SharedMemory {
  std::int64_t* next_task;
  float* delta;         ///< [B, N, T] Σ_d dout out
  std::int32_t* turns;  ///< [B, N, C] tiles of keys whose part is in the query gradients of a tile
  float* dquery;        ///< [R, N H]; null for T = float, where dqkv itself holds the sums
  std::byte* scratch;
  std::int64_t scratch_bytes;  ///< of one worker
};

template <class T>
SharedMemory cut_shared(AttentionShape const& shape, MemoryCutter& cutter) {
  std::int64_t const head_rows = shape.rows() * shape.heads;
  SharedMemory memory{};
  memory.next_task = cutter.take<std::int64_t>(1);
  memory.delta = cutter.take<float>(head_rows);
  memory.turns = cutter.take<std::int32_t>(shape.batch * shape.heads * tile_count(shape));
  if constexpr (!std::is_same_v<T, float>) {
    memory.dquery = cutter.take<float>(head_rows * shape.head_width);
  }
  MemoryCutter forward{nullptr};
  static_cast<void>(cut_forward(shape, forward));
  MemoryCutter backward{nullptr};
  static_cast<void>(cut_backward(shape, backward));
  memory.scratch_bytes = std::max(forward.used_bytes(), backward.used_bytes());
  memory.scratch = cutter.take<std::byte>(0);
  return memory;
}

/// Workers that may run at once: one a thread, as far as the workspace has room for them.
template <class T>
[[nodiscard]] std::int64_t worker_count(Exec const& exec,
                                        AttentionShape const& shape,
                                        View1<std::byte> const& workspace) {
  MemoryCutter cutter{nullptr};
  SharedMemory const memory = cut_shared<T>(shape, cutter);
  std::int64_t const room =
      (static_cast<std::int64_t>(workspace.size()) - cutter.used_bytes()) / memory.scratch_bytes;
  return std::min<std::int64_t>(exec.concurrency(), room);
}

/// Runs body(scratch, task) for every task below `count`, where `scratch` is the worker's own
/// memory. A worker takes the lowest task that is left: so unequal tasks and slow cores even out,
/// and a task may wait for lower ones. `next_task` must have been set to 0 by an earlier kernel.
template <class Body>
void run_tasks(Exec const& exec,
               char const* label,
               std::int64_t workers,
               std::int64_t count,
               SharedMemory const& memory,
               Body const& body) {
  Kokkos::parallel_for(label,
                       Kokkos::RangePolicy<Exec>(exec, 0, std::min(workers, count)),
                       [=](std::int64_t worker) {
                         std::byte* const scratch = memory.scratch + worker * memory.scratch_bytes;
                         std::atomic_ref<std::int64_t> const next{*memory.next_task};
                         while (true) {
                           std::int64_t const task = next.fetch_add(1, std::memory_order_relaxed);
                           if (task >= count) return;
                           body(scratch, task);
                         }
                       });
}

}  // namespace motley::kernels::cpu
