// Times attention forward and backward, each in turn with a fp32 matrix product of our facade, and
// prints one JSON line per case. flop_per_s counts the products over the causal half: 2 forward, 5
// backward, the recomputed scores among them; of_product is the median ratio to the product's rate.
// Arguments: batch tokens heads kv_heads head_width, or none for the standard shapes.
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/linear.hpp"
#include "tests/bench/bench.hpp"
#include "tests/kernels/random_view.hpp"

namespace motley::bench {
namespace {

using kernels::AttentionShape;
using test::random_view;

constexpr int pairs = 9;

/// The yardstick: x [rows, 768] · W [768, 2304], the product that makes qkv in GPT-2 124M.
class Product {
 public:
  Product() {
    kernels::LinearSpec const spec{"yardstick", kernels::WeightOrder::out_in, in, out, rows, false};
    {
      Arena sizes = Arena::counting();
      kernels::LinearOperator<float> const counted{engine_, sizes, spec};
      engine_.allocate_workspace(sizes);
      arena_.emplace(sizes.used_bytes());
    }
    linear_.emplace(engine_, *arena_, spec);
    engine_.allocate_workspace(*arena_);
    linear_->pack({}, weight_);
  }
  void operator()() { linear_->forward({}, x_, {}, y_); }
  static constexpr std::int64_t rows = 2048;
  static constexpr std::int64_t in = 768;
  static constexpr std::int64_t out = 2304;
  static constexpr double flop = 2.0 * rows * in * out;

 private:
  kernels::MatmulEngine engine_;
  std::optional<Arena> arena_;
  std::optional<kernels::LinearOperator<float>> linear_;
  View2<float> x_ = random_view<float>("x", rows, in, 1);
  View2<float> weight_ = random_view<float>("weight", out, in, 2);
  View2<float> y_ = random_view<float>("y", rows, out, 3);
};

template <class T>
class Runner {
 public:
  Runner(Product& product, AttentionShape const& s)
      : product_{product},
        shape_{s},
        qkv_{random_view<T>("qkv", s.rows(), s.qkv_columns(), 1)},
        dout_{random_view<T>("dout", s.rows(), s.heads * s.head_width, 2)},
        out_{random_view<T>("out", s.rows(), s.heads * s.head_width, 3)},
        dqkv_{random_view<T>("dqkv", s.rows(), s.qkv_columns(), 4)},
        lse_("lse",
             static_cast<std::size_t>(s.batch),
             static_cast<std::size_t>(s.heads),
             static_cast<std::size_t>(s.tokens)),
        workspace_("workspace", kernels::attention_workspace_bytes<T>(s)) {}

  void run() {
    measure("attention_forward", 2, [&] {
      kernels::attention_forward<T>({}, shape_, qkv_, out_, lse_, workspace_);
    });
    measure("attention_backward", 5, [&] {
      kernels::attention_backward<T>({}, shape_, {qkv_, out_, lse_}, dout_, dqkv_, workspace_);
    });
  }

 private:
  template <class Work>
  void measure(std::string const& name, int products, Work const& work) {
    auto const tokens = static_cast<double>(shape_.tokens);
    double const dots =
        static_cast<double>(shape_.batch * shape_.heads) * tokens * (tokens + 1.0) / 2.0;
    double const flop = 2.0 * products * dots * static_cast<double>(shape_.head_width);
    Timing times;
    Timing product_times;
    time_in_turn(
        pairs, work, times, [&] { product_(); }, product_times);
    auto line = record(name, times);
    line["dtype"] = to_string(dtype_of<T>);
    line["shape"] = {{"batch", shape_.batch},
                     {"tokens", shape_.tokens},
                     {"heads", shape_.heads},
                     {"kv_heads", shape_.kv_heads},
                     {"head_width", shape_.head_width}};
    line["flop_per_s"] = flop / times.median_s();
    line["product_flop_per_s"] = Product::flop / product_times.median_s();
    line["of_product"] = flop / times.median_s() / (Product::flop / product_times.median_s());
    line["of_product_fastest"] =
        flop / times.fastest_s() / (Product::flop / product_times.fastest_s());
    std::cout << line.dump() << std::endl;
  }

  Product& product_;
  AttentionShape shape_;
  View2<T> qkv_, dout_, out_, dqkv_;
  View3<float> lse_;
  View1<std::byte> workspace_;
};

std::vector<AttentionShape> shapes_of(int argc, char** argv) {
  if (argc < 6) {
    return {
        {4, 64, 12, 12, 64}, {4, 256, 12, 12, 64}, {4, 1024, 12, 12, 64}, {1, 2048, 32, 8, 128}};
  }
  std::int64_t sizes[5];
  for (int i = 0; i < 5; ++i) sizes[i] = std::stoll(argv[i + 1]);
  return {{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]}};
}

}  // namespace
}  // namespace motley::bench

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos{argc, argv};
  motley::bench::Product product;
  for (auto const& shape : motley::bench::shapes_of(argc, argv)) {
    motley::bench::Runner<float>{product, shape}.run();
    motley::bench::Runner<motley::BFloat16>{product, shape}.run();
  }
  return 0;
}
