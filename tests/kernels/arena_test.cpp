#include "kernels/base/arena.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "kernels/base/dtype.hpp"
#include "kernels/base/error.hpp"

namespace motley {
namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20U;

/// Takes what a small model might: tensors of odd sizes, and scratch under two scopes.
struct Taken {
  View1<float> vector;
  View2<BFloat16> matrix;
  View3<double> cube;
};

Taken take_all(Arena& arena) {
  Taken taken;
  taken.vector = arena.make<float>("vector", 3);
  {
    ArenaScope const scope{arena};
    static_cast<void>(arena.make<float>("scratch", 1000));
    {
      ArenaScope const inner{arena};
      static_cast<void>(arena.take("more", 5000));
    }
    static_cast<void>(arena.take("less", 1));
  }
  taken.matrix = arena.make<BFloat16>("matrix", 7, 33);
  taken.cube = arena.make<double>("cube", 2, 3, 5);
  return taken;
}

std::vector<std::string> labels_of(Arena const& arena) {
  std::vector<std::string> labels;
  for (Arena::Entry const& entry : arena.entries()) labels.push_back(entry.label);
  return labels;
}

TEST(ArenaTest, counting_predicts_what_a_real_arena_takes) {
  Arena counting = Arena::counting();
  static_cast<void>(take_all(counting));
  EXPECT_TRUE(counting.is_counting());
  Arena real{counting.peak_bytes()};
  static_cast<void>(take_all(real));
  EXPECT_FALSE(real.is_counting());
  EXPECT_EQ(real.used_bytes(), counting.used_bytes());
  EXPECT_EQ(real.peak_bytes(), counting.peak_bytes());
  EXPECT_LE(real.peak_bytes(), real.capacity_bytes());
  EXPECT_EQ(labels_of(real), labels_of(counting));
  EXPECT_EQ(labels_of(real), (std::vector<std::string>{"vector", "matrix", "cube"}));
}

TEST(ArenaTest, sizes_are_rounded_up_to_the_alignment) {
  Arena counting = Arena::counting();
  static_cast<void>(take_all(counting));
  // 12 bytes, 7·33·2 = 462 bytes, 2·3·5·8 = 240 bytes
  EXPECT_EQ(counting.used_bytes(), 256U + 512U + 256U);
  // vector, 4000 bytes, 5000 bytes
  EXPECT_EQ(counting.peak_bytes(), 256U + 4096U + 5120U);
  std::size_t sum = 0;
  for (Arena::Entry const& entry : counting.entries()) sum += entry.bytes;
  EXPECT_EQ(sum, counting.used_bytes());
}

TEST(ArenaTest, views_are_aligned_zeroed_and_apart) {
  Arena arena{megabyte};
  Taken const taken = take_all(arena);
  for (void const* data : {static_cast<void const*>(taken.vector.data()),
                           static_cast<void const*>(taken.matrix.data()),
                           static_cast<void const*>(taken.cube.data())}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % Arena::alignment_bytes, 0U);
  }
  EXPECT_EQ(shape_of(taken.cube), (Shape{2, 3, 5}));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(taken.vector(i), 0.0F);
  Kokkos::deep_copy(taken.vector, 1.0F);
  Kokkos::deep_copy(taken.matrix, BFloat16{2.0F});
  Kokkos::deep_copy(taken.cube, 3.0);
  EXPECT_EQ(taken.vector(2), 1.0F);
  EXPECT_EQ(float{taken.matrix(6, 32)}, 2.0F);
  EXPECT_EQ(taken.cube(0, 0, 0), 3.0);
}

TEST(ArenaTest, a_scope_gives_back_what_was_taken_inside) {
  Arena arena{megabyte};
  void const* first = nullptr;
  {
    ArenaScope const scope{arena};
    first = arena.take("scratch", 1000);
    EXPECT_EQ(arena.used_bytes(), 1024U);
  }
  EXPECT_EQ(arena.used_bytes(), 0U);
  EXPECT_EQ(arena.peak_bytes(), 1024U);
  EXPECT_EQ(arena.take("after", 10), first);
}

TEST(ArenaTest, beyond_the_capacity_is_a_bug_that_names_the_view) {
  Arena arena{1};
  static_cast<void>(arena.take("all", arena.capacity_bytes()));
  try {
    static_cast<void>(arena.make<float>("logits", 1));
    ADD_FAILURE() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bug);
    EXPECT_NE(std::string{error.what()}.find("\"logits\" (256 bytes asked, 0 of 2097152 left)"),
              std::string::npos)
        << error.what();
  }
}

TEST(ArenaTest, memory_the_system_has_not_is_refused_before_anything_is_written) {
  try {
    Arena const arena{std::size_t{1} << 50U};
    ADD_FAILURE() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::plan);
  }
}

TEST(ArenaTest, views_of_a_counting_arena_have_sizes_but_no_memory) {
  Arena counting = Arena::counting();
  View2<float> const view = counting.make<float>("huge", std::int64_t{1} << 20, 1 << 20);
  EXPECT_EQ(view.data(), nullptr);
  EXPECT_EQ(view.extent(0), std::size_t{1} << 20U);
  EXPECT_EQ(counting.used_bytes(), std::size_t{1} << 42U);
}

TEST(ArenaTest, a_moved_arena_keeps_its_memory) {
  Arena source{megabyte};
  View1<float> const view = source.make<float>("view", 4);
  view(0) = 5.0F;
  Arena target{std::move(source)};
  EXPECT_EQ(target.used_bytes(), 256U);
  EXPECT_EQ(view(0), 5.0F);
  Arena other{megabyte};
  other = std::move(target);
  EXPECT_EQ(view(0), 5.0F);
  EXPECT_EQ(other.entries().size(), 1U);
}

std::int64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(ArenaTest, its_memory_faults_no_more_once_it_exists) {
  Arena arena{64 * megabyte};
  auto const view = arena.make<float>("view", 15 * 1024 * 1024);
  std::int64_t const before = minor_faults();
  std::fill(view.data(), view.data() + view.size(), 1.0F);
  EXPECT_LE(minor_faults() - before, 4);  // 15360 pages of 4 KiB were written
}

}  // namespace
}  // namespace motley
