// A series of bit flips and truncations: each is detected on load, and the checkpoint before it is
// used with a message. MOTLEY_DAMAGE_TRIALS sets how many (default 60).
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "io/checkpoint/checkpoint.hpp"
#include "io/durable_file.hpp"
#include "io/run_folder.hpp"
#include "tests/io/checkpoint_state.hpp"
#include "tests/io/log_capture.hpp"
#include "tests/io/scratch.hpp"

namespace motley::io {
namespace {

using test::LogCapture;
using test::Scratch;
using test::TestState;
namespace fs = std::filesystem;

int trials() {
  char const* const value = std::getenv("MOTLEY_DAMAGE_TRIALS");
  return value == nullptr ? 60 : std::atoi(value);
}

class CheckpointDamageTest : public testing::Test {
 protected:
  CheckpointDamageTest() {
    RunFolder const folder{path_};
    for (std::int64_t const step : {1, 2}) {
      state_.fill(step);
      save_checkpoint(folder, test::meta_of(step), state_.tensors());
    }
    newest_ = folder.checkpoints() / "step_00000002";
  }

  void expect_fall_back(std::string const& what) {
    LogCapture const capture;
    state_.fill(999'983);
    auto const report = resume_checkpoint(path_, parse_resume("auto"), state_.tensors());
    ASSERT_TRUE(report) << what;
    EXPECT_EQ(report->meta.step, 1) << what;
    EXPECT_TRUE(state_.is_of(1)) << what;
    EXPECT_TRUE(capture.contains("step_00000002")) << what << ": " << capture.text();
    EXPECT_FALSE(verify_checkpoint(newest_).empty()) << what;
  }

  std::int64_t place(std::int64_t bytes) {
    return std::uniform_int_distribution<std::int64_t>{0, bytes - 1}(random_);
  }

  Scratch scratch_;
  fs::path path_ = scratch_ / "run";
  fs::path newest_;
  TestState state_{16};
  std::mt19937 random_{20240607};
};

TEST_F(CheckpointDamageTest, a_flipped_bit_anywhere_is_detected) {
  auto const state_bytes = static_cast<std::int64_t>(fs::file_size(newest_ / "state.h5"));
  auto const manifest_bytes = static_cast<std::int64_t>(fs::file_size(newest_ / "manifest.json"));
  for (int trial = 0; trial < trials(); ++trial) {
    bool const is_manifest = trial % 3 == 0;
    fs::path const file = newest_ / (is_manifest ? "manifest.json" : "state.h5");
    // A third in the manifest, a third in the first 4 KiB, which are HDF5's own, a third anywhere.
    std::int64_t const offset = place(is_manifest      ? manifest_bytes
                                      : trial % 3 == 1 ? 4096
                                                       : state_bytes);
    int const bit = static_cast<int>(place(8));
    auto const flip = [&] {
      std::fstream stream{file, std::ios::in | std::ios::out | std::ios::binary};
      stream.seekg(offset);
      int const byte = stream.get();
      stream.seekp(offset);
      stream.put(static_cast<char>(byte ^ (1 << bit)));
    };
    flip();
    expect_fall_back("bit " + std::to_string(bit) + " of byte " + std::to_string(offset) + " of " +
                     file.filename().string());
    flip();
  }
  EXPECT_TRUE(verify_checkpoint(newest_).empty());
}

TEST_F(CheckpointDamageTest, a_truncation_at_any_byte_is_detected) {
  for (int trial = 0; trial < trials(); ++trial) {
    fs::path const file = newest_ / (trial % 3 == 0 ? "manifest.json" : "state.h5");
    std::string const content = read_whole_file(file);
    auto const bytes = static_cast<std::int64_t>(content.size());
    std::int64_t const length = trial % 3 == 1 ? place(4096) : place(bytes);
    fs::resize_file(file, static_cast<std::uintmax_t>(length));
    expect_fall_back(file.filename().string() + " cut to " + std::to_string(length) + " bytes");
    // The same length again, but the rest zero: as a file system may leave it after a crash.
    fs::resize_file(file, static_cast<std::uintmax_t>(bytes));
    if (read_whole_file(file) != content) {
      expect_fall_back(file.filename().string() + " zeroed from byte " + std::to_string(length));
    }
    write_synced_file(file, content);
  }
  EXPECT_TRUE(verify_checkpoint(newest_).empty());
}

}  // namespace
}  // namespace motley::io
