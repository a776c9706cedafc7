#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "io/checkpoint/checkpoint.hpp"
#include "io/metrics_log.hpp"
#include "io/run_folder.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/checkpoint_state.hpp"
#include "tests/io/log_capture.hpp"
#include "tests/io/scratch.hpp"
#include "tests/require.hpp"

namespace motley::io {
namespace {

namespace fs = std::filesystem;

/// A file system in memory, of a fixed size.
class SmallDisk {
 public:
  SmallDisk() {
    error_ = ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=8m") == 0 ? 0 : errno;
  }
  SmallDisk(SmallDisk const&) = delete;
  SmallDisk& operator=(SmallDisk const&) = delete;
  SmallDisk(SmallDisk&&) = delete;
  SmallDisk& operator=(SmallDisk&&) = delete;
  ~SmallDisk() {
    if (error_ == 0) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] fs::path const& path() const { return folder_.path(); }

 private:
  test::Scratch folder_;
  int error_ = 0;
};

TEST(CheckpointFullDiskTest, a_full_disk_keeps_the_old_checkpoints_and_the_run) {
  SmallDisk const disk;
  if (disk.error() != 0) {
    MOTLEY_SKIP_WITHOUT("mount", "a tmpfs cannot be mounted: " << std::strerror(disk.error()));
  }
  test::LogCapture const capture;
  RunFolder const folder{disk.path() / "run"};
  MetricsLog log{folder, 0};
  test::TestState state{160};  // 1.2 MB: five checkpoints fit
  fs::path const ballast = disk.path() / "ballast";
  std::ofstream{ballast} << std::string(3 << 20, 'x');
  std::int64_t last_good = 0;
  int code = 0;
  std::string message;
  for (std::int64_t step = 1; step <= 8 && code == 0; ++step) {
    state.fill(step);
    try {
      save_checkpoint(folder, test::meta_of(step), state.tensors(), {9, 0, true, 0});
      last_good = step;
    } catch (Error const& error) {
      code = exit_code(error);
      message = error.what();
    }
  }
  EXPECT_EQ(code, 73);
  EXPECT_GE(last_good, 1);
  EXPECT_NE(message.find("GB are free"), std::string::npos) << message;
  for (auto const& entry : fs::directory_iterator{folder.checkpoints()}) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  auto const found = resume_checkpoint(folder.path(), parse_resume("auto"), state.tensors());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->meta.step, last_good);
  EXPECT_TRUE(state.is_of(last_good));

  // To the last byte: metrics are lost, the lock stays ours, small files keep their old content.
  folder.replace_file("run.toml", "seed = 1\n");
  std::ofstream{disk.path() / "more"} << std::string(8 << 20, 'x');
  for (std::int64_t step = 1; step <= 200; ++step) {
    MetricsRow row;
    row.step = step;
    log.write(row);
  }
  EXPECT_TRUE(capture.contains("cannot be written")) << capture.text();
  EXPECT_THROW(folder.replace_file("run.toml", std::string(10'000, 'x')), Error);
  EXPECT_NO_THROW(folder.expect_owned());

  fs::remove(ballast);
  state.fill(9);
  save_checkpoint(folder, test::meta_of(9), state.tensors(), {9, 0, true, 0});
  EXPECT_TRUE(verify_checkpoint(folder.path()).empty());
}

}  // namespace
}  // namespace motley::io
