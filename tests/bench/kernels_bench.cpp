// Times the memory-bound kernels, each in turn with a triad (a = b + s c), and prints one JSON line
// per kernel. gb_per_s counts what the kernel must read and write once; of_triad is its ratio to
// the triad's rate, counted as 12 bytes per element. Rows of the matrices: first argument.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/adamw.hpp"
#include "kernels/cast.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/dropout.hpp"
#include "kernels/embedding.hpp"
#include "kernels/norm.hpp"
#include "kernels/reduce.hpp"
#include "tests/bench/bench.hpp"
#include "tests/kernels/random_view.hpp"

namespace motley::bench {
namespace {

using test::random_view;

// Sizes of GPT-2 124M.
constexpr std::int64_t width = 768;
constexpr std::int64_t ffn = 3072;
constexpr std::int64_t vocab = 50257;
constexpr std::int64_t padded_vocab = 50304;
constexpr std::int64_t window = 256;
constexpr std::int64_t parameter_count = std::int64_t{1} << 25U;
constexpr int pairs = 7;

class Triad {
 public:
  Triad() : a_{"a", count}, b_{"b", count}, c_{"c", count} {
    Kokkos::deep_copy(b_, 1.0F);
    Kokkos::deep_copy(c_, 2.0F);
  }
  void operator()() const {
    float* const a = a_.data();
    float const* const b = b_.data();
    float const* const c = c_.data();
#pragma omp parallel for simd
    for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + 0.5F * c[i];
  }
  static constexpr double bytes = 12.0 * (1U << 24U);

 private:
  static constexpr std::size_t count = std::size_t{1} << 24U;
  View1<float> a_, b_, c_;
};

class Runner {
 public:
  template <class Work>
  void run(std::string const& name, DType dtype, double bytes, Work const& work) const {
    Timing times;
    Timing triad_times;
    time_in_turn(pairs, work, times, triad_, triad_times);
    double const rate = bytes / times.fastest_s();
    auto line = record(name, times);
    line["dtype"] = std::string{to_string(dtype)};
    line["gb_per_s"] = rate * 1e-9;
    line["of_triad"] = rate / (Triad::bytes / triad_times.fastest_s());
    std::cout << line.dump() << std::endl;
  }

 private:
  Triad triad_;
};

template <class T>
void bench_norms(Runner const& runner, std::int64_t rows) {
  using A = Accumulator<T>;
  Exec const exec;
  auto const x = random_view<T>("x", rows, width, 1);
  auto const dy = random_view<T>("dy", rows, width, 2);
  auto const y = random_view<T>("y", rows, width, 3);
  auto const weight = random_view<T>("weight", width, 4);
  auto const bias = random_view<T>("bias", width, 5);
  View1<A> const mean("mean", x.extent(0));
  View1<A> const rstd("rstd", x.extent(0));
  View1<A> const dweight("dweight", x.extent(1));
  View1<A> const dbias("dbias", x.extent(1));
  View1<A> const workspace("workspace",
                           static_cast<std::size_t>(kernels::norm_workspace_size(rows, width)));
  double const matrix = static_cast<double>(rows * width) * sizeof(T);
  A const eps{1e-5F};
  runner.run("layer_norm_forward", dtype_of<T>, 2 * matrix, [&] {
    kernels::layer_norm_forward<T>(exec, x, weight, bias, eps, y, {mean, rstd});
  });
  runner.run("layer_norm_backward", dtype_of<T>, 4 * matrix, [&] {
    kernels::layer_norm_backward<T>(
        exec, {dy, x, weight, mean, rstd, y}, y, dweight, dbias, workspace);
  });
  runner.run("rms_norm_forward", dtype_of<T>, 2 * matrix, [&] {
    kernels::rms_norm_forward<T>(exec, x, weight, eps, y, rstd);
  });
  runner.run("rms_norm_backward", dtype_of<T>, 4 * matrix, [&] {
    kernels::rms_norm_backward<T>(exec, {dy, x, weight, rstd, y}, y, dweight, workspace);
  });
  runner.run("dropout", dtype_of<T>, 2 * matrix, [&] {
    View1<std::uint64_t> const samples("samples", static_cast<std::size_t>(rows / window));
    kernels::dropout<T>(exec, {1, 2, 3}, samples, 0.1, window, y);
  });
}

template <class T>
void bench_activations(Runner const& runner, std::int64_t rows) {
  using A = Accumulator<T>;
  Exec const exec;
  auto const x = random_view<T>("x", rows, ffn, 1);
  auto const dy = random_view<T>("dy", rows, ffn, 2);
  auto const gate_up = random_view<T>("gate_up", rows, 2 * ffn, 3);
  View1<A> const dbias("dbias", x.extent(1));
  double const matrix = static_cast<double>(rows * ffn) * sizeof(T);
  runner.run(
      "gelu_forward", dtype_of<T>, 2 * matrix, [&] { kernels::gelu_forward<T>(exec, x, dy); });
  runner.run("gelu_backward", dtype_of<T>, 3 * matrix, [&] {
    kernels::gelu_backward<T>(exec, x, dy, dy);
  });
  runner.run("swiglu_forward", dtype_of<T>, 3 * matrix, [&] {
    kernels::swiglu_forward<T>(exec, gate_up, dy);
  });
  runner.run("swiglu_backward", dtype_of<T>, 5 * matrix, [&] {
    kernels::swiglu_backward<T>(exec, gate_up, dy, gate_up);
  });
  runner.run("column_sum", dtype_of<T>, matrix, [&] { kernels::column_sum<T>(exec, dy, dbias); });
}

/// Ids that repeat as words do: the cube of a uniform number favours small ones.
View1<std::int32_t> token_ids(std::int64_t rows) {
  View1<std::int32_t> const ids("ids", static_cast<std::size_t>(rows));
  Philox const random{7};
  for (std::size_t r = 0; r < ids.extent(0); ++r) {
    float const u = uniform_from(random(0, r).w[0]);
    ids(r) = static_cast<std::int32_t>(u * u * u * static_cast<float>(vocab - 1));
  }
  return ids;
}

template <class T>
void bench_tokens(Runner const& runner, std::int64_t rows) {
  using A = Accumulator<T>;
  Exec const exec;
  auto const ids = token_ids(rows);
  auto const table = random_view<T>("table", vocab, width, 1);
  auto const positions = random_view<T>("positions", window, width, 2);
  auto const y = random_view<T>("y", rows, width, 3);
  View2<A> const d_table("d_table", table.extent(0), table.extent(1));
  View2<A> const d_positions("d_positions", positions.extent(0), positions.extent(1));
  kernels::EmbeddingSpec const spec{window, 0};
  double const elements = static_cast<double>(rows * width);
  runner.run("embedding_forward", dtype_of<T>, 2 * elements * sizeof(T), [&] {
    kernels::embedding_forward<T>(exec, spec, ids, table, positions, y);
  });
  runner.run("embedding_backward", dtype_of<T>, elements * (2 * sizeof(T) + 2 * sizeof(A)), [&] {
    kernels::embedding_backward<T>(exec, spec, ids, y, d_table, d_positions);
  });
  std::int64_t const chunk = rows / 4;
  auto const logits = random_view<A>("logits", chunk, padded_vocab, 4);
  View1<A> const losses("losses", static_cast<std::size_t>(chunk));
  View1<std::int32_t const> const targets =
      Kokkos::subview(ids, Kokkos::pair<std::int64_t, std::int64_t>{0, chunk});
  double const cells = static_cast<double>(chunk * padded_vocab);
  View2<T> dlogits;
  if constexpr (std::is_same_v<T, A>) {
    dlogits = logits;
  } else {
    dlogits = View2<T>("dlogits", logits.extent(0), logits.extent(1));
  }
  runner.run("softmax_cross_entropy", dtype_of<T>, cells * (sizeof(A) + sizeof(T)), [&] {
    kernels::softmax_cross_entropy<T>(exec, logits, vocab, targets, A{1e-3F}, losses, dlogits);
  });
}

template <class T>
void bench_vectors(Runner const& runner) {
  using A = Accumulator<T>;
  Exec const exec;
  auto const n = static_cast<std::size_t>(parameter_count);
  auto const gradient = random_view<A>("gradient", parameter_count, 1);
  View1<A> const master("master", n);
  View1<A> const m("m", n);
  View1<A> const v("v", n);
  View1<T> param;
  if constexpr (std::is_same_v<T, A>) {
    param = master;
  } else {
    param = View1<T>("param", n);
  }
  View1<double> const out("out", 1);
  View1<double> const workspace(
      "workspace", static_cast<std::size_t>(kernels::reduce_workspace_size(parameter_count)));
  double const elements = static_cast<double>(parameter_count);
  kernels::AdamWStep step;
  step.lr = 1e-4;
  step.weight_decay = 0.1;
  double const extra = std::is_same_v<T, A> ? 0 : sizeof(T);
  runner.run("adamw_step", dtype_of<T>, elements * (7 * sizeof(A) + extra), [&] {
    kernels::adamw_step<T>(exec, step, gradient, master, m, v, param);
  });
  runner.run("first_non_finite", dtype_of<T>, elements * sizeof(T), [&] {
    if (kernels::first_non_finite<T>(exec, param) != -1) std::abort();
  });
  if constexpr (std::is_same_v<T, A>) {
    runner.run("square_sum", dtype_of<T>, elements * sizeof(A), [&] {
      kernels::square_sum<A>(exec, gradient, out, workspace);
    });
  } else {
    runner.run("cast_from_fp32", dtype_of<T>, elements * (sizeof(A) + sizeof(T)), [&] {
      kernels::cast<T, A>(exec, master, param);
    });
  }
}

template <class T>
void bench_all(Runner const& runner, std::int64_t rows) {
  bench_vectors<T>(runner);
  bench_norms<T>(runner, rows);
  bench_activations<T>(runner, rows);
  bench_tokens<T>(runner, rows);
}

}  // namespace
}  // namespace motley::bench

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos{argc, argv};
  std::int64_t const rows = argc > 1 ? std::atoll(argv[1]) : 4096;
  motley::bench::Runner const runner;
  motley::bench::bench_all<float>(runner, rows);
  motley::bench::bench_all<motley::BFloat16>(runner, rows);
}
