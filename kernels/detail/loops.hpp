#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"

/// The two loops that kernels are made of: over the rows of a matrix, where the columns of a row
/// are shared out among "lanes", and over the elements of a flat array. What a lane is depends on
/// the backend, and only here: an element of a vector register on a CPU, where one thread has a
/// whole row, or a thread of the team that has the row on a GPU.
///
/// Rows and tiles are handed out dynamically; what is computed for one never depends on who does
/// it, so the bits do not depend on the number of threads.
namespace motley::kernels::detail {

inline constexpr bool is_host = std::is_same_v<Exec, Kokkos::DefaultHostExecutionSpace>;

/// Two sums made in one sweep.
template <class A>
struct SumPair {
  A first = 0;
  A second = 0;
};

/// Lanes of the one thread that has the row. Sums run in four independent streams, each of vector
/// lanes: enough to hide the latency of the addition, and an order fixed at compile time.
struct HostLanes {
  template <class Body>
  void for_each(int count, Body const& body) const {
#pragma omp simd
    for (int j = 0; j < count; ++j) body(j);
  }

  template <class A, class Term>
  [[nodiscard]] A sum(int count, Term const& term) const {
    int const n = count / 4;
    A s0 = 0;
    A s1 = 0;
    A s2 = 0;
    A s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int j = 0; j < n; ++j) {
      s0 += term(j);
      s1 += term(j + n);
      s2 += term(j + 2 * n);
      s3 += term(j + 3 * n);
    }
    for (int j = 4 * n; j < count; ++j) s0 += term(j);
    return (s0 + s1) + (s2 + s3);
  }

  template <class A, class Terms>
  [[nodiscard]] SumPair<A> sum_pair(int count, Terms const& terms) const {
    int const n = count / 2;
    A a0 = 0;
    A a1 = 0;
    A b0 = 0;
    A b1 = 0;
#pragma omp simd reduction(+ : a0, a1, b0, b1)
    for (int j = 0; j < n; ++j) {
      SumPair<A> const low = terms(j);
      SumPair<A> const high = terms(j + n);
      a0 += low.first;
      b0 += low.second;
      a1 += high.first;
      b1 += high.second;
    }
    for (int j = 2 * n; j < count; ++j) {
      SumPair<A> const last = terms(j);
      a0 += last.first;
      b0 += last.second;
    }
    return {a0 + a1, b0 + b1};
  }

  template <class A, class Term>
  [[nodiscard]] A max(int count, Term const& term) const {
    A largest = -std::numeric_limits<A>::infinity();
#pragma omp simd reduction(max : largest)
    for (int j = 0; j < count; ++j) {
      A const value = term(j);
      largest = value > largest ? value : largest;
    }
    return largest;
  }

  /// Runs `body` once per row, after the loops before it.
  template <class Body>
  void once(Body const& body) const {
    body();
  }
};

/// Lanes that are the threads of a team. Results of sums and maxima are known to all of them.
template <class Member>
struct TeamLanes {
  Member const& member;

  template <class Body>
  MOTLEY_FUNCTION void for_each(int count, Body const& body) const {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(member, count), body);
  }

  template <class A, class Term>
  [[nodiscard]] MOTLEY_FUNCTION A sum(int count, Term const& term) const {
    A total = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(member, count),
        [&](int j, A& partial) { partial += term(j); },
        total);
    return total;
  }

  template <class A, class Terms>
  [[nodiscard]] MOTLEY_FUNCTION SumPair<A> sum_pair(int count, Terms const& terms) const {
    return {sum<A>(count, [&](int j) { return terms(j).first; }),
            sum<A>(count, [&](int j) { return terms(j).second; })};
  }

  template <class A, class Term>
  [[nodiscard]] MOTLEY_FUNCTION A max(int count, Term const& term) const {
    A largest = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(member, count),
        [&](int j, A& partial) {
          A const value = term(j);
          partial = value > partial ? value : partial;
        },
        Kokkos::Max<A>(largest));
    return largest;
  }

  template <class Body>
  MOTLEY_FUNCTION void once(Body const& body) const {
    member.team_barrier();
    Kokkos::single(Kokkos::PerTeam(member), body);
  }
};

using TeamMember = typename Kokkos::TeamPolicy<Exec>::member_type;
using Lanes = std::conditional_t<is_host, HostLanes, TeamLanes<TeamMember>>;

/// Elements that one thread takes at a time: long enough to pay for the hand-out, short enough that
/// the last tiles of a loop are shared out evenly.
inline constexpr std::int64_t tile_elements = 16384;

// Flattened: a vector loop must not call functions, and what the compiler thinks too long to inline
// would stay one.
template <class Body>
struct RowOfThread {
  Body body;
  [[gnu::flatten]] MOTLEY_FUNCTION void operator()(std::int64_t row) const {
    body(HostLanes{}, row);
  }
};

template <class Body>
struct RowOfTeam {
  Body body;
  MOTLEY_FUNCTION void operator()(TeamMember const& member) const {
    body(TeamLanes<TeamMember>{member}, static_cast<std::int64_t>(member.league_rank()));
  }
};

template <class Body>
struct TileOfThread {
  Body body;
  std::int64_t count;
  [[gnu::flatten]] MOTLEY_FUNCTION void operator()(std::int64_t tile) const {
    std::int64_t const begin = tile * tile_elements;
    std::int64_t const end = count - begin < tile_elements ? count : begin + tile_elements;
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) body(i);
  }
};

using DynamicPolicy =
    Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<std::int64_t>>;

/// Calls body(lanes, row) for every row. `width` is the work of a row, in elements.
template <class Body>
void for_each_row(Exec const& exec,
                  std::string const& label,
                  std::int64_t rows,
                  std::int64_t width,
                  Body const& body) {
  if (rows == 0) return;
  if constexpr (is_host) {
    std::int64_t const chunk = std::clamp<std::int64_t>(
        tile_elements / std::max<std::int64_t>(width, 1), 1, std::max<std::int64_t>(rows / 16, 1));
    Kokkos::parallel_for(label,
                         DynamicPolicy(exec, 0, rows, Kokkos::ChunkSize(static_cast<int>(chunk))),
                         RowOfThread<Body>{body});
  } else {
    constexpr int team_size = 128;
    Kokkos::parallel_for(label,
                         Kokkos::TeamPolicy<Exec>(exec, static_cast<int>(rows), team_size),
                         RowOfTeam<Body>{body});
  }
}

/// Calls body(tile) for every tile in [0, tiles): one thread each, in any order.
template <class Body>
void for_each_tile(Exec const& exec,
                   std::string const& label,
                   std::int64_t tiles,
                   Body const& body) {
  if (tiles == 0) return;
  Kokkos::parallel_for(label, DynamicPolicy(exec, 0, tiles, Kokkos::ChunkSize(1)), body);
}

/// Calls body(i) for every i in [0, count), in any order.
template <class Body>
void for_each_element(Exec const& exec,
                      std::string const& label,
                      std::int64_t count,
                      Body const& body) {
  if (count == 0) return;
  if constexpr (is_host) {
    std::int64_t const tiles = (count + tile_elements - 1) / tile_elements;
    for_each_tile(exec, label, tiles, TileOfThread<Body>{body, count});
  } else {
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count), body);
  }
}

}  // namespace motley::kernels::detail
