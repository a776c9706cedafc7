#include "kernels/base/unique_handle.hpp"

#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

/// Handles that are numbers; remembers which were released.
struct NumberTraits {
  using Raw = int;
  static Raw null() noexcept { return -1; }
  static void release(Raw raw) noexcept { released().push_back(raw); }
  static std::vector<int>& released() {
    static std::vector<int> numbers;
    return numbers;
  }
};
using Number = UniqueHandle<NumberTraits>;

class UniqueHandleTest : public testing::Test {
 protected:
  void SetUp() override { NumberTraits::released().clear(); }
  static std::vector<int> const& released() { return NumberTraits::released(); }
};

TEST_F(UniqueHandleTest, releases_its_handle_once_at_the_end) {
  {
    Number const number{7};
    EXPECT_TRUE(number);
    EXPECT_EQ(number.get(), 7);
    EXPECT_TRUE(released().empty());
  }
  EXPECT_EQ(released(), std::vector{7});
}

TEST_F(UniqueHandleTest, an_empty_one_releases_nothing) {
  {
    Number number;
    EXPECT_FALSE(number);
    number.reset();
  }
  EXPECT_TRUE(released().empty());
}

TEST_F(UniqueHandleTest, moving_empties_the_source) {
  {
    Number source{7};
    Number target{std::move(source)};
    EXPECT_FALSE(source);
    EXPECT_EQ(target.get(), 7);
    Number other{8};
    other = std::move(target);
    EXPECT_FALSE(target);
    EXPECT_EQ(released(), std::vector{8});
  }
  EXPECT_EQ(released(), (std::vector{8, 7}));
}

TEST_F(UniqueHandleTest, moving_to_itself_keeps_the_handle) {
  Number number{7};
  Number& same = number;
  number = std::move(same);
  EXPECT_EQ(number.get(), 7);
  EXPECT_TRUE(released().empty());
}

TEST_F(UniqueHandleTest, a_released_handle_belongs_to_the_caller) {
  {
    Number number{7};
    EXPECT_EQ(number.release(), 7);
    EXPECT_FALSE(number);
  }
  EXPECT_TRUE(released().empty());
}

TEST_F(UniqueHandleTest, reset_releases_now) {
  Number number{7};
  number.reset();
  EXPECT_EQ(released(), std::vector{7});
  EXPECT_FALSE(number);
}

static_assert(!std::is_copy_constructible_v<Number>);
static_assert(!std::is_copy_assignable_v<Number>);
static_assert(std::is_nothrow_move_constructible_v<Number>);

}  // namespace
}  // namespace motley
