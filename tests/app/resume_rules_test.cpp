#include "app/train/resume_rules.hpp"

#include <string>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"

namespace motley::app {
namespace {

std::string config(std::string const& hidden, std::string const& lr, std::string const& interval) {
  return "[model]\nhidden = " + hidden + "\n[optimizer]\nlr = " + lr +
         "\n[log]\ninterval = " + interval + "\n";
}

ErrorKind kind_of_refusal(ResumeOffer const& offer, ResumeWish const& wish, std::string& text) {
  try {
    static_cast<void>(check_resume(offer, wish));
  } catch (Error const& error) {
    text = error.what();
    return error.kind();
  }
  ADD_FAILURE() << "not refused";
  return ErrorKind::bug;
}

TEST(ResumeRulesTest, other_upkeep_keys_take_their_new_value_and_are_listed) {
  auto const changed =
      check_resume({config("8", "0.1", "10"), "data"}, {config("8", "0.1", "5"), "data"});
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].key, "log.interval");
  EXPECT_EQ(changed[0].saved, "10");
  EXPECT_EQ(changed[0].now, "5");
}

TEST(ResumeRulesTest, another_model_is_a_checkpoint_error_naming_key_and_both_values) {
  std::string text;
  EXPECT_EQ(
      kind_of_refusal({config("8", "0.1", "1"), "data"}, {config("16", "0.1", "1"), "data"}, text),
      ErrorKind::checkpoint);
  EXPECT_NE(text.find("model.hidden: 8 in the checkpoint, 16 now"), std::string::npos) << text;
}

TEST(ResumeRulesTest, other_data_is_a_data_error_showing_both_fingerprints) {
  std::string text;
  EXPECT_EQ(
      kind_of_refusal({config("8", "0.1", "1"), "aaa"}, {config("8", "0.1", "1"), "bbb"}, text),
      ErrorKind::data);
  EXPECT_NE(text.find("aaa"), std::string::npos) << text;
  EXPECT_NE(text.find("bbb"), std::string::npos) << text;
}

TEST(ResumeRulesTest, another_optimizer_key_is_a_usage_error_unless_allowed) {
  ResumeOffer const offer{config("8", "0.1", "1"), "data"};
  ResumeWish wish{config("8", "0.2", "1"), "data"};
  std::string text;
  EXPECT_EQ(kind_of_refusal(offer, wish, text), ErrorKind::usage);
  EXPECT_NE(text.find("optimizer.lr: 0.1 in the checkpoint, 0.2 now"), std::string::npos) << text;
  wish.may_override_optimizer = true;
  EXPECT_EQ(check_resume(offer, wish).size(), 1U);
}

}  // namespace
}  // namespace motley::app
