#include <cmath>
#include <thread>
#include <type_traits>

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/attention_workspace.hpp"

// A task owns one tile of keys of a key/value head, and walks over the queries of its group from
// the diagonal on: five products per pair of tiles. Gradients of keys and values are its own. The
// gradients of a tile of queries are sums over tasks, added in the order of the keys: a task waits
// for its turn. Tasks are taken in that order too, so whoever is waited for has been started.
//
// B batch, T tokens, N query heads, H head width, R = B T rows.

namespace motley::kernels::cpu {
namespace {

template <class T>
struct BackwardProblem {
  AttentionShape shape;
  float scale;
  AttentionSaved<T> saved;
  View2<T const> dout;
  View2<T> dqkv;
  SharedMemory memory;
};

template <class T>
class BackwardTask {
 public:
  BackwardTask(BackwardProblem<T> const& problem, std::byte* memory) : problem_{problem} {
    MemoryCutter cutter{memory};
    scratch_ = cut_backward(shape_, cutter);
  }

  /// All heads before the next tile of keys: neighbours in time then seldom wait for each other,
  /// and the first tasks are the longest.
  void run(std::int64_t task) {
    std::int64_t const groups = shape_.batch * shape_.kv_heads;
    window_ = task % groups / shape_.kv_heads;
    std::int64_t const kv_head = task % groups % shape_.kv_heads;
    key_tile_ = task / groups;
    keys_ = tile_size(shape_, key_tile_);
    load_keys(kv_head);
    std::int64_t const head_begin = kv_head * shape_.group();
    for (std::int64_t head = head_begin; head < head_begin + shape_.group(); ++head) {
      for (std::int64_t tile = key_tile_; tile < tile_count(shape_); ++tile) {
        bool const is_first = head == head_begin && tile == key_tile_;
        add_pair(head, tile, is_first ? Accumulate::no : Accumulate::yes);
      }
    }
    store_keys(kv_head);
  }

 private:
  [[nodiscard]] std::int64_t row(std::int64_t tile) const {
    return window_ * shape_.tokens + tile * tile_tokens;
  }
  template <class View>
  [[nodiscard]] auto at(View const& view, std::int64_t tile, std::int64_t column) const {
    return detail::Strided{&view(row(tile), column), static_cast<std::int64_t>(view.stride(0))};
  }

  void load_keys(std::int64_t kv_head) {
    auto const key = at(problem_.saved.qkv, key_tile_, shape_.key_column(kv_head));
    auto const value = at(problem_.saved.qkv, key_tile_, shape_.value_column(kv_head));
    std::int64_t const width = shape_.head_width;
    load_rows(key, keys_, width, problem_.scale, scratch_.key, stride_);
    load_transposed(key, keys_, width, problem_.scale, scratch_.key_transposed);
    load_transposed(value, keys_, width, 1.0F, scratch_.value_transposed);
  }

  void store_keys(std::int64_t kv_head) {
    std::int64_t const width = shape_.head_width;
    store_rows({scratch_.dkey, stride_},
               keys_,
               width,
               problem_.scale,
               at(problem_.dqkv, key_tile_, shape_.key_column(kv_head)));
    store_rows({scratch_.dvalue, stride_},
               keys_,
               width,
               1.0F,
               at(problem_.dqkv, key_tile_, shape_.value_column(kv_head)));
  }

  /// Adds what the queries of one tile of one head contribute, and what they receive.
  void add_pair(std::int64_t head, std::int64_t tile, Accumulate accumulate) {
    std::int64_t const queries = tile_size(shape_, tile);
    std::int64_t const width = shape_.head_width;
    bool const is_diagonal = tile == key_tile_;
    Reach const to = is_diagonal ? Reach::to_diagonal : Reach::whole;
    Reach const from = is_diagonal ? Reach::from_diagonal : Reach::whole;
    auto const query = at(problem_.saved.qkv, tile, shape_.query_column(head));
    load_rows(query, queries, width, 1.0F, scratch_.query, stride_);
    load_rows(at(problem_.dout, tile, head * width), queries, width, 1.0F, scratch_.dout, stride_);

    TileShape const scores{queries, padded(keys_), width};
    multiply_columns(to,
                     scores,
                     detail::row_major(scratch_.query, stride_),
                     detail::padded_row_major(scratch_.key_transposed, tile_tokens),
                     scratch_.probability);
    multiply_columns(to,
                     scores,
                     detail::row_major(scratch_.dout, stride_),
                     detail::padded_row_major(scratch_.value_transposed, tile_tokens),
                     scratch_.dscore);
    differentiate(head, tile, is_diagonal);

    TileShape const key_sums{keys_, stride_, queries};
    multiply_depth(from,
                   key_sums,
                   detail::column_major(scratch_.probability, tile_tokens),
                   detail::padded_row_major(scratch_.dout, stride_),
                   {scratch_.dvalue, stride_},
                   accumulate);
    multiply_depth(from,
                   key_sums,
                   detail::column_major(scratch_.dscore, tile_tokens),
                   detail::padded_row_major(scratch_.query, stride_),
                   {scratch_.dkey, stride_},
                   accumulate);
    multiply_depth(to,
                   {queries, stride_, keys_},
                   detail::row_major(scratch_.dscore, tile_tokens),
                   detail::padded_row_major(scratch_.key, stride_),
                   {scratch_.dquery, stride_},
                   Accumulate::no);
    add_in_turn(head, tile);
  }

  /// Turns scores into probabilities, and their gradients into those of the scores.
  void differentiate(std::int64_t head, std::int64_t tile, bool is_diagonal) {
    std::int64_t const first = tile * tile_tokens;
    float const* const lse = &problem_.saved.lse(window_, head, first);
    float const* const delta =
        problem_.memory.delta + (window_ * shape_.heads + head) * shape_.tokens + first;
    for (std::int64_t i = 0; i < tile_size(shape_, tile); ++i) {
      float* const probability = scratch_.probability + i * tile_tokens;
      float* const dscore = scratch_.dscore + i * tile_tokens;
      std::int64_t const seen = is_diagonal ? i + 1 : keys_;
      float const row_lse = lse[i];
      float const row_delta = delta[i];
#pragma omp simd
      for (std::int64_t j = 0; j < seen; ++j) {
        probability[j] = exp_normal(probability[j] - row_lse);
        dscore[j] = probability[j] * (dscore[j] - row_delta);
      }
      // Products on the diagonal read a block of registers beyond it.
      std::fill(probability + seen, probability + keys_, 0.0F);
      std::fill(dscore + seen, dscore + keys_, 0.0F);
    }
  }

  /// Adds the product's query gradients once those of all earlier keys are in.
  void add_in_turn(std::int64_t head, std::int64_t tile) {
    std::int64_t const index = (window_ * shape_.heads + head) * tile_count(shape_) + tile;
    std::atomic_ref<std::int32_t> const turn{problem_.memory.turns[index]};
    auto const mine = static_cast<std::int32_t>(key_tile_);
    while (turn.load(std::memory_order_acquire) != mine) std::this_thread::yield();
    for (std::int64_t i = 0; i < tile_size(shape_, tile); ++i) {
      add_query_gradient(row(tile) + i, head, scratch_.dquery + i * stride_, tile == key_tile_);
    }
    turn.store(mine + 1, std::memory_order_release);
  }

  void add_query_gradient(std::int64_t row, std::int64_t head, float* part, bool is_last) {
    std::int64_t const width = shape_.head_width;
    T* const result = &problem_.dqkv(row, shape_.query_column(head));
    float* sums = nullptr;
    if constexpr (std::is_same_v<T, float>) {
      sums = result;
    } else {
      sums = problem_.memory.dquery + (row * shape_.heads + head) * width;
    }
    if (key_tile_ > 0) {
#pragma omp simd
      for (std::int64_t d = 0; d < width; ++d) part[d] += sums[d];
    }
    if (is_last) {
      store_rows({part, width}, 1, width, 1.0F, detail::Strided<T>{result, width});
    } else {
      std::copy_n(part, width, sums);
    }
  }

  BackwardProblem<T> const& problem_;
  AttentionShape const& shape_ = problem_.shape;
  std::int64_t stride_ = padded_width(shape_);
  BackwardScratch scratch_{};
  std::int64_t window_ = 0;
  std::int64_t key_tile_ = 0;
  std::int64_t keys_ = 0;
};

/// Makes delta = Σ_d dout out and opens the turns.
template <class T>
void prepare(Exec const& exec, BackwardProblem<T> const& problem) {
  AttentionShape const shape = problem.shape;
  SharedMemory const memory = problem.memory;
  std::int64_t const turns = shape.batch * shape.heads * tile_count(shape);
  Kokkos::parallel_for(
      "motley::kernels::Attention::delta",
      Kokkos::RangePolicy<Exec>(exec, 0, shape.rows()),
      [=](std::int64_t row) {
        if (row == 0) *memory.next_task = 0;
        for (std::int64_t turn = row; turn < turns; turn += shape.rows()) memory.turns[turn] = 0;
        std::int64_t const window = row / shape.tokens;
        for (std::int64_t head = 0; head < shape.heads; ++head) {
          T const* const out = &problem.saved.out(row, head * shape.head_width);
          T const* const dout = &problem.dout(row, head * shape.head_width);
          float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
          for (std::int64_t d = 0; d < shape.head_width; ++d) {
            sum += static_cast<float>(dout[d]) * static_cast<float>(out[d]);
          }
          memory.delta[(window * shape.heads + head) * shape.tokens + row % shape.tokens] = sum;
        }
      });
}

}  // namespace

template <class T>
void attention_backward(Exec const& exec,
                        AttentionShape const& shape,
                        AttentionSaved<T> const& saved,
                        View2<T const> const& dout,
                        View2<T> const& dqkv,
                        View1<std::byte> const& workspace) {
  MemoryCutter cutter{workspace.data()};
  SharedMemory const memory = cut_shared<T>(shape, cutter);
  float const scale = 1.0F / std::sqrt(static_cast<float>(shape.head_width));
  BackwardProblem<T> const problem{shape, scale, saved, dout, dqkv, memory};
  prepare(exec, problem);
  run_tasks(exec,
            "motley::kernels::Attention::backward",
            worker_count<T>(exec, shape, workspace),
            shape.batch * shape.kv_heads * tile_count(shape),
            memory,
            [=](std::byte* scratch, std::int64_t task) {
              BackwardTask<T>{problem, scratch}.run(task);
            });
}

template void attention_backward<float>(Exec const&,
                                        AttentionShape const&,
                                        AttentionSaved<float> const&,
                                        View2<float const> const&,
                                        View2<float> const&,
                                        View1<std::byte> const&);
template void attention_backward<BFloat16>(Exec const&,
                                           AttentionShape const&,
                                           AttentionSaved<BFloat16> const&,
                                           View2<BFloat16 const> const&,
                                           View2<BFloat16> const&,
                                           View1<std::byte> const&);

}  // namespace motley::kernels::cpu
