#include <cmath>
#include <limits>

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/attention_workspace.hpp"

// A task owns some tiles of queries that share a key/value head, and walks over the tiles of keys
// up to the diagonal. Scores are kept transposed, [keys, queries]: so the queries are the lanes of
// a vector, the softmax needs no sums across lanes, and neither keys nor values need transposing.
//
// H head width.

namespace motley::kernels::cpu {
namespace {

/// How the tiles of queries are dealt out: `heads` of a group times `tiles` of a head per task, as
/// every tile of keys is widened once per task.
struct Deal {
  std::int64_t heads;
  std::int64_t tiles;
  std::int64_t head_blocks;  ///< per group
  std::int64_t tile_blocks;  ///< per window

  explicit Deal(AttentionShape const& shape)
      : heads{std::min(shape.group(), parts_per_task)},
        tiles{parts_per_task / heads},
        head_blocks{divide_up(shape.group(), heads)},
        tile_blocks{divide_up(tile_count(shape), tiles)} {}
};

/// One tile of queries of one head, with its running softmax: its arrays in ForwardScratch.
struct Part {
  std::int64_t head;
  std::int64_t tile;
  std::int64_t queries;
  std::int64_t lanes;  ///< queries up to whole vectors; the last compute with zeros
  float* query;
  float* out;
  float* top;
  float* sum;
};

template <class T>
struct ForwardProblem {
  AttentionShape shape;
  View2<T const> qkv;
  View2<T> out;
  View3<float> lse;
};

template <class T>
class ForwardTask {
 public:
  ForwardTask(ForwardProblem<T> const& problem, std::byte* memory) : problem_{problem} {
    MemoryCutter cutter{memory};
    scratch_ = cut_forward(shape_, cutter);
  }

  /// Task 0 has the last queries, who see most keys: the short tasks fill the gaps at the end.
  void run(std::int64_t task) {
    Deal const deal{shape_};
    std::int64_t const groups = shape_.batch * shape_.kv_heads;
    window_ = task % groups / shape_.kv_heads;
    std::int64_t const kv_head = task % groups % shape_.kv_heads;
    std::int64_t const head_block = task / groups % deal.head_blocks;
    std::int64_t const tile_block = deal.tile_blocks - 1 - task / (groups * deal.head_blocks);

    std::int64_t const tile_begin = tile_block * deal.tiles;
    std::int64_t const tile_end = std::min(tile_begin + deal.tiles, tile_count(shape_));
    std::int64_t const head_begin = kv_head * shape_.group() + head_block * deal.heads;
    std::int64_t const head_end = std::min(head_begin + deal.heads, (kv_head + 1) * shape_.group());
    part_count_ = 0;
    for (std::int64_t head = head_begin; head < head_end; ++head) {
      for (std::int64_t tile = tile_begin; tile < tile_end; ++tile) start(head, tile);
    }
    for (std::int64_t tile = 0; tile < tile_end; ++tile) attend_all(kv_head, tile);
    for (std::int64_t p = 0; p < part_count_; ++p) finish(parts_[p]);
  }

 private:
  [[nodiscard]] std::int64_t row(std::int64_t tile) const {
    return window_ * shape_.tokens + tile * tile_tokens;
  }
  [[nodiscard]] detail::Strided<T const> qkv_at(std::int64_t tile, std::int64_t column) const {
    return {&problem_.qkv(row(tile), column), static_cast<std::int64_t>(problem_.qkv.stride(0))};
  }

  void start(std::int64_t head, std::int64_t tile) {
    std::int64_t const p = part_count_++;
    Part& part = parts_[p];
    std::int64_t const queries = tile_size(shape_, tile);
    part = {head,
            tile,
            queries,
            padded(queries),
            scratch_.query + p * tile_tokens * shape_.head_width,
            scratch_.out + p * tile_tokens * stride_,
            scratch_.top + p * tile_tokens,
            scratch_.sum + p * tile_tokens};
    float const scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_width));
    load_transposed(
        qkv_at(tile, shape_.query_column(head)), queries, shape_.head_width, scale, part.query);
    std::fill_n(part.out, tile_tokens * stride_, 0.0F);
    std::fill_n(part.top, tile_tokens, -std::numeric_limits<float>::infinity());
    std::fill_n(part.sum, tile_tokens, 0.0F);
  }

  /// Adds to all parts what their queries draw from one tile of keys.
  void attend_all(std::int64_t kv_head, std::int64_t tile) {
    std::int64_t const keys = tile_size(shape_, tile);
    std::int64_t const width = shape_.head_width;
    load_rows(qkv_at(tile, shape_.key_column(kv_head)), keys, width, 1.0F, scratch_.key, stride_);
    load_rows(
        qkv_at(tile, shape_.value_column(kv_head)), keys, width, 1.0F, scratch_.value, stride_);
    for (std::int64_t p = 0; p < part_count_; ++p) {
      if (parts_[p].tile >= tile) attend(parts_[p], keys, parts_[p].tile == tile);
    }
  }

  void attend(Part const& part, std::int64_t keys, bool is_diagonal) {
    multiply_columns(is_diagonal ? Reach::from_diagonal : Reach::whole,
                     {keys, part.lanes, shape_.head_width},
                     detail::row_major(scratch_.key, stride_),
                     detail::padded_row_major(part.query, tile_tokens),
                     scratch_.score);
    soften(part, keys, is_diagonal);
    multiply_depth(is_diagonal ? Reach::to_diagonal : Reach::whole,
                   {part.queries, stride_, keys},
                   detail::column_major(scratch_.score, tile_tokens),
                   detail::padded_row_major(scratch_.value, stride_),
                   {part.out, stride_},
                   Accumulate::yes);
  }

  /// First query lane of row `key` that must be defined in a tile on the diagonal: the product with
  /// the values reads up to a block of registers before the diagonal.
  static std::int64_t first_lane(std::int64_t key) {
    constexpr std::int64_t block = 16;
    static_assert(detail::RegisterTile<float>::rows <= block);
    return std::max<std::int64_t>(0, key - block) / block * block;
  }

  /// Turns the scores into exp(score - top) under the new top, and carries over what was summed.
  void soften(Part const& part, std::int64_t keys, bool is_diagonal) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    float top[tile_tokens];
    std::copy_n(part.top, part.lanes, top);
    for (std::int64_t key = 0; key < keys; ++key) {
      std::int64_t const begin = is_diagonal ? first_lane(key) : 0;
      float* const score = scratch_.score + key * tile_tokens;
      if (is_diagonal) std::fill(score + begin, score + key, -infinity);
#pragma omp simd
      for (std::int64_t i = begin; i < part.lanes; ++i) {
        top[i] = score[i] > top[i] ? score[i] : top[i];
      }
    }
    carry_over(part, top);
    for (std::int64_t key = 0; key < keys; ++key) {
      std::int64_t const begin = is_diagonal ? first_lane(key) : 0;
      float* const score = scratch_.score + key * tile_tokens;
      float* const sum = part.sum;
#pragma omp simd
      for (std::int64_t i = begin; i < part.lanes; ++i) {
        score[i] = exp_normal(score[i] - top[i]);
        sum[i] += score[i];
      }
    }
  }

  void carry_over(Part const& part, float const* top) {
    bool is_changed = false;
    for (std::int64_t i = 0; i < part.lanes; ++i) {
      is_changed |= top[i] != part.top[i];
      scratch_.keep[i] = exp_normal(part.top[i] - top[i]);
      part.sum[i] *= scratch_.keep[i];
      part.top[i] = top[i];
    }
    if (!is_changed) return;
    for (std::int64_t i = 0; i < part.queries; ++i) {
      float const keep = scratch_.keep[i];
      float* const out = part.out + i * stride_;
#pragma omp simd
      for (std::int64_t d = 0; d < stride_; ++d) out[d] *= keep;
    }
  }

  void finish(Part const& part) {
    detail::Strided<T> const out{&problem_.out(row(part.tile), part.head * shape_.head_width),
                                 static_cast<std::int64_t>(problem_.out.stride(0))};
    for (std::int64_t i = 0; i < part.queries; ++i) {
      store_rows({part.out + i * stride_, stride_},
                 1,
                 shape_.head_width,
                 1.0F / part.sum[i],
                 detail::Strided<T>{out.data + i * out.row_stride, out.row_stride});
      problem_.lse(window_, part.head, part.tile * tile_tokens + i) =
          part.top[i] + std::log(part.sum[i]);
    }
  }

  ForwardProblem<T> const& problem_;
  AttentionShape const& shape_ = problem_.shape;
  std::int64_t stride_ = padded_width(shape_);
  ForwardScratch scratch_{};
  std::int64_t window_ = 0;
  std::int64_t part_count_ = 0;
  Part parts_[parts_per_task]{};
};

}  // namespace

template <class T>
std::size_t attention_workspace_bytes(AttentionShape const& shape) {
  MemoryCutter cutter{nullptr};
  SharedMemory const memory = cut_shared<T>(shape, cutter);
  return static_cast<std::size_t>(cutter.used_bytes() +
                                  Exec{}.concurrency() * memory.scratch_bytes);
}

template <class T>
void attention_forward(Exec const& exec,
                       AttentionShape const& shape,
                       View2<T const> const& qkv,
                       View2<T> const& out,
                       View3<float> const& lse,
                       View1<std::byte> const& workspace) {
  MemoryCutter cutter{workspace.data()};
  SharedMemory const memory = cut_shared<T>(shape, cutter);
  Deal const deal{shape};
  std::int64_t const tasks = shape.batch * shape.kv_heads * deal.head_blocks * deal.tile_blocks;
  Kokkos::parallel_for("motley::kernels::Attention::reset",
                       Kokkos::RangePolicy<Exec>(exec, 0, 1),
                       [=](int /*index*/) { *memory.next_task = 0; });
  ForwardProblem<T> const problem{shape, qkv, out, lse};
  run_tasks(exec,
            "motley::kernels::Attention::forward",
            worker_count<T>(exec, shape, workspace),
            tasks,
            memory,
            [=](std::byte* scratch, std::int64_t task) {
              ForwardTask<T>{problem, scratch}.run(task);
            });
}

template std::size_t attention_workspace_bytes<float>(AttentionShape const&);
template std::size_t attention_workspace_bytes<BFloat16>(AttentionShape const&);

template void attention_forward<float>(Exec const&,
                                       AttentionShape const&,
                                       View2<float const> const&,
                                       View2<float> const&,
                                       View3<float> const&,
                                       View1<std::byte> const&);
template void attention_forward<BFloat16>(Exec const&,
                                          AttentionShape const&,
                                          View2<BFloat16 const> const&,
                                          View2<BFloat16> const&,
                                          View3<float> const&,
                                          View1<std::byte> const&);

}  // namespace motley::kernels::cpu
