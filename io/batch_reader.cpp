#include "io/batch_reader.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "io/detail/window_source.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

constexpr int most_threads = 256;

void expect_options(ReaderOptions const& options) {
  MOTLEY_VALIDATE(usage,
                  options.seq_length >= 1 && options.micro_batch >= 1,
                  "train.seq_length = " << options.seq_length
                                        << " and train.micro_batch_size = " << options.micro_batch
                                        << " (a micro-batch holds at least one window of one "
                                        << "token); set both to 1 or more");
  MOTLEY_VALIDATE(
      usage,
      1 <= options.threads && options.threads <= most_threads && options.prefetch_blocks >= 1,
      options.threads << " reader threads and " << options.prefetch_blocks << " blocks ahead (1 to "
                      << most_threads << " threads read at least one block ahead); choose others");
}

/// Memory of one block, and how much of it is done.
struct Slot {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  std::vector<std::uint64_t> samples;
  std::vector<Batch> batches;
  std::int64_t windows_left = 0;
  std::int64_t valid_tokens = 0;
};

/// One window to read: number `window` of block `block`.
struct Task {
  std::uint64_t block = 0;
  std::int64_t window = 0;
  auto operator<=>(Task const&) const = default;
};

/// The first window, in order of delivery, that could not be read.
struct Failure {
  Task task;
  std::exception_ptr what;
};

}  // namespace

/// Blocks are numbered from `start` on. Block k is put together in slot k modulo the number of
/// slots; windows are handed out in order of delivery. Everything below `mutex_` belongs to it,
/// but for the memory of slots: that of a window belongs to who reads it, that of a finished block
/// to the caller until the next one.
class BatchReader::Impl {
 public:
  Impl(Dataset dataset, ReaderOptions const& options)
      : options_{options},
        // The caller's thread may read the loss mask.
        source_{std::move(dataset), options.seq_length, options.cache_bytes, options.threads + 1},
        fingerprint_{data_fingerprint(
            std::vector{source_.info().identity()}, options.seq_length, options.split)},
        order_{options.order == ReadOrder::in_file
                   ? SampleOrder::sequential(source_.sample_count())
                   : SampleOrder{options.seed, fingerprint_, source_.sample_count()}},
        caller_scratch_{source_.make_scratch()},
        slots_(static_cast<std::size_t>(options.prefetch_blocks) + 1) {
    for (int i = 0; i < options.threads; ++i) {
      threads_.emplace_back([this, scratch = source_.make_scratch()](
                                std::stop_token const& stop) mutable { work(stop, scratch); });
    }
  }

  void start(BlockSequence const& sequence);
  [[nodiscard]] Block next();
  [[nodiscard]] std::int64_t valid_tokens(std::uint64_t first, std::int64_t count);
  [[nodiscard]] double take_wait_s() { return std::exchange(wait_s_, 0.0); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

  [[nodiscard]] detail::WindowSource const& source() const noexcept { return source_; }
  [[nodiscard]] std::string const& fingerprint() const noexcept { return fingerprint_; }

 private:
  void work(std::stop_token const& stop, detail::WindowSource::Scratch& scratch);
  /// Returns the number of targets that count.
  std::int64_t read_window(Task task, detail::WindowSource::Scratch& scratch);
  void finish(Task task, std::int64_t valid_tokens, std::exception_ptr const& error);
  [[nodiscard]] bool has_task() const;
  [[nodiscard]] Task take_task();
  void make_room(Slot& slot, std::int64_t windows) const;
  [[nodiscard]] Slot& slot_of(std::uint64_t block) { return slots_[block % slots_.size()]; }
  [[nodiscard]] std::uint64_t first_position(std::uint64_t block) const {
    return sequence_.first + block * static_cast<std::uint64_t>(sequence_.stride);
  }

  ReaderOptions const options_;
  detail::WindowSource source_;
  std::string const fingerprint_;
  SampleOrder const order_;
  detail::WindowSource::Scratch caller_scratch_;
  double wait_s_ = 0.0;

  std::mutex mutex_;
  std::condition_variable_any has_work_;
  std::condition_variable has_progress_;
  BlockSequence sequence_;
  std::vector<Slot> slots_;
  Task next_task_;
  std::uint64_t next_block_ = 0;  ///< to deliver
  std::uint64_t first_held_ = 0;  ///< block whose slot is not free yet
  int busy_threads_ = 0;
  std::optional<Failure> failure_;
  std::vector<std::jthread> threads_;  // last: they stop before the rest goes
};

bool BatchReader::Impl::has_task() const {
  return sequence_.count > 0 && !failure_ && next_task_.block < first_held_ + slots_.size();
}

Task BatchReader::Impl::take_task() {
  Task const task = next_task_;
  if (task.window == 0) {
    Slot& slot = slot_of(task.block);
    std::uint64_t const first = first_position(task.block);
    for (std::size_t i = 0; i < slot.samples.size(); ++i) {
      slot.samples[i] = static_cast<std::uint64_t>(order_.sample(first + i));
    }
    slot.windows_left = sequence_.count;
    slot.valid_tokens = 0;
  }
  if (++next_task_.window == sequence_.count) next_task_ = {task.block + 1, 0};
  ++busy_threads_;
  return task;
}

void BatchReader::Impl::work(std::stop_token const& stop, detail::WindowSource::Scratch& scratch) {
  std::unique_lock lock{mutex_};
  while (has_work_.wait(lock, stop, [&] { return has_task(); })) {
    if (stop.stop_requested()) return;
    Task const task = take_task();
    lock.unlock();
    std::int64_t valid_tokens = 0;
    std::exception_ptr error;
    try {
      valid_tokens = read_window(task, scratch);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    finish(task, valid_tokens, error);
  }
}

void BatchReader::Impl::finish(Task task,
                               std::int64_t valid_tokens,
                               std::exception_ptr const& error) {
  --busy_threads_;
  Slot& slot = slot_of(task.block);
  if (!error) {
    --slot.windows_left;
    slot.valid_tokens += valid_tokens;
  } else if (!failure_ || task < failure_->task) {
    failure_ = {task, error};
  }
  if (slot.windows_left == 0 || busy_threads_ == 0) has_progress_.notify_all();
}

std::int64_t BatchReader::Impl::read_window(Task task, detail::WindowSource::Scratch& scratch) {
  Slot& slot = slot_of(task.block);
  auto const window = static_cast<std::size_t>(task.window);
  auto const tokens = static_cast<std::size_t>(options_.seq_length);
  return source_.read(static_cast<std::int64_t>(slot.samples[window]),
                      scratch,
                      std::span{slot.inputs}.subspan(window * tokens, tokens),
                      std::span{slot.targets}.subspan(window * tokens, tokens));
}

void BatchReader::Impl::start(BlockSequence const& sequence) {
  MOTLEY_VALIDATE(usage,
                  sequence.count >= 1 && sequence.stride >= sequence.count,
                  "blocks of " << sequence.count << " windows every " << sequence.stride
                               << " (a block has at least one and does not reach into the next); "
                               << "check train.global_batch_size");
  std::unique_lock lock{mutex_};
  sequence_.count = 0;  // no more tasks
  has_progress_.wait(lock, [&] { return busy_threads_ == 0; });
  for (Slot& slot : slots_) make_room(slot, sequence.count);
  sequence_ = sequence;
  next_task_ = {};
  next_block_ = 0;
  first_held_ = 0;
  failure_.reset();
  lock.unlock();
  has_work_.notify_all();
}

void BatchReader::Impl::make_room(Slot& slot, std::int64_t windows) const {
  std::int64_t const tokens = options_.seq_length;
  slot.inputs.resize(static_cast<std::size_t>(windows * tokens));
  slot.targets.resize(slot.inputs.size());
  slot.samples.resize(static_cast<std::size_t>(windows));
  slot.batches.clear();
  for (std::int64_t first = 0; first < windows; first += options_.micro_batch) {
    std::int64_t const batch = std::min(options_.micro_batch, windows - first);
    auto const at = static_cast<std::size_t>(first * tokens);
    auto const size = static_cast<std::size_t>(batch * tokens);
    slot.batches.push_back({batch,
                            tokens,
                            std::span{slot.inputs}.subspan(at, size),
                            std::span{slot.targets}.subspan(at, size),
                            std::span{slot.samples}.subspan(static_cast<std::size_t>(first),
                                                            static_cast<std::size_t>(batch))});
  }
}

Block BatchReader::Impl::next() {
  std::unique_lock lock{mutex_};
  MOTLEY_VALIDATE(bug,
                  sequence_.count > 0,
                  "BatchReader::next was called before start; this is a bug of motley, please "
                  "report it");
  first_held_ = next_block_;
  has_work_.notify_all();
  Slot& slot = slot_of(next_block_);
  auto const is_ready = [&] { return next_task_.block > next_block_ && slot.windows_left == 0; };
  auto const began = std::chrono::steady_clock::now();
  has_progress_.wait(lock, [&] { return is_ready() || (failure_ && busy_threads_ == 0); });
  wait_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!is_ready()) std::rethrow_exception(failure_->what);
  return {first_position(next_block_++), slot.valid_tokens, slot.batches};
}

std::int64_t BatchReader::Impl::valid_tokens(std::uint64_t first, std::int64_t count) {
  std::int64_t valid = 0;
  for (std::uint64_t i = 0; std::cmp_less(i, count); ++i) {
    valid += source_.valid_tokens(order_.sample(first + i), caller_scratch_);
  }
  return valid;
}

std::size_t BatchReader::Impl::memory_bytes() const noexcept {
  Slot const& slot = slots_.front();
  std::size_t const block =
      slot.inputs.size() * 2 * sizeof(std::int32_t) + slot.samples.size() * sizeof(std::uint64_t);
  return source_.memory_bytes() + slots_.size() * block;
}

BatchReader::BatchReader(Dataset dataset, ReaderOptions const& options) {
  expect_options(options);
  impl_ = std::make_unique<Impl>(std::move(dataset), options);
}

BatchReader::~BatchReader() = default;

void BatchReader::start(BlockSequence const& sequence) { impl_->start(sequence); }

Block BatchReader::next() { return impl_->next(); }

std::int64_t BatchReader::valid_tokens(std::uint64_t first, std::int64_t count) {
  return impl_->valid_tokens(first, count);
}

std::int64_t BatchReader::samples_per_epoch() const noexcept {
  return impl_->source().sample_count();
}

DatasetInfo const& BatchReader::info() const noexcept { return impl_->source().info(); }

std::string const& BatchReader::fingerprint() const noexcept { return impl_->fingerprint(); }

std::size_t BatchReader::memory_bytes() const noexcept { return impl_->memory_bytes(); }

double BatchReader::take_wait_s() noexcept { return impl_->take_wait_s(); }

}  // namespace motley::io
