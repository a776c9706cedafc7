#include "io/checkpoint/checkpoint.hpp"

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "io/durable_file.hpp"
#include "io/hdf5/file.hpp"
#include "io/run_folder.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/checkpoint_state.hpp"
#include "tests/io/log_capture.hpp"
#include "tests/io/scratch.hpp"

namespace motley::io {
namespace {

using test::LogCapture;
using test::meta_of;
using test::Scratch;
using test::TestState;
namespace fs = std::filesystem;

struct Thrown {
  int code = 0;
  std::string text;
  [[nodiscard]] bool contains(std::string_view part) const {
    return text.find(part) != std::string::npos;
  }
};

template <class Call>
Thrown thrown_by(Call const& call) {
  try {
    call();
  } catch (Error const& error) {
    return {exit_code(error), error.what()};
  }
  return {};
}

Resume const resume_auto = parse_resume("auto");

/// A run folder with checkpoints of some steps.
class CheckpointTest : public testing::Test {
 protected:
  SaveReport save(std::int64_t step, SaveOptions const& options = {}) {
    state_.fill(step);
    return save_checkpoint(folder_, meta_of(step), state_.tensors(), options);
  }
  /// Step that a resume finds, whose values are there; 0: nothing, -1: other values.
  std::int64_t resume() {
    state_.fill(999'983);
    auto const report = resume_checkpoint(path_, resume_auto, state_.tensors());
    if (!report) return 0;
    return state_.is_of(report->meta.step) ? report->meta.step : -1;
  }
  [[nodiscard]] fs::path step_path(std::int64_t step) const {
    char name[32];
    std::snprintf(name, sizeof name, "step_%08lld", static_cast<long long>(step));
    return folder_.checkpoints() / name;
  }
  /// "1 2 3": steps of the folders that are there.
  [[nodiscard]] std::string steps() const {
    std::string result;
    for (std::int64_t step = 0; step < 100; ++step) {
      if (!fs::exists(step_path(step))) continue;
      if (!result.empty()) result += " ";
      result += std::to_string(step);
    }
    return result;
  }
  [[nodiscard]] bool has_leftovers() const {
    for (auto const& entry : fs::directory_iterator{folder_.checkpoints()}) {
      if (entry.path().extension() == ".tmp") return true;
    }
    return false;
  }
  static void flip(fs::path const& file, std::int64_t offset) {
    std::fstream stream{file, std::ios::in | std::ios::out | std::ios::binary};
    stream.seekg(offset);
    char byte = 0;
    stream.get(byte);
    stream.seekp(offset);
    stream.put(static_cast<char>(byte ^ 16));
  }
  /// Flips a bit in the middle of a tensor.
  void damage(std::int64_t step, std::string const& path) {
    for (TensorRecord const& record : inspect_checkpoint(step_path(step)).tensors) {
      if (std::string{group_of(record.kind)} + "/" + record.name == path) {
        flip(step_path(step) / "state.h5", record.offset_bytes + record.bytes() / 2);
      }
    }
  }

  Scratch scratch_;
  fs::path path_ = scratch_ / "run";
  RunFolder folder_{path_};
  TestState state_{64};
};

TEST_F(CheckpointTest, what_was_saved_is_loaded_bit_for_bit_in_every_dtype) {
  SaveReport const saved = save(7);
  EXPECT_EQ(saved.folder, step_path(7));
  EXPECT_GT(saved.seconds, 0.0);
  EXPECT_GT(saved.gb_per_s, 0.0);
  EXPECT_TRUE(saved.warnings.empty());
  EXPECT_EQ(fs::file_size(step_path(7) / "state.h5"), static_cast<std::uintmax_t>(saved.bytes));
  EXPECT_EQ(resume(), 7);
  EXPECT_EQ(read_whole_file(folder_.checkpoints() / "latest"), "step_00000007\n");
  EXPECT_TRUE(verify_checkpoint(path_).empty());
  EXPECT_FALSE(has_leftovers());
}

TEST_F(CheckpointTest, the_meta_data_come_back) {
  CheckpointMeta meta = meta_of(12);
  meta.config = "text with \"quotes\"\n\tand ünïcode\n";
  meta.plan = "pipelines = 2\n";
  meta.schedule["tiny"] = 4.9e-324;
  meta.data["low"] = std::numeric_limits<std::int64_t>::min();
  save_checkpoint(folder_, meta, state_.tensors());
  CheckpointMeta const found = read_checkpoint_meta(path_);
  EXPECT_EQ(found.step, 12);
  EXPECT_EQ(found.tokens, 12'000);
  EXPECT_EQ(found.next_sample, 48);
  EXPECT_EQ(found.data_fingerprint, "d4ta");
  EXPECT_EQ(found.model_hash, "m0del");
  EXPECT_EQ(found.config, meta.config);
  EXPECT_EQ(found.plan, meta.plan);
  EXPECT_EQ(found.data, meta.data);
  EXPECT_EQ(found.schedule, meta.schedule);
  EXPECT_EQ(found.random, meta.random);
}

TEST_F(CheckpointTest, a_number_that_is_not_finite_is_refused) {
  CheckpointMeta meta = meta_of(1);
  meta.schedule["lr"] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(thrown_by([&] { save_checkpoint(folder_, meta, state_.tensors()); }).code, 70);
}

TEST_F(CheckpointTest, the_same_state_gives_the_same_bytes) {
  save(3);
  Scratch const other;
  RunFolder const folder{other / "run"};
  save_checkpoint(folder, meta_of(3), state_.tensors(), {3, 0, true, 3});
  for (char const* name : {"state.h5", "manifest.json"}) {
    EXPECT_EQ(read_whole_file(step_path(3) / name),
              read_whole_file(folder.checkpoints() / "step_00000003" / name))
        << name;
  }
}

TEST_F(CheckpointTest, hdf5_reads_names_values_and_attributes) {
  save(5);
  auto const file = hdf5::File::open_to_read((step_path(5) / "state.h5").string());
  EXPECT_EQ(file.names("/adam/m"), std::vector<std::string>{"embedding.tokens.weight"});
  auto const values = file.open_dataset("/param/layers.0.norm1.bias").read_all<float>();
  ASSERT_EQ(values.size(), 37U);
  for (std::int64_t i = 0; i < 37; ++i) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)],
              static_cast<float>(test::expected_value(5, 1, i)));
  }
  auto const weight = file.open_dataset("/param/embedding.tokens.weight");
  EXPECT_EQ(weight.element(), hdf5::Element::bf16);
  EXPECT_EQ(weight.file_offset().value() % 4096, 0U);
  EXPECT_EQ(weight.storage().chunk_elements, 0);
}

TEST_F(CheckpointTest, intervals_are_written_to_and_read_from_their_rows) {
  state_.fill(9);
  StateTensors tensors = state_.tensors();
  auto const cut = [&](StateKind kind, std::vector<Interval> const& rows) {
    NamedTensor const whole = state_.named(kind).front();
    std::vector<NamedTensor> parts;
    for (Interval const& interval : rows) {
      NamedTensor part = whole;
      part.interval = interval;
      part.data = static_cast<std::byte*>(whole.data) +
                  static_cast<std::size_t>(interval.begin * whole.shape.row_count()) *
                      size_bytes(whole.dtype);
      parts.push_back(part);
    }
    return parts;
  };
  auto const masters = cut(StateKind::master, {{40, 64}, {0, 1}, {1, 40}});
  tensors.masters = masters;
  save_checkpoint(folder_, meta_of(9), tensors);
  EXPECT_EQ(resume(), 9);

  // Parts in any order, overlapping, with rows that nobody wants between them.
  state_.fill(0);
  tensors = state_.tensors();
  auto const some = cut(StateKind::master, {{50, 60}, {3, 10}, {5, 7}, {8, 20}});
  tensors = {{}, some, {}, {}};
  load_checkpoint(path_, tensors);
  auto const* values = static_cast<float const*>(state_.named(StateKind::master).front().data);
  for (std::int64_t row = 0; row < 64; ++row) {
    bool const is_wanted = (3 <= row && row < 20) || (50 <= row && row < 60);
    for (std::int64_t column = 0; column < 512; ++column) {
      std::int64_t const i = 512 * row + column;
      EXPECT_EQ(values[i], static_cast<float>(test::expected_value(is_wanted ? 9 : 0, 3, i))) << i;
    }
  }
}

TEST_F(CheckpointTest, a_part_is_refused_if_another_row_of_its_tensor_is_damaged) {
  save(2);
  damage(2, "/master/embedding.tokens.weight");
  StateTensors tensors = state_.tensors();
  std::vector<NamedTensor> some{tensors.masters.front()};
  some.front().interval = {0, 3};
  Thrown const thrown = thrown_by([&] { load_checkpoint(path_, {{}, some, {}, {}}); });
  EXPECT_EQ(thrown.code, 66);
  EXPECT_TRUE(thrown.contains("/master/embedding.tokens.weight")) << thrown.text;
}

TEST_F(CheckpointTest, gaps_and_overlaps_are_refused_on_save) {
  for (auto const& rows : std::vector<std::vector<Interval>>{
           {{0, 63}}, {{1, 64}}, {{0, 32}, {33, 64}}, {{0, 33}, {32, 64}}, {{0, 64}, {0, 64}}}) {
    StateTensors tensors = state_.tensors();
    std::vector<NamedTensor> parts;
    for (Interval const& interval : rows) {
      parts.push_back(tensors.masters.front());
      parts.back().interval = interval;
    }
    tensors.masters = parts;
    EXPECT_EQ(thrown_by([&] { save_checkpoint(folder_, meta_of(1), tensors); }).code, 70);
  }
  EXPECT_EQ(steps(), "");
  EXPECT_FALSE(has_leftovers());
}

TEST_F(CheckpointTest, all_differences_of_names_shapes_and_dtypes_are_listed) {
  save(1);
  StateTensors tensors = state_.tensors();
  std::vector<NamedTensor> parameters{tensors.parameters.begin(), tensors.parameters.end()};
  parameters[0].dtype = DType::fp32;
  parameters[1].name = "layers.0.norm9.bias";
  parameters[2].shape = {3, 10};
  std::vector<float> memory(64 * 512);
  parameters[0].data = memory.data();
  tensors.parameters = parameters;
  Thrown const thrown =
      thrown_by([&] { static_cast<void>(resume_checkpoint(path_, resume_auto, tensors)); });
  EXPECT_EQ(thrown.code, 66);
  for (char const* part :
       {"/param/embedding.tokens.weight is bf16 [64, 512] in the checkpoint and fp32 [64, 512]",
        "/param/layers.0.norm9.bias is not in the checkpoint",
        "/param/exact is fp64 [3, 5, 2] in the checkpoint and fp64 [3, 10] in the model",
        "/param/layers.0.norm1.bias is not in the model"}) {
    EXPECT_TRUE(thrown.contains(part)) << part << "\n" << thrown.text;
  }
}

TEST_F(CheckpointTest, a_part_of_the_model_may_be_loaded_alone) {
  save(1);
  StateTensors tensors = state_.tensors();
  tensors.parameters = tensors.parameters.subspan(1, 1);
  EXPECT_EQ(thrown_by([&] { load_checkpoint(path_, tensors); }).code, 66);
  tensors.coverage = StateTensors::Coverage::part_of_model;
  EXPECT_NO_THROW(load_checkpoint(path_, tensors));
}

TEST_F(CheckpointTest, nothing_to_resume_is_one_loud_line) {
  LogCapture const capture;
  EXPECT_EQ(resume(), 0);
  EXPECT_TRUE(capture.contains("FRESH START")) << capture.text();
}

TEST_F(CheckpointTest, damaged_checkpoints_are_named_and_skipped_newest_first) {
  for (std::int64_t const step : {1, 2, 3}) save(step);
  EXPECT_EQ(resume(), 3);
  damage(3, "/adam/v/embedding.tokens.weight");
  {
    LogCapture const capture;
    EXPECT_EQ(resume(), 2);
    EXPECT_TRUE(capture.contains("step_00000003")) << capture.text();
    EXPECT_TRUE(capture.contains("tensor /adam/v/embedding.tokens.weight of state.h5"));
  }
  flip(step_path(2) / "manifest.json", 40);
  {
    LogCapture const capture;
    EXPECT_EQ(resume(), 1);
    EXPECT_TRUE(capture.contains("manifest.json is damaged")) << capture.text();
  }
  fs::resize_file(step_path(1) / "state.h5", 5000);
  Thrown const thrown = thrown_by([&] { resume(); });
  EXPECT_EQ(thrown.code, 66);
  for (char const* part : {"step_00000003", "step_00000002", "step_00000001: state.h5 has 5000"}) {
    EXPECT_TRUE(thrown.contains(part)) << part << "\n" << thrown.text;
  }
}

TEST_F(CheckpointTest, all_damage_is_reported_by_verify) {
  save(1);
  damage(1, "/adam/v/embedding.tokens.weight");
  damage(1, "/param/exact");
  flip(step_path(1) / "state.h5", 9);
  std::vector<std::string> const damage = verify_checkpoint(step_path(1));
  ASSERT_EQ(damage.size(), 3U);
  EXPECT_NE(damage[0].find("HDF5 metadata"), std::string::npos);
  EXPECT_NE(damage[1].find("/param/exact"), std::string::npos);
  EXPECT_NE(damage[2].find("/adam/v/embedding.tokens.weight"), std::string::npos);
}

TEST_F(CheckpointTest, files_that_are_missing_are_named) {
  for (char const* name : {"state.h5", "manifest.json"}) {
    save(1);
    fs::remove(step_path(1) / name);
    Thrown const thrown = thrown_by([&] { load_checkpoint(step_path(1), state_.tensors()); });
    EXPECT_EQ(thrown.code, 66);
    EXPECT_TRUE(thrown.contains(name)) << thrown.text;
  }
}

TEST_F(CheckpointTest, an_explicit_path_is_taken_or_is_an_error) {
  for (std::int64_t const step : {1, 2}) save(step);
  auto const load = [&](fs::path const& path) {
    return resume_checkpoint("elsewhere", parse_resume(path.string()), state_.tensors())->meta.step;
  };
  EXPECT_EQ(load(step_path(1)), 1);
  EXPECT_TRUE(state_.is_of(1));
  EXPECT_EQ(load(path_), 2);
  EXPECT_EQ(load(folder_.checkpoints()), 2);
  Thrown const missing = thrown_by([&] { load(step_path(3)); });
  EXPECT_EQ(missing.code, 66);
  EXPECT_TRUE(missing.contains("step_00000003")) << missing.text;
  damage(1, "/param/exact");
  Thrown const damaged = thrown_by([&] { load(step_path(1)); });
  EXPECT_EQ(damaged.code, 66);
  EXPECT_TRUE(damaged.contains("/param/exact")) << damaged.text;
}

TEST_F(CheckpointTest, never_refuses_a_folder_that_holds_a_run) {
  auto const never = [&] {
    return resume_checkpoint(path_, parse_resume("never"), state_.tensors());
  };
  EXPECT_FALSE(never());
  save(1);
  EXPECT_EQ(thrown_by(never).code, 64);
}

TEST_F(CheckpointTest, what_the_caller_does_not_accept_is_not_read) {
  save(1);
  save(2);
  state_.fill(77);
  auto const refuse = [](CheckpointMeta const& meta) {
    MOTLEY_FAIL(data, "fingerprint " << meta.data_fingerprint << " at " << meta.step);
  };
  Thrown const thrown = thrown_by(
      [&] { static_cast<void>(resume_checkpoint(path_, resume_auto, state_.tensors(), refuse)); });
  EXPECT_EQ(thrown.code, 65);
  EXPECT_EQ(thrown.text, "fingerprint d4ta at 2");
  EXPECT_TRUE(state_.is_of(77));
}

TEST_F(CheckpointTest, the_last_ones_and_every_so_many_are_kept) {
  SaveOptions const options{2, 4, true, 0};
  for (std::int64_t step = 1; step <= 9; ++step) save(step, options);
  EXPECT_EQ(steps(), "4 8 9");
  save(10, {1, 0, true, 0});
  EXPECT_EQ(steps(), "10");
  save(11, {0, 0, true, 0});
  EXPECT_EQ(steps(), "11");
  EXPECT_EQ(resume(), 11);
  EXPECT_FALSE(has_leftovers());
}

TEST_F(CheckpointTest, the_only_verified_checkpoint_is_never_deleted) {
  save(1, {1, 0, true, 0});
  // Steps 2 and 3 are damaged between their save and the moment at which step 1 would go.
  save(2, {9, 0, true, 0});
  save(3, {9, 0, true, 0});
  damage(2, "/param/exact");
  damage(3, "/param/exact");
  // A checkpoint of a later step, so that the newest of those kept is one of the damaged ones.
  fs::rename(step_path(3), step_path(9));
  SaveReport const report = save(4, {1, 0, true, 0});
  EXPECT_EQ(steps(), "1 2 4 9");
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("step_00000009"), std::string::npos);
  EXPECT_EQ(resume(), 4);
}

TEST_F(CheckpointTest, one_in_keep_last_saves_is_read_back) {
  int read_back = 0;
  for (std::int64_t step = 1; step <= 12; ++step) {
    read_back += save(step, {3, 0, true, 0}).verify_seconds > 0.0 ? 1 : 0;
  }
  EXPECT_EQ(read_back, 3);  // at the saves of steps 4, 7, 10
  for (std::int64_t step = 13; step <= 20; ++step) {
    EXPECT_EQ(save(step, {3, 0, false, 0}).verify_seconds, 0.0);
  }
}

TEST_F(CheckpointTest, a_save_of_the_same_step_takes_the_place_of_the_old_one) {
  save(4);
  damage(4, "/param/exact");
  save(4);
  EXPECT_EQ(steps(), "4");
  EXPECT_EQ(resume(), 4);
  EXPECT_FALSE(has_leftovers());
}

TEST_F(CheckpointTest, later_checkpoints_are_set_aside_when_a_run_goes_back) {
  for (std::int64_t const step : {1, 2, 3}) save(step);
  auto const renamed = set_aside_checkpoints_after(folder_, 1);
  EXPECT_EQ(renamed.size(), 2U);
  EXPECT_EQ(steps(), "1");
  EXPECT_EQ(resume(), 1);
  for (fs::path const& path : renamed) EXPECT_TRUE(verify_checkpoint(path).empty());
}

TEST_F(CheckpointTest, a_save_that_meets_a_limit_leaves_everything_as_it_was) {
  for (std::int64_t const step : {1, 2}) save(step);
  rlimit old_limit{};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  for (rlim_t const bytes : {rlim_t{100}, rlim_t{4096}, rlim_t{100'000}}) {
    rlimit const limit{bytes, old_limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    Thrown const thrown = thrown_by([&] { save(3); });
    setrlimit(RLIMIT_FSIZE, &old_limit);
    EXPECT_EQ(thrown.code, 73) << bytes << " " << thrown.text;
    EXPECT_TRUE(thrown.contains("cannot be written")) << thrown.text;
    EXPECT_FALSE(has_leftovers());
    EXPECT_EQ(steps(), "1 2");
    EXPECT_EQ(resume(), 2);
  }
  std::signal(SIGXFSZ, old_handler);
  save(3);
  EXPECT_EQ(resume(), 3);
}

TEST_F(CheckpointTest, inspect_shows_tensors_and_norms) {
  save(6);
  CheckpointInfo const info = inspect_checkpoint(path_, InspectNorms::yes);
  ASSERT_EQ(info.tensors.size(), 6U);
  ASSERT_EQ(info.norms.size(), 6U);
  double square_sum = 0.0;
  double max_abs = 0.0;
  for (std::int64_t i = 0; i < 37; ++i) {
    double const value = test::expected_value(6, 1, i);
    square_sum += value * value;
    max_abs = std::max(max_abs, std::abs(value));
  }
  EXPECT_EQ(info.tensors[1].name, "layers.0.norm1.bias");
  EXPECT_DOUBLE_EQ(info.norms[1].norm, std::sqrt(square_sum));
  EXPECT_EQ(info.norms[1].max_abs, max_abs);
  std::string const text = to_text(info);
  for (char const* part : {"step = 6",
                           "sched.style = cosine",
                           "/param/embedding.tokens.weight bf16 [64, 512] norm="}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace motley::io
