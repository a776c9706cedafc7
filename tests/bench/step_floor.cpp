#include "tests/bench/step_floor.hpp"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/base/view.hpp"
#include "model/plan/cost.hpp"
#include "model/spec/logical_tensors.hpp"

namespace motley::bench {
namespace {

using dnnl::memory;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t head_chunk = 1024;
constexpr std::int64_t triad_count = std::int64_t{1} << 25;  // 128 MiB each, beyond every cache

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A oneDNN matmul dst = src · weights with memory of its own, weights in the layout it likes best.
class Product {
 public:
  struct Operand {
    memory::dim rows, columns;
    bool is_transposed = false;  ///< stored column by column
    bool is_free = false;        ///< any layout
  };

  Product(dnnl::engine const& engine,
          dnnl::stream const& stream,
          memory::data_type type,
          memory::data_type sum_type,
          Operand src,
          Operand weights)
      : stream_{stream},
        flop_{2.0 * static_cast<double>(src.rows * src.columns * weights.columns)} {
    memory::desc const dst{{src.rows, weights.columns}, sum_type, memory::format_tag::ab};
    dnnl::matmul::desc const description{desc_of(src, type), desc_of(weights, type), dst};
    dnnl::matmul::primitive_desc const primitive{description, engine};
    primitive_ = dnnl::matmul{primitive};
    add(DNNL_ARG_SRC, memory{primitive.src_desc(), engine}, type);
    add(DNNL_ARG_WEIGHTS, memory{primitive.weights_desc(), engine}, type);
    add(DNNL_ARG_DST, memory{primitive.dst_desc(), engine}, sum_type);
  }

  void run() { primitive_.execute(stream_, arguments_); }
  [[nodiscard]] double flop() const { return flop_; }

 private:
  static memory::desc desc_of(Operand operand, memory::data_type type) {
    auto const tag = operand.is_free         ? memory::format_tag::any
                     : operand.is_transposed ? memory::format_tag::ba
                                             : memory::format_tag::ab;
    return {{operand.rows, operand.columns}, type, tag};
  }
  /// Values around 1, of either type: zeros would run at another clock.
  void add(int argument, memory const& buffer, memory::data_type type) {
    std::size_t const bytes = buffer.get_desc().get_size();
    if (type == memory::data_type::f32) {
      auto* const data = static_cast<float*>(buffer.get_data_handle());
      for (std::size_t i = 0; i < bytes / 4; ++i)
        data[i] = 0.7F + 0.001F * static_cast<float>(i % 997);
    } else {
      auto* const data = static_cast<std::uint16_t*>(buffer.get_data_handle());
      for (std::size_t i = 0; i < bytes / 2; ++i) {
        data[i] = BFloat16{0.7F + 0.001F * static_cast<float>(i % 997)}.bits();
      }
    }
    arguments_.insert({argument, buffer});
  }

  dnnl::stream stream_;
  double flop_;
  dnnl::matmul primitive_;
  std::unordered_map<int, memory> arguments_;
};

}  // namespace

struct FloorMeter::Impl {
  Impl(model::ModelSpec const& model_spec, std::int64_t row_count, std::int64_t window)
      : spec{model_spec}, rows{row_count}, tokens{window} {
    type = spec.dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    std::int64_t const qkv = (spec.heads + 2 * spec.kv_heads) * spec.head_width();
    std::int64_t const up = spec.family == model::Family::llama ? 2 * spec.ffn : spec.ffn;
    for (std::int64_t layer = 0; layer < spec.n_layers; ++layer) {
      add_linear(rows, spec.hidden, qkv, type);
      add_linear(rows, spec.heads * spec.head_width(), spec.hidden, type);
      add_linear(rows, spec.hidden, up, type);
      add_linear(rows, spec.ffn, spec.hidden, type);
    }
    std::int64_t const padded_vocab = (spec.vocab + 63) / 64 * 64;
    std::int64_t const chunk = std::min(rows, head_chunk);
    head_chunks = static_cast<double>(rows) / static_cast<double>(chunk);
    head_begin = products.size();
    add_linear(chunk, spec.hidden, padded_vocab, memory::data_type::f32);
  }

  /// y = x W, dx = dy Wᵀ and dW = xᵀ dy; y is of `out_type`.
  void add_linear(memory::dim r, memory::dim in, memory::dim out, memory::data_type out_type) {
    using Operand = Product::Operand;
    auto const f32 = memory::data_type::f32;
    products.emplace_back(engine, stream, type, out_type, Operand{r, in}, free(in, out));
    products.emplace_back(engine, stream, type, type, Operand{r, out}, free(out, in));
    products.emplace_back(engine, stream, type, f32, Operand{in, r, true}, Operand{r, out});
  }
  static Product::Operand free(memory::dim rows_, memory::dim columns) {
    return {rows_, columns, false, true};
  }

  double triad_s() {
    auto const x = a;
    auto const y = b;
    auto const z = c;
    auto const start = Clock::now();
    Kokkos::parallel_for("motley::bench::triad",
                         Kokkos::RangePolicy<Exec>(0, triad_count),
                         [=](std::int64_t i) { x(i) = y(i) + 1.5F * z(i); });
    Exec{}.fence("motley::bench::triad");
    return seconds_since(start);
  }

  model::ModelSpec spec;
  std::int64_t rows;
  std::int64_t tokens;
  memory::data_type type = memory::data_type::f32;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<Product> products;
  std::size_t head_begin = 0;
  double head_chunks = 0.0;
  View1<float> a{"motley::bench::a", triad_count};
  View1<float> b{"motley::bench::b", triad_count};
  View1<float> c{"motley::bench::c", triad_count};
};

FloorMeter::FloorMeter(model::ModelSpec const& spec, std::int64_t rows, std::int64_t tokens)
    : impl_{std::make_unique<Impl>(spec, rows, tokens)} {
  static_cast<void>(measure());
}

FloorMeter::~FloorMeter() = default;

Floor FloorMeter::measure() {
  Impl& impl = *impl_;
  auto const time = [&](std::size_t first, std::size_t last) {
    auto const start = Clock::now();
    for (std::size_t i = first; i < last; ++i) impl.products[i].run();
    impl.stream.wait();
    return seconds_since(start);
  };
  auto const flop = [&](std::size_t first, std::size_t last) {
    double sum = 0.0;
    for (std::size_t i = first; i < last; ++i) sum += impl.products[i].flop();
    return sum;
  };
  std::size_t const head = impl.head_begin;
  std::size_t const end = impl.products.size();
  Floor floor;
  floor.products_s = time(0, head) + impl.head_chunks * time(head, end);
  floor.flop_per_s = (flop(0, head) + impl.head_chunks * flop(head, end)) / floor.products_s;
  model::ModelSpec const& spec = impl.spec;
  double const attention_flop =
      6.0 * static_cast<double>(spec.n_layers * spec.heads * spec.head_width()) *
      static_cast<double>(impl.tokens) * static_cast<double>(impl.rows);
  floor.attention_s = attention_flop / floor.flop_per_s;
  double triad_s = impl.triad_s();
  for (int i = 0; i < 2; ++i) triad_s = std::min(triad_s, impl.triad_s());
  double const triad_bytes = 12.0 * static_cast<double>(triad_count);
  floor.triad_gb_per_s = triad_bytes / triad_s / 1e9;
  floor.update_s = 28.0 * static_cast<double>(parameter_count(spec)) * triad_s / triad_bytes;
  return floor;
}

}  // namespace motley::bench
