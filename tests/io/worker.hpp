#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/durable_file.hpp"

namespace motley::test {

/// A checkpoint_worker (`program` is its path) as a child process; killed at the end if it still
/// runs.
class Worker {
 public:
  Worker(std::string const& program, std::vector<std::string> arguments) {
    std::array<int, 2> to_child{};
    std::array<int, 2> from_child{};
    if (::pipe2(to_child.data(), O_CLOEXEC) != 0 || ::pipe2(from_child.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error{"no pipe"};
    }
    input_ = io::FileDescriptor{to_child[1]};
    output_ = io::FileDescriptor{from_child[0]};
    io::FileDescriptor const child_input{to_child[0]};
    io::FileDescriptor const child_output{from_child[1]};
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, child_input.get(), 0);
    posix_spawn_file_actions_adddup2(&actions, child_output.get(), 1);
    arguments.insert(arguments.begin(), program);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    int const result =
        ::posix_spawn(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (result != 0) throw std::runtime_error{"no worker"};
  }
  Worker(Worker const&) = delete;
  Worker& operator=(Worker const&) = delete;
  Worker(Worker&&) = delete;
  Worker& operator=(Worker&&) = delete;
  ~Worker() {
    if (is_running_) {
      send(SIGKILL);
      static_cast<void>(wait());
    }
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }

  /// Exit code, or 128 + signal.
  [[nodiscard]] int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    is_running_ = false;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  void say(std::string const& line) const {
    std::string const text = line + "\n";
    if (::write(input_.get(), text.data(), text.size()) < 0) throw std::runtime_error{"no input"};
  }

  /// The next line it prints; empty at its end.
  [[nodiscard]] std::string read_line() const {
    std::string line;
    for (char c = 0; ::read(output_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

 private:
  pid_t pid_ = -1;
  io::FileDescriptor input_;
  io::FileDescriptor output_;
  bool is_running_ = true;
};

}  // namespace motley::test
