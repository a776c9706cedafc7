#include "kernels/base/error.hpp"

#include <map>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "kernels/base/log.hpp"

namespace motley {
namespace {

// The table users and job scripts rely on (DESIGN.md §5).
std::map<ErrorKind, int> const documented_codes{{ErrorKind::usage, 64},
                                                {ErrorKind::data, 65},
                                                {ErrorKind::checkpoint, 66},
                                                {ErrorKind::device, 69},
                                                {ErrorKind::bug, 70},
                                                {ErrorKind::write, 73},
                                                {ErrorKind::timeout, 76},
                                                {ErrorKind::plan, 78},
                                                {ErrorKind::numeric, 79}};

template <class Call>
Error error_of(Call const& call) {
  try {
    call();
  } catch (Error const& error) {
    return error;
  }
  throw std::logic_error{"nothing was thrown"};
}

TEST(ErrorTest, kinds_have_the_documented_exit_codes) {
  for (auto const& [kind, code] : documented_codes) EXPECT_EQ(exit_code(kind), code);
  EXPECT_EQ(exit_code_resume, 75);
}

TEST(ErrorTest, exceptions_of_others_count_as_bugs) {
  EXPECT_EQ(exit_code(std::runtime_error{"disk"}), 70);
  EXPECT_EQ(exit_code(error_of([] { MOTLEY_FAIL(data, "x"); })), 65);
}

TEST(ErrorTest, kinds_have_distinct_names) {
  std::map<std::string_view, ErrorKind> names;
  for (auto const& [kind, code] : documented_codes) names[to_string(kind)] = kind;
  EXPECT_EQ(names.size(), documented_codes.size());
  EXPECT_EQ(to_string(ErrorKind::checkpoint), "checkpoint");
}

TEST(ErrorTest, validate_says_message_expression_and_place) {
  int const layers = -3;
  int const line = __LINE__ + 1;
  auto const check = [&] { MOTLEY_VALIDATE(usage, layers > 0, "n_layers is " << layers); };
  Error const error = error_of(check);
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_STREQ(error.what(), "n_layers is -3");
  EXPECT_STREQ(error.expression(), "layers > 0");
  EXPECT_TRUE(std::string_view{error.file()}.ends_with("tests/kernels/error_test.cpp"));
  EXPECT_EQ(error.line(), line);
}

TEST(ErrorTest, validate_evaluates_its_message_only_on_failure) {
  int calls = 0;
  auto const text = [&] {
    ++calls;
    return "message";
  };
  EXPECT_NO_THROW(MOTLEY_VALIDATE(usage, 1 + 1 == 2, text()));
  EXPECT_EQ(calls, 0);
  EXPECT_THROW(MOTLEY_VALIDATE(usage, 1 + 1 == 3, text()), Error);
  EXPECT_EQ(calls, 1);
}

TEST(ErrorTest, errors_carry_the_rank_of_the_log) {
  install_log({nullptr, LogLevel::off, 5, "host"});
  EXPECT_EQ(error_of([] { MOTLEY_FAIL(device, "x"); }).world_rank(), 5);
  install_log({});
  EXPECT_EQ(error_of([] { MOTLEY_FAIL(device, "x"); }).world_rank(), 0);
}

TEST(ErrorTest, contracts_are_checked_where_they_are_on) {
  int evaluations = 0;
  auto const holds = [&](bool value) {
    ++evaluations;
    return value;
  };
  EXPECT_NO_THROW(MOTLEY_EXPECT(holds(true)));
#ifdef MOTLEY_ENABLE_CONTRACTS
  EXPECT_EQ(evaluations, 1);
  Error const error = error_of([&] { MOTLEY_ENSURE(holds(false)); });
  EXPECT_EQ(error.kind(), ErrorKind::bug);
  std::string_view const message = error.what();
  EXPECT_NE(message.find("postcondition \"holds(false)\""), std::string_view::npos);
  EXPECT_THROW(MOTLEY_EXPECT(holds(false)), Error);
  EXPECT_THROW(MOTLEY_ASSERT(holds(false)), Error);
#else
  EXPECT_NO_THROW(MOTLEY_ASSERT(holds(false)));
  EXPECT_EQ(evaluations, 0);
#endif
}

}  // namespace
}  // namespace motley
