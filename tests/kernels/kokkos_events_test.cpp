#include "tests/kernels/kokkos_events.hpp"

#include <cstdint>

#include <Kokkos_Profiling_ScopedRegion.hpp>
#include <gtest/gtest.h>

#include "kernels/activation.hpp"
#include "kernels/adamw.hpp"
#include "kernels/base/arena.hpp"
#include "kernels/cast.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/dropout.hpp"
#include "kernels/embedding.hpp"
#include "kernels/norm.hpp"
#include "kernels/reduce.hpp"

namespace motley::test {
namespace {

using Kind = KokkosEvents::Kind;

TEST(KokkosEventsTest, tell_each_kind_apart) {
  KokkosEvents events;
  {
    View1<float> const a(Kokkos::view_alloc("motley::test::Events::a", Kokkos::WithoutInitializing),
                         8);
    EXPECT_EQ(events.count(Kind::allocation), 1U);
    View1<float> const b("motley::test::Events::b", 8);
    EXPECT_EQ(events.count(Kind::allocation), 2U);
    EXPECT_EQ(events.count(Kind::copy), 0U);
    Kokkos::deep_copy(b, a);
    EXPECT_EQ(events.count(Kind::copy), 1U);
    EXPECT_EQ(events.count(Kind::release), 0U);
  }
  EXPECT_EQ(events.count(Kind::release), 2U);
  EXPECT_FALSE(events.are_steady());
  events.clear();
  EXPECT_TRUE(events.all().empty());
  Exec{}.fence("motley::test::Events::of_instance");
  EXPECT_EQ(events.count(Kind::fence_of_instance), 1U);
  EXPECT_TRUE(events.are_steady());
  Kokkos::fence("motley::test::Events::global");
  EXPECT_GE(events.count(Kind::global_fence), 1U);
  EXPECT_FALSE(events.are_steady());
}

TEST(KokkosEventsTest, check_labels) {
  KokkosEvents events;
  auto const run = [](char const* label) {
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec>(0, 1), KOKKOS_LAMBDA(int){});
  };
  run("motley::test::Events::kernel");
  EXPECT_EQ(events.count(Kind::kernel), 1U);
  EXPECT_TRUE(events.are_named("motley::"));
  EXPECT_FALSE(events.are_named("motley::kernels::"));
  { Kokkos::Profiling::ScopedRegion const region{"motley::Events"}; }
  EXPECT_EQ(events.count(Kind::region), 1U);
  EXPECT_FALSE(events.are_named("motley::"));  // the thing or what it does is missing
  events.clear();
  run("kernel");
  EXPECT_FALSE(events.are_named("motley::"));
}

TEST(KokkosEventsTest, nothing_is_recorded_after_the_end) {
  { KokkosEvents const events; }
  KokkosEvents const later;
  EXPECT_TRUE(later.all().empty());
}

/// Operands of every kernel in one arena, of 4 windows of 8 tokens.
struct Operands {
  static constexpr std::int64_t rows = 32;
  static constexpr std::int64_t width = 20;
  static constexpr std::int64_t vocab = 50;

  Arena arena{std::size_t{1} << 20U};
  View2<float> x = arena.make<float>("x", rows, width);
  View2<float> y = arena.make<float>("y", rows, width);
  View2<float> gate_up = arena.make<float>("gate_up", rows, 2 * width);
  View2<float> table = arena.make<float>("table", vocab, width);
  View2<float> logits = arena.make<float>("logits", rows, vocab);
  View1<float> weight = arena.make<float>("weight", width);
  View1<float> dweight = arena.make<float>("dweight", width);
  View1<float> mean = arena.make<float>("mean", rows);
  View1<float> rstd = arena.make<float>("rstd", rows);
  View1<float> losses = arena.make<float>("losses", rows);
  View1<float> flat = arena.make<float>("flat", 1000);
  View1<float> m = arena.make<float>("m", 1000);
  View1<float> v = arena.make<float>("v", 1000);
  View1<BFloat16> param = arena.make<BFloat16>("param", 1000);
  View1<double> out = arena.make<double>("out", 1);
  View1<double> sums = arena.make<double>("sums", kernels::reduce_workspace_size(1000));
  View1<std::int32_t> ids = arena.make<std::int32_t>("ids", rows);
  View1<std::uint64_t> samples = arena.make<std::uint64_t>("samples", 4);
  View1<float> workspace =
      arena.make<float>("workspace", kernels::norm_workspace_size(rows, width));
};

void run_norms(Exec const& exec, Operands const& o) {
  kernels::layer_norm_forward<float>(exec, o.x, o.weight, o.weight, 1e-5F, o.y, {o.mean, o.rstd});
  kernels::layer_norm_backward<float>(
      exec, {o.y, o.x, o.weight, o.mean, o.rstd, {}}, o.y, o.dweight, o.dweight, o.workspace);
  kernels::rms_norm_forward<float>(exec, o.x, o.weight, 1e-5F, o.y, o.rstd);
  kernels::rms_norm_backward<float>(
      exec, {o.y, o.x, o.weight, o.rstd, o.x}, o.y, o.dweight, o.workspace);
}

void run_elementwise(Exec const& exec, Operands const& o) {
  kernels::gelu_forward<float>(exec, o.x, o.y);
  kernels::gelu_backward<float>(exec, o.x, o.y, o.y);
  kernels::swiglu_forward<float>(exec, o.gate_up, o.y);
  kernels::swiglu_backward<float>(exec, o.gate_up, o.y, o.gate_up);
  kernels::dropout<float>(exec, {1, 2, 3}, o.samples, 0.1, 8, o.x);
  kernels::adamw_step<BFloat16>(exec, {}, o.flat, o.flat, o.m, o.v, o.param);
  kernels::cast<BFloat16, float>(exec, o.flat, o.param);
  kernels::fill<float>(exec, 1.0F, o.flat);
  kernels::scale<float>(exec, 2.0F, o.flat);
  kernels::axpy<float>(exec, 2.0F, o.flat, o.m);
}

void run_tokens_and_sums(Exec const& exec, Operands const& o) {
  kernels::embedding_forward<float>(exec, {8, 0}, o.ids, o.table, o.x, o.y);
  kernels::embedding_backward<float>(exec, {8, 0}, o.ids, o.y, o.table, o.x);
  kernels::softmax_cross_entropy<float>(exec, o.logits, 49, o.ids, 1.0F, o.losses, o.logits);
  kernels::column_sum<float>(exec, o.x, o.dweight);
  kernels::sum<float>(exec, o.flat, o.out, o.sums);
  kernels::square_sum<float>(exec, o.flat, o.out, o.sums);
  EXPECT_EQ(kernels::first_non_finite<float>(exec, o.losses), -1);
}

TEST(KernelEventsTest, kernels_are_named_and_neither_allocate_nor_copy_nor_fence_all) {
  Exec const exec;
  Operands const operands;
  run_norms(exec, operands);  // what a backend allocates once
  KokkosEvents const events;
  run_norms(exec, operands);
  run_elementwise(exec, operands);
  run_tokens_and_sums(exec, operands);
  exec.fence("motley::test::Kernels::end");
  EXPECT_GE(events.count(Kind::kernel), 25U);
  EXPECT_TRUE(events.are_steady());
  for (KokkosEvents::Event const& event : events.all()) {
    if (event.kind == Kind::kernel) {
      EXPECT_TRUE(event.label.starts_with("motley::kernels::")) << event.label;
    }
  }
}

}  // namespace
}  // namespace motley::test
