#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "app/config/load.hpp"
#include "app/config/settings.hpp"
#include "kernels/base/error.hpp"

namespace motley::app {
namespace {

std::vector<std::string> const smallest{
    "run.dir=/tmp/run", "data.train=train.h5", "global_batch_size=8", "train_iters=100"};

std::vector<std::string> with(std::vector<std::string> const& more) {
  std::vector<std::string> overrides = smallest;
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

/// Message of the Error{usage} that loading these overrides gives; empty if it loads.
std::string refusal(std::vector<std::string> const& overrides) {
  try {
    static_cast<void>(load_config("", overrides));
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

class ScratchFile {
 public:
  explicit ScratchFile(std::string const& text) {
    std::string pattern = testing::TempDir() + "config_XXXXXX";
    int const file = mkstemp(pattern.data());
    EXPECT_GE(file, 0);
    close(file);
    path_ = pattern;
    std::ofstream{path_} << text;
  }
  ScratchFile(ScratchFile const&) = delete;
  ScratchFile& operator=(ScratchFile const&) = delete;
  ScratchFile(ScratchFile&&) = delete;
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string const& path() const { return path_; }

 private:
  std::string path_;
};

TEST(ConfigTest, overrides_win_over_the_file_and_the_last_override_wins) {
  ScratchFile const file{
      "[run]\ndir = \"a\"\n[data]\ntrain = \"t.h5\"\n[train]\nglobal_batch_size = 8\ntrain_iters = "
      "5\n"
      "[optimizer]\nlr = 1e-3\n"};
  RunConfig const config = load_config(file.path(), {"optimizer.lr=2e-3", "lr=3e-3"});
  EXPECT_EQ(config.run.dir, "a");
  EXPECT_DOUBLE_EQ(config.optimizer.lr, 3e-3);
}

TEST(ConfigTest, a_preset_gives_way_to_explicit_keys_wherever_they_stand) {
  RunConfig const config = load_config("", with({"model.n_layers=3", "model.preset=gpt2-355m"}));
  EXPECT_EQ(config.model.n_layers, 3);
  EXPECT_EQ(config.model.hidden, 1024);  // Radford et al. 2019, table 2
  EXPECT_EQ(config.model.heads, 16);
}

TEST(ConfigTest, the_written_configuration_gives_itself_again_byte_for_byte) {
  RunConfig const config = load_config("",
                                       with({"model.preset=llama-1b",
                                             "optimizer.betas=[0.9, 0.99]",
                                             "optimizer.eps=1e-9",
                                             "run.name=a \"quoted\" name\\with\nodd bytes é",
                                             "optimizer.min_lr=1e-5"}));
  std::string const text = to_toml(config);
  ScratchFile const file{text};
  EXPECT_EQ(to_toml(load_config(file.path(), {})), text);
}

TEST(ConfigTest, familiar_words_mean_the_documented_keys) {
  RunConfig const config = load_config("", with({"clip_grad=0.5", "seq_length=32", "seed=7"}));
  EXPECT_DOUBLE_EQ(config.optimizer.clip_grad, 0.5);
  EXPECT_EQ(config.model.seq_length, 32);
  EXPECT_EQ(config.run.seed, 7);
}

TEST(ConfigTest, an_unknown_key_is_refused_with_the_nearest_known_one) {
  std::string const text = refusal(with({"optimizer.warmup_iters=10"}));
  EXPECT_NE(text.find("optimizer.warmup_iters (command line) is not a known key"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("did you mean optimizer.lr_warmup_iters?"), std::string::npos) << text;
  EXPECT_EQ(nearest_key("model.hiden"), "model.hidden");
  EXPECT_EQ(nearest_key("train.lr"), "optimizer.lr");
  EXPECT_EQ(nearest_key("zzzzzzzzzzzz"), "");
}

TEST(ConfigTest, all_problems_are_listed_at_once_with_their_lines) {
  ScratchFile const file{
      "[run]\ndir = \"a\"\nsed = 1\n[data]\ntrain = 3\n[train]\nglobal_batch_size = 0\n"
      "train_iters = \"many\"\n[model]\ndtype = \"fp8\"\n"};
  std::string text;
  try {
    static_cast<void>(load_config(file.path(), {"eval.iters=0"}));
  } catch (Error const& error) {
    text = error.what();
  }
  std::string const name = std::filesystem::path{file.path()}.filename().string();
  EXPECT_NE(text.find("6 problems"), std::string::npos) << text;
  EXPECT_NE(text.find("run.sed (" + name + ":3) is not a known key"), std::string::npos) << text;
  EXPECT_NE(text.find("data.train (" + name + ":5) takes a string, not an integer (3)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("train.global_batch_size (" + name + ":7)"), std::string::npos) << text;
  EXPECT_NE(text.find("train.train_iters (" + name + ":8) takes an integer"), std::string::npos)
      << text;
  EXPECT_NE(text.find("none of fp32, bf16, fp64"), std::string::npos) << text;
  EXPECT_NE(text.find("eval.iters (command line)"), std::string::npos) << text;
}

TEST(ConfigTest, impossible_sizes_are_listed_together) {
  std::string const text =
      refusal(with({"model.hidden=100", "model.heads=7", "micro_batch_size=3", "model.dropout=1"}));
  EXPECT_NE(text.find("model.hidden"), std::string::npos) << text;
  EXPECT_NE(text.find("model.dropout"), std::string::npos) << text;
  EXPECT_NE(text.find("3 × 2 = 6"), std::string::npos) << text;
  EXPECT_NE(text.find("the nearest it can is 9"), std::string::npos) << text;
}

TEST(ConfigTest, missing_required_keys_are_named) {
  std::string const text = refusal({});
  for (std::string const key :
       {"run.dir", "data.train", "train.global_batch_size", "train.train_iters"}) {
    EXPECT_NE(text.find(key + " is missing"), std::string::npos) << text;
  }
}

TEST(ConfigTest, text_that_is_no_toml_is_refused_with_line_and_column) {
  ScratchFile const file{"[run]\ndir = = 3\n"};
  try {
    static_cast<void>(load_config(file.path(), {}));
    FAIL() << "not refused";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string{error.what()}.find(":2:"), std::string::npos) << error.what();
  }
}

TEST(ConfigTest, a_missing_file_is_refused_by_name) {
  try {
    static_cast<void>(load_config("/nowhere/run.toml", {}));
    FAIL() << "not refused";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string{error.what()}.find("/nowhere/run.toml"), std::string::npos);
  }
}

TEST(ConfigTest, override_values_are_toml_or_bare_words_and_never_evaluated) {
  EXPECT_EQ(std::get<std::int64_t>(parse_override("a=3").value), 3);
  EXPECT_DOUBLE_EQ(std::get<double>(parse_override("a=3e-4").value), 3e-4);
  EXPECT_EQ(std::get<bool>(parse_override("a=true").value), true);
  EXPECT_EQ(std::get<std::string>(parse_override("a=linear").value), "linear");
  EXPECT_EQ(std::get<std::string>(parse_override("a=runs/x=1").value), "runs/x=1");
  EXPECT_EQ(std::get<std::string>(parse_override("a=1+1").value), "1+1");
  EXPECT_EQ(std::get<std::string>(parse_override("a=\"3\"").value), "3");
  EXPECT_THROW(static_cast<void>(parse_override("train_iters")), Error);
}

TEST(ConfigTest, a_count_may_be_written_as_a_whole_real_number) {
  EXPECT_EQ(load_config("", with({"train_iters=1e6"})).train.train_iters, 1'000'000);
  EXPECT_NE(refusal(with({"train_iters=1.5"})), "");
}

TEST(ConfigTest, help_names_every_key_with_its_default) {
  std::string const help = config_help();
  EXPECT_NE(help.find("optimizer.lr "), std::string::npos);
  EXPECT_NE(help.find("6e-04"), std::string::npos);
  EXPECT_NE(help.find("required"), std::string::npos);
}

}  // namespace
}  // namespace motley::app
