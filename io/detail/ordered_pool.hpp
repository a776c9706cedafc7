#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace motley::io::detail {

/// Threads that work on jobs, each with a state of its own; results come back in the order in which
/// the jobs were given. One thread gives and takes.
///
/// An exception of a job is rethrown by the `take` of its result. The end of the pool drops jobs
/// that no thread has begun.
template <class Result, class State>
class OrderedPool {
 public:
  using Job = std::packaged_task<Result(State&)>;

  /// One thread per state.
  explicit OrderedPool(std::vector<State> states) : states_{std::move(states)} {
    threads_.reserve(states_.size());
    for (State& state : states_) {
      threads_.emplace_back([this, &state](std::stop_token const& stop) { work(state, stop); });
    }
  }

  void give(Job job) {
    results_.push_back(job.get_future());
    {
      std::lock_guard const lock{mutex_};
      jobs_.push_back(std::move(job));
    }
    has_jobs_.notify_one();
  }

  /// Jobs given and not yet taken.
  [[nodiscard]] std::size_t pending() const { return results_.size(); }
  /// Whether so many are pending that the giver should take one, which bounds the memory.
  [[nodiscard]] bool is_full() const { return pending() >= 2 * states_.size() + 2; }

  /// Waits for the oldest job and returns its result; one must be pending.
  [[nodiscard]] Result take() {
    std::future<Result> oldest = std::move(results_.front());
    results_.pop_front();
    return oldest.get();
  }

  /// What the threads kept; no job may be pending.
  [[nodiscard]] std::vector<State>& states() { return states_; }

 private:
  void work(State& state, std::stop_token const& stop) {
    while (true) {
      Job job;
      {
        std::unique_lock lock{mutex_};
        if (!has_jobs_.wait(lock, stop, [this] { return !jobs_.empty(); })) return;
        if (stop.stop_requested()) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job(state);
    }
  }

  std::vector<State> states_;
  std::mutex mutex_;
  std::condition_variable_any has_jobs_;
  std::deque<Job> jobs_;
  std::deque<std::future<Result>> results_;
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace motley::io::detail
