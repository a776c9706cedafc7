#include "io/sample_order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "io/hash.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

std::vector<std::int64_t> epoch_of(SampleOrder const& order, std::uint64_t epoch) {
  std::vector<std::int64_t> samples;
  samples.reserve(static_cast<std::size_t>(order.count()));
  for (std::int64_t i = 0; i < order.count(); ++i) {
    samples.push_back(order.sample(epoch * static_cast<std::uint64_t>(order.count()) +
                                   static_cast<std::uint64_t>(i)));
  }
  return samples;
}

/// Pearson's statistic of counts against equal expectations.
double chi_square(std::vector<std::int64_t> const& counts) {
  auto const total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0LL));
  double const expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (std::int64_t const count : counts) {
    double const difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  return sum;
}

/// Upper bound that a chi-square variable exceeds with probability about 1e-6 (Wilson and
/// Hilferty, PNAS 17 (1931): cube root is normal with mean 1 - 2/(9n), variance 2/(9n)).
double chi_square_limit(std::size_t degrees) {
  double const spread = 2.0 / (9.0 * static_cast<double>(degrees));
  double const root = 1.0 - spread + 4.75 * std::sqrt(spread);
  return static_cast<double>(degrees) * root * root * root;
}

TEST(SampleOrderTest, every_epoch_is_a_permutation) {
  std::vector<std::int64_t> counts(130);
  std::iota(counts.begin(), counts.end(), 1);
  for (std::int64_t power = 256; power <= 65536; power *= 4) {
    counts.insert(counts.end(), {power - 1, power, power + 1});
  }
  counts.push_back(100'003);
  for (std::int64_t const count : counts) {
    SampleOrder const order{1234, "data", count};
    for (std::uint64_t const epoch : {0, 1, 7}) {
      std::vector<std::int64_t> samples = epoch_of(order, epoch);
      std::sort(samples.begin(), samples.end());
      std::vector<std::int64_t> identity(static_cast<std::size_t>(count));
      std::iota(identity.begin(), identity.end(), 0);
      ASSERT_EQ(samples, identity) << count << " samples, epoch " << epoch;
    }
  }
}

TEST(SampleOrderTest, seed_epoch_and_data_each_change_the_order) {
  SampleOrder const order{1, "a", 1000};
  std::vector<std::int64_t> const samples = epoch_of(order, 0);
  EXPECT_EQ(samples, epoch_of(SampleOrder{1, "a", 1000}, 0));
  // Two random permutations agree in one place on average (Poisson): 12 has probability 1e-10.
  auto const agreements = [&](std::vector<std::int64_t> const& other) {
    std::int64_t same = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) same += samples[i] == other[i] ? 1 : 0;
    return same;
  };
  EXPECT_LT(agreements(epoch_of(order, 1)), 12);
  EXPECT_LT(agreements(epoch_of(SampleOrder{2, "a", 1000}, 0)), 12);
  EXPECT_LT(agreements(epoch_of(SampleOrder{1, "b", 1000}, 0)), 12);
}

TEST(SampleOrderTest, first_samples_are_uniform_over_seeds) {
  for (std::int64_t const count : {5, 100, 1000}) {
    std::vector<std::int64_t> first(static_cast<std::size_t>(count));
    std::vector<std::int64_t> step(static_cast<std::size_t>(count) - 1);
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
      SampleOrder const order{seed, "data", count};
      std::int64_t const a = order.sample(0);
      std::int64_t const b = order.sample(1);
      ++first[static_cast<std::size_t>(a)];
      ++step[static_cast<std::size_t>((b - a + count) % count - 1)];
    }
    EXPECT_LT(chi_square(first), chi_square_limit(first.size() - 1)) << count;
    EXPECT_LT(chi_square(step), chi_square_limit(step.size() - 1)) << count;
  }
}

TEST(SampleOrderTest, the_first_samples_of_many_epochs_are_uniform) {
  SampleOrder const order{99, "data", 300};
  std::vector<std::int64_t> first(300);
  for (std::uint64_t epoch = 0; epoch < 20'000; ++epoch) {
    ++first[static_cast<std::size_t>(order.sample(epoch * 300))];
  }
  EXPECT_LT(chi_square(first), chi_square_limit(299));
}

TEST(SampleOrderTest, far_positions_and_huge_data_sets_work) {
  std::int64_t const count = std::int64_t{1} << 62U;
  SampleOrder const huge{7, "data", count};
  for (std::uint64_t const position :
       {std::uint64_t{0}, std::uint64_t{1} << 62U, ~std::uint64_t{0}}) {
    EXPECT_GE(huge.sample(position), 0);
    EXPECT_LT(huge.sample(position), count);
  }
  EXPECT_EQ(huge.epoch(~std::uint64_t{0}), 3U);
  SampleOrder const small{7, "data", 10};
  EXPECT_LT(small.sample(~std::uint64_t{0}), 10);
}

TEST(SampleOrderTest, sequential_order_is_file_order_and_wraps) {
  SampleOrder const order = SampleOrder::sequential(3);
  std::vector<std::int64_t> samples;
  samples.reserve(7);
  for (std::uint64_t position = 0; position < 7; ++position) {
    samples.push_back(order.sample(position));
  }
  EXPECT_EQ(samples, (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(SampleOrderTest, no_samples_are_refused) {
  EXPECT_THROW((SampleOrder{1, "data", 0}), Error);
  EXPECT_THROW(static_cast<void>(SampleOrder::sequential(-1)), Error);
}

TEST(SampleOrderTest, the_fingerprint_depends_on_content_length_and_split_alone) {
  DataIdentity const a{"aa", 100, 2};
  DataIdentity const b{"bb", 100, 2};
  std::vector<DataIdentity> const both{a, b};
  std::vector<DataIdentity> const turned{b, a};
  std::string const base = data_fingerprint(both, 1024, "train");
  EXPECT_EQ(base, sha256_hex("motley.data.v1\naa 100 2\nbb 100 2\nseq_length 1024\nsplit train\n"));
  EXPECT_NE(base, data_fingerprint(turned, 1024, "train"));
  EXPECT_NE(base, data_fingerprint(both, 512, "train"));
  EXPECT_NE(base, data_fingerprint(both, 1024, "valid"));
}

}  // namespace
}  // namespace motley::io
