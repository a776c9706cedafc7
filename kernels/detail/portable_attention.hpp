#pragma once

#include <cmath>
#include <cstdint>

#include <Kokkos_Core.hpp>

#include "kernels/attention.hpp"

// Attention for any execution space. A thread (its vector lanes on a GPU) owns one row: it walks
// over the other tokens in order and keeps its sums in scratch memory, so that no result depends on
// the distribution of the work and nothing of size T x T is stored.
//
// B batch, T tokens, N query heads, G key/value heads, H head width.

namespace motley::kernels::detail {

using AttentionTeam = Kokkos::TeamPolicy<Exec>;
using AttentionMember = typename AttentionTeam::member_type;

/// One row of one head: token `token` of window `window`.
struct HeadRow {
  std::int64_t window;
  std::int64_t head;
  std::int64_t token;
};

/// Splits a flat index over [windows, heads, tokens].
MOTLEY_FUNCTION HeadRow head_row(std::int64_t index, std::int64_t heads, std::int64_t tokens) {
  return {index / (heads * tokens), index / tokens % heads, index % tokens};
}

/// Σ_d x[d] y[d] over the lanes of a thread.
template <class A, class T>
MOTLEY_FUNCTION A dot(AttentionMember const& team, T const* x, T const* y, std::int64_t width) {
  A sum{};
  Kokkos::parallel_reduce(
      Kokkos::ThreadVectorRange(team, width),
      [=](std::int64_t d, A& part) { part += static_cast<A>(x[d]) * static_cast<A>(y[d]); },
      sum);
  return sum;
}

/// sums[d] = keep sums[d] + weight x[d] over the lanes of a thread.
template <class A, class T>
MOTLEY_FUNCTION void add_scaled(
    AttentionMember const& team, A* sums, A keep, A weight, T const* x, std::int64_t width) {
  Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, width), [=](std::int64_t d) {
    sums[d] = keep * sums[d] + weight * static_cast<A>(x[d]);
  });
}

/// y[d] = factor sums[d], rounded to T, over the lanes of a thread.
template <class A, class T>
MOTLEY_FUNCTION void store_scaled(
    AttentionMember const& team, A const* sums, A factor, T* y, std::int64_t width) {
  Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, width),
                       [=](std::int64_t d) { y[d] = static_cast<T>(factor * sums[d]); });
}

/// Runs `functor.row(team, index, scratch)` for every index below `rows`, with `scratch_count`
/// zeroed sums of type A for each.
template <class A, class Functor>
void for_each_head_row(Exec const& exec,
                       char const* label,
                       std::int64_t rows,
                       std::int64_t scratch_count,
                       Functor const& functor) {
  constexpr int rows_per_team = 4;
  constexpr bool is_host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, DeviceMemory>::accessible;
  auto const teams = static_cast<int>((rows + rows_per_team - 1) / rows_per_team);
  auto const bytes = static_cast<int>(scratch_count * static_cast<std::int64_t>(sizeof(A)) + 64);
  AttentionTeam policy{exec, teams, is_host ? 1 : rows_per_team, is_host ? 1 : 32};
  policy.set_scratch_size(0, Kokkos::PerThread(bytes));
  Kokkos::parallel_for(
      label, policy, KOKKOS_LAMBDA(AttentionMember const& team) {
        auto* const sums =
            static_cast<A*>(team.thread_scratch(0).get_shmem_aligned(bytes - 64, alignof(A)));
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows_per_team), [&](std::int64_t r) {
          std::int64_t const index = team.league_rank() * rows_per_team + r;
          if (index >= rows) return;
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, scratch_count),
                               [&](std::int64_t d) { sums[d] = A{}; });
          functor.row(team, index, sums);
        });
      });
}

template <class T>
struct PortableForward {
  using A = Accumulator<T>;
  AttentionShape shape;
  A scale;
  View2<T const> qkv;
  View2<T> out;
  View3<A> lse;

  MOTLEY_FUNCTION void row(AttentionMember const& team, std::int64_t index, A* sums) const {
    auto const [window, head, token] = head_row(index, shape.heads, shape.tokens);
    std::int64_t const first = window * shape.tokens;
    std::int64_t const kv_head = head / shape.group();
    std::int64_t const width = shape.head_width;
    T const* const query = &qkv(first + token, shape.query_column(head));
    A top = dot<A>(team, query, &qkv(first, shape.key_column(kv_head)), width) * scale;
    A total{};
    for (std::int64_t j = 0; j <= token; ++j) {
      A const score =
          dot<A>(team, query, &qkv(first + j, shape.key_column(kv_head)), width) * scale;
      A const new_top = Kokkos::max(top, score);
      A const keep = Kokkos::exp(top - new_top);
      A const weight = Kokkos::exp(score - new_top);
      add_scaled(team, sums, keep, weight, &qkv(first + j, shape.value_column(kv_head)), width);
      total = total * keep + weight;
      top = new_top;
    }
    store_scaled(team, sums, A{1} / total, &out(first + token, head * width), width);
    Kokkos::single(Kokkos::PerThread(team),
                   [&] { lse(window, head, token) = top + Kokkos::log(total); });
  }
};

/// delta[b, n, t] = Σ_d dout out: what the softmax's gradient subtracts from every dp of the row.
template <class T>
struct PortableDelta {
  using A = Accumulator<T>;
  AttentionShape shape;
  View2<T const> out;
  View2<T const> dout;
  A* delta;

  MOTLEY_FUNCTION void row(AttentionMember const& team, std::int64_t index, A* /*sums*/) const {
    auto const [window, head, token] = head_row(index, shape.heads, shape.tokens);
    std::int64_t const row = window * shape.tokens + token;
    std::int64_t const column = head * shape.head_width;
    A const sum = dot<A>(team, &out(row, column), &dout(row, column), shape.head_width);
    Kokkos::single(Kokkos::PerThread(team), [&] { delta[index] = sum; });
  }
};

/// Probability of key j for query i, and the gradient of its score.
template <class A>
struct ScoreGradient {
  A probability;
  A dscore;
};

template <class T>
struct PortableBackward {
  using A = Accumulator<T>;
  AttentionShape shape;
  A scale;
  AttentionSaved<T> saved;
  View2<T const> dout;
  A const* delta;
  View2<T> dqkv;

  [[nodiscard]] MOTLEY_FUNCTION ScoreGradient<A> score_gradient(AttentionMember const& team,
                                                                HeadRow const& query,
                                                                std::int64_t key_token) const {
    std::int64_t const first = query.window * shape.tokens;
    std::int64_t const kv_head = query.head / shape.group();
    std::int64_t const width = shape.head_width;
    std::int64_t const i = first + query.token;
    std::int64_t const j = first + key_token;
    A const score = scale * dot<A>(team,
                                   &saved.qkv(i, shape.query_column(query.head)),
                                   &saved.qkv(j, shape.key_column(kv_head)),
                                   width);
    A const dprobability = dot<A>(
        team, &dout(i, query.head * width), &saved.qkv(j, shape.value_column(kv_head)), width);
    A const probability = Kokkos::exp(score - saved.lse(query.window, query.head, query.token));
    std::int64_t const at = (query.window * shape.heads + query.head) * shape.tokens + query.token;
    return {probability, probability * (dprobability - delta[at])};
  }
};

/// dq of one query: walks over its keys.
template <class T>
struct PortableQueryGradient : PortableBackward<T> {
  using A = Accumulator<T>;

  MOTLEY_FUNCTION void row(AttentionMember const& team, std::int64_t index, A* sums) const {
    AttentionShape const& s = this->shape;
    HeadRow const query = head_row(index, s.heads, s.tokens);
    std::int64_t const first = query.window * s.tokens;
    std::int64_t const key_column = s.key_column(query.head / s.group());
    for (std::int64_t j = 0; j <= query.token; ++j) {
      A const dscore = this->score_gradient(team, query, j).dscore;
      add_scaled(team, sums, A{1}, dscore, &this->saved.qkv(first + j, key_column), s.head_width);
    }
    T* const dquery = &this->dqkv(first + query.token, s.query_column(query.head));
    store_scaled(team, sums, this->scale, dquery, s.head_width);
  }
};

/// dk and dv of one key: walks over the query heads of its group and the tokens from it on.
template <class T>
struct PortableKeyGradient : PortableBackward<T> {
  using A = Accumulator<T>;

  MOTLEY_FUNCTION void row(AttentionMember const& team, std::int64_t index, A* sums) const {
    AttentionShape const& s = this->shape;
    HeadRow const key = head_row(index, s.kv_heads, s.tokens);
    std::int64_t const first = key.window * s.tokens;
    std::int64_t const width = s.head_width;
    A* const dkey = sums;
    A* const dvalue = sums + width;
    for (std::int64_t head = key.head * s.group(); head < (key.head + 1) * s.group(); ++head) {
      for (std::int64_t i = key.token; i < s.tokens; ++i) {
        auto const [probability, dscore] =
            this->score_gradient(team, HeadRow{key.window, head, i}, key.token);
        add_scaled(
            team, dkey, A{1}, dscore, &this->saved.qkv(first + i, s.query_column(head)), width);
        add_scaled(team, dvalue, A{1}, probability, &this->dout(first + i, head * width), width);
      }
    }
    std::int64_t const row = first + key.token;
    store_scaled(team, dkey, this->scale, &this->dqkv(row, s.key_column(key.head)), width);
    store_scaled(team, dvalue, A{1}, &this->dqkv(row, s.value_column(key.head)), width);
  }
};

template <class T>
std::size_t portable_attention_workspace_bytes(AttentionShape const& shape) {
  return static_cast<std::size_t>(shape.rows() * shape.heads) * sizeof(Accumulator<T>);
}

template <class T>
void portable_attention_forward(Exec const& exec,
                                AttentionShape const& shape,
                                View2<T const> const& qkv,
                                View2<T> const& out,
                                View3<Accumulator<T>> const& lse) {
  using A = Accumulator<T>;
  A const scale = A{1} / std::sqrt(static_cast<A>(shape.head_width));
  for_each_head_row<A>(exec,
                       "motley::kernels::Attention::forward",
                       shape.rows() * shape.heads,
                       shape.head_width,
                       PortableForward<T>{shape, scale, qkv, out, lse});
}

template <class T>
void portable_attention_backward(Exec const& exec,
                                 AttentionShape const& shape,
                                 AttentionSaved<T> const& saved,
                                 View2<T const> const& dout,
                                 View2<T> const& dqkv,
                                 View1<std::byte> const& workspace) {
  using A = Accumulator<T>;
  A const scale = A{1} / std::sqrt(static_cast<A>(shape.head_width));
  auto* const delta = reinterpret_cast<A*>(workspace.data());
  std::int64_t const query_rows = shape.rows() * shape.heads;
  for_each_head_row<A>(exec,
                       "motley::kernels::Attention::delta",
                       query_rows,
                       1,
                       PortableDelta<T>{shape, saved.out, dout, delta});
  PortableBackward<T> const common{shape, scale, saved, dout, delta, dqkv};
  for_each_head_row<A>(exec,
                       "motley::kernels::Attention::backward_query",
                       query_rows,
                       shape.head_width,
                       PortableQueryGradient<T>{common});
  for_each_head_row<A>(exec,
                       "motley::kernels::Attention::backward_key",
                       shape.rows() * shape.kv_heads,
                       2 * shape.head_width,
                       PortableKeyGradient<T>{common});
}

}  // namespace motley::kernels::detail
