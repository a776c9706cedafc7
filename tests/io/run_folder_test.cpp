#include "io/run_folder.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/checkpoint/checkpoint.hpp"
#include "io/durable_file.hpp"
#include "io/json.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/checkpoint_state.hpp"
#include "tests/io/log_capture.hpp"
#include "tests/io/scratch.hpp"
#include "tests/io/worker.hpp"

namespace motley::io {
namespace {

using namespace std::chrono_literals;
using test::LogCapture;
using test::Scratch;
using test::Worker;
namespace fs = std::filesystem;

/// Kind and text of what a call throws.
struct Thrown {
  int code = 0;
  std::string text;
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

Thrown thrown_by_start(std::string const& path, RunFolderOptions options = {}) {
  return thrown_by([&] { RunFolder const folder{path, options}; });
}

/// Sets a variable of the environment for its lifetime.
class Environment {
 public:
  Environment(char const* name, std::string const& value) : name_{name} {
    if (char const* const old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  Environment(Environment const&) = delete;
  Environment& operator=(Environment const&) = delete;
  Environment(Environment&&) = delete;
  Environment& operator=(Environment&&) = delete;
  ~Environment() { old_.empty() ? ::unsetenv(name_) : ::setenv(name_, old_.c_str(), 1); }

 private:
  char const* name_;
  std::string old_;
};

/// A lock as a run on another host has it.
void write_foreign_lock(fs::path const& folder, std::string const& job, int restart = 0) {
  Json lock;
  lock["epoch"] = 5;
  lock["host"] = "elsewhere";
  lock["pid"] = 4711;
  lock["process_start"] = "1";
  lock["process_space"] = "another boot";
  lock["job"] = job;
  lock["job_restart"] = restart;
  lock["token"] = "t0ken";
  lock["is_released"] = false;
  fs::create_directories(folder);
  std::ofstream{folder / "lock"} << lock;
}

void age(fs::path const& file, std::chrono::seconds seconds) {
  fs::last_write_time(file, fs::last_write_time(file) - seconds);
}

/// A program `squeue` in front of all others that prints a text and ends with a code.
std::string path_with_squeue(Scratch const& scratch, std::string const& text, int code) {
  fs::path const folder = scratch / "bin";
  fs::create_directories(folder);
  std::ofstream{folder / "squeue"} << "#!/bin/sh\n[ \"$*\" = '-h -j 123 -o %T' ] || exit 3\n"
                                   << "echo '" << text << "'\nexit " << code << "\n";
  fs::permissions(folder / "squeue", fs::perms::owner_all);
  return folder.string() + ":" + std::getenv("PATH");
}

TEST(RunFolderTest, a_start_makes_the_folder_and_a_lock_that_names_it) {
  Scratch const scratch;
  Environment const job{"SLURM_JOB_ID", "77"};
  RunFolder const folder{scratch / "runs/first"};
  EXPECT_TRUE(fs::is_directory(folder.checkpoints()));
  auto const lock = read_lock(folder.path());
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->pid, ::getpid());
  EXPECT_EQ(lock->job, "77");
  EXPECT_EQ(lock->epoch, 1U);
  EXPECT_FALSE(lock->is_released);
  EXPECT_EQ(lock->token, folder.lock().token);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  EXPECT_EQ(lock->host, host);
}

TEST(RunFolderTest, a_second_live_run_is_refused_and_told_the_owner) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run"};
  Thrown const thrown = thrown_by_start(scratch / "run");
  EXPECT_EQ(thrown.code, 64);
  EXPECT_NE(thrown.text.find("process " + std::to_string(::getpid())), std::string::npos)
      << thrown.text;
  EXPECT_NO_THROW(folder.expect_owned());
}

TEST(RunFolderTest, a_released_folder_is_taken_at_once_with_the_next_epoch) {
  Scratch const scratch;
  LogCapture const capture;
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    RunFolder const folder{scratch / "run"};
    EXPECT_EQ(folder.lock().epoch, epoch);
  }
  EXPECT_EQ(capture.text(), "");
  EXPECT_TRUE(read_lock(scratch / "run")->is_released);
}

TEST(RunFolderTest, the_folder_of_a_killed_process_is_taken_over_at_once) {
  Scratch const scratch;
  {
    Worker worker{MOTLEY_TEST_WORKER, {"hold", scratch / "run", "10000", "120000"}};
    ASSERT_EQ(worker.read_line(), "held 1");
    EXPECT_EQ(thrown_by_start(scratch / "run").code, 64);
    worker.send(SIGKILL);
    // It is not waited for yet: a dead process that its parent has not noticed is dead, too.
    for (int i = 0; i < 100 && thrown_by_start(scratch / "run").code != 0; ++i) {
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(read_lock(scratch / "run")->epoch, 2U);
  }
  LogCapture const capture;
  {
    Worker worker{MOTLEY_TEST_WORKER, {"hold", scratch / "run", "10000", "120000"}};
    ASSERT_EQ(worker.read_line(), "held 3");
    worker.send(SIGKILL);
    EXPECT_EQ(worker.wait(), 128 + SIGKILL);
  }
  RunFolder const folder{scratch / "run"};
  EXPECT_EQ(folder.lock().epoch, 4U);
  EXPECT_TRUE(capture.contains("is taken over")) << capture.text();
}

TEST(RunFolderTest, one_of_many_starts_in_the_same_moment_wins) {
  Scratch const scratch;
  for (int round = 0; round < 5; ++round) {
    write_foreign_lock(scratch / "run", "");
    age(scratch / "run/lock", 300s);
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < 6; ++i) {
      workers.push_back(std::make_unique<Worker>(
          MOTLEY_TEST_WORKER,
          std::vector<std::string>{"hold", scratch / "run", "10000", "120000"}));
    }
    int winners = 0;
    for (auto& worker : workers) {
      std::string const line = worker->read_line();
      if (line == "held 6") {
        ++winners;
      } else {
        EXPECT_EQ(line, "");
        EXPECT_EQ(worker->wait(), 64);
      }
    }
    EXPECT_EQ(winners, 1);
  }
}

TEST(RunFolderTest, a_stopped_owner_that_wakes_up_writes_nothing_more) {
  Scratch const scratch;
  RunFolderOptions const fast{50ms, 500ms};
  Worker owner{MOTLEY_TEST_WORKER, {"hold", scratch / "run", "50", "500"}};
  ASSERT_EQ(owner.read_line(), "held 1");
  owner.say("save");
  ASSERT_EQ(owner.read_line(), "saved");
  EXPECT_EQ(thrown_by_start(scratch / "run", fast).code, 64);
  std::this_thread::sleep_for(700ms);  // longer than stale_after: it beats, so it is alive
  EXPECT_EQ(thrown_by_start(scratch / "run", fast).code, 64);
  owner.send(SIGSTOP);
  std::this_thread::sleep_for(700ms);
  RunFolder const successor{scratch / "run", fast};
  EXPECT_EQ(successor.lock().epoch, 2U);
  owner.send(SIGCONT);
  owner.say("save");
  EXPECT_EQ(owner.read_line(), "refused 64");
  EXPECT_FALSE(fs::exists(successor.checkpoints() / "step_00001002"));
  EXPECT_NO_THROW(successor.expect_owned());
}

TEST(RunFolderTest, an_owner_stopped_inside_a_save_publishes_nothing_after_a_takeover) {
  Scratch const scratch;
  RunFolderOptions const fast{50ms, 300ms};
  for (int round = 0; round < 6; ++round) {
    std::string const path = scratch / ("run" + std::to_string(round));
    Worker owner{MOTLEY_TEST_WORKER, {"hold", path, "50", "300"}};
    ASSERT_EQ(owner.read_line(), "held 1");
    owner.say("save");
    std::this_thread::sleep_for(std::chrono::milliseconds{round});
    owner.send(SIGSTOP);
    std::this_thread::sleep_for(500ms);
    std::unique_ptr<RunFolder> successor;
    try {
      successor = std::make_unique<RunFolder>(path, fast);
    } catch (Error const&) {
      continue;  // stopped between two system calls that hold the flock: it keeps the folder
    }
    std::string const step = successor->checkpoints() / "step_00001001";
    bool const was_there = fs::exists(step);
    owner.send(SIGCONT);
    std::string const answer = owner.read_line();
    EXPECT_TRUE(answer == "refused 64" || (was_there && answer == "saved")) << answer;
    EXPECT_EQ(fs::exists(step), was_there);
    if (was_there) {
      EXPECT_TRUE(verify_checkpoint(step).empty());
    }
  }
}

TEST(RunFolderTest, heartbeats_go_on_while_the_main_thread_is_busy) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run", {20ms, 200ms}};
  auto const deadline = std::chrono::steady_clock::now() + 600ms;
  while (std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_EQ(thrown_by_start(scratch / "run", {20ms, 200ms}).code, 64);
}

TEST(RunFolderTest, a_run_on_another_host_is_judged_by_its_heartbeat) {
  Scratch const scratch;
  write_foreign_lock(scratch / "run", "");
  Thrown const thrown = thrown_by_start(scratch / "run");
  EXPECT_EQ(thrown.code, 64);
  EXPECT_NE(thrown.text.find("process 4711 on host elsewhere"), std::string::npos) << thrown.text;
  age(scratch / "run/lock", 110s);
  EXPECT_EQ(thrown_by_start(scratch / "run").code, 64);
  age(scratch / "run/lock", 20s);
  RunFolder const folder{scratch / "run"};
  EXPECT_EQ(folder.lock().epoch, 6U);
}

TEST(RunFolderTest, a_run_whose_job_slurm_no_longer_runs_is_taken_over) {
  struct Case {
    char const* answer;
    int code;
    bool is_over;
  };
  for (Case const& c : {Case{"", 0, true},
                        Case{"slurm_load_jobs error: Invalid job id specified", 1, true},
                        Case{"PENDING", 0, true},
                        Case{"RUNNING", 0, false},
                        Case{"COMPLETING", 0, false},
                        Case{"slurm_load_jobs error: Unable to contact controller", 1, false}}) {
    Scratch const scratch;
    Environment const path{"PATH", path_with_squeue(scratch, c.answer, c.code)};
    write_foreign_lock(scratch / "run", "123");
    EXPECT_EQ(thrown_by_start(scratch / "run").code, c.is_over ? 0 : 64) << c.answer;
  }
}

TEST(RunFolderTest, an_earlier_start_of_the_same_requeued_job_is_over) {
  Scratch const scratch;
  Environment const path{"PATH", path_with_squeue(scratch, "RUNNING", 0)};
  Environment const job{"SLURM_JOB_ID", "123"};
  write_foreign_lock(scratch / "run", "123", 1);
  {
    Environment const restart{"SLURM_RESTART_COUNT", "1"};
    EXPECT_EQ(thrown_by_start(scratch / "run").code, 64);
  }
  Environment const restart{"SLURM_RESTART_COUNT", "2"};
  RunFolder const folder{scratch / "run"};
  EXPECT_EQ(folder.lock().epoch, 6U);
}

TEST(RunFolderTest, a_lock_that_is_torn_or_deleted_is_made_anew) {
  Scratch const scratch;
  fs::create_directories(scratch / "run");
  std::ofstream{scratch / "run/lock"} << "{\"epoch\": 3, \"ho";
  RunFolder const folder{scratch / "run"};
  EXPECT_NO_THROW(folder.expect_owned());
  fs::remove(scratch / "run/lock");
  EXPECT_NO_THROW(folder.expect_owned());
  EXPECT_EQ(thrown_by_start(scratch / "run").code, 64);
}

TEST(RunFolderTest, leftovers_of_a_killed_owner_are_removed_and_nothing_else) {
  Scratch const scratch;
  fs::path const checkpoints = scratch / "run/checkpoints";
  fs::create_directories(checkpoints / "step_00000007.epoch_3.tmp");
  std::ofstream{checkpoints / "step_00000007.epoch_3.tmp/state.h5"} << "half";
  std::ofstream{scratch / "run/run.toml.epoch_12.tmp"} << "half";
  fs::create_directories(checkpoints / "step_00000006");
  std::ofstream{scratch / "run/notes.tmp"} << "the user's";
  RunFolder const folder{scratch / "run"};
  EXPECT_FALSE(fs::exists(checkpoints / "step_00000007.epoch_3.tmp"));
  EXPECT_FALSE(fs::exists(scratch / "run/run.toml.epoch_12.tmp"));
  EXPECT_TRUE(fs::exists(checkpoints / "step_00000006"));
  EXPECT_TRUE(fs::exists(scratch / "run/notes.tmp"));
  for (auto const& entry : fs::directory_iterator{scratch / "run"}) {
    EXPECT_EQ(entry.path().string().find("trash"), std::string::npos) << entry.path();
  }
}

TEST(RunFolderTest, files_are_replaced_whole) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run"};
  folder.replace_file("run.toml", "seed = 1\n");
  folder.replace_file("run.toml", "seed = 2\n");
  EXPECT_EQ(read_whole_file(scratch / "run/run.toml"), "seed = 2\n");

  rlimit old_limit{};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit const limit{4096, old_limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  Thrown const thrown = thrown_by([&] { folder.replace_file("run.toml", std::string(8192, 'x')); });
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(thrown.code, 73);
  EXPECT_EQ(read_whole_file(scratch / "run/run.toml"), "seed = 2\n");
  EXPECT_FALSE(fs::exists(folder.temporary_name(scratch / "run/run.toml")));
}

TEST(RunFolderTest, the_last_exit_comes_back) {
  Scratch const scratch;
  EXPECT_FALSE(read_last_exit(scratch / "run"));
  {
    RunFolder const folder{scratch / "run"};
    folder.write_last_exit({75, "signal USR2", 1200, {}});
  }
  auto const exit = read_last_exit(scratch / "run");
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75);
  EXPECT_EQ(exit->reason, "signal USR2");
  EXPECT_EQ(exit->step, 1200);
  EXPECT_EQ(exit->time.size(), 20U) << exit->time;
  std::ofstream{scratch / "run/last_exit.json"} << "{";
  EXPECT_FALSE(read_last_exit(scratch / "run"));
}

TEST(RunFolderTest, a_folder_that_cannot_be_made_is_a_usage_error) {
  Scratch const scratch;
  std::ofstream{scratch / "file"} << "in the way";
  Thrown const thrown = thrown_by_start(scratch / "file/run");
  EXPECT_EQ(thrown.code, 64);
  EXPECT_NE(thrown.text.find("cannot be made"), std::string::npos) << thrown.text;
  EXPECT_EQ(thrown_by_start(scratch / "file").code, 64);
}

TEST(RunFolderTest, only_checkpoints_and_metrics_make_a_run) {
  Scratch const scratch;
  {
    RunFolder const folder{scratch / "run"};
    folder.replace_file("run.toml", "seed = 1\n");
  }
  EXPECT_FALSE(holds_run(scratch / "run"));
  EXPECT_FALSE(holds_run(scratch / "nothing"));
  fs::create_directories(scratch / "run/checkpoints/step_00000001");
  EXPECT_TRUE(holds_run(scratch / "run"));
  fs::remove_all(scratch / "run/checkpoints");
  std::ofstream{scratch / "run/metrics.jsonl"} << "{}\n";
  EXPECT_TRUE(holds_run(scratch / "run"));
}

}  // namespace
}  // namespace motley::io
