#include "app/train/data_feed.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace motley::app {
namespace {

io::Dataset open(std::string const& path, RunConfig const& config) {
  io::Dataset dataset{path};
  io::require_vocab(dataset.info(), config.model.vocab);
  return dataset;
}

io::ReaderOptions reader_options(RunConfig const& config) {
  io::ReaderOptions options;
  options.seq_length = config.model.seq_length;
  options.micro_batch = *config.train.micro_batch_size;
  options.seed = static_cast<std::uint64_t>(config.run.seed);
  return options;
}

io::ReaderOptions validation_options(RunConfig const& config) {
  io::ReaderOptions options = reader_options(config);
  options.order = io::ReadOrder::in_file;
  options.split = "valid";
  options.threads = 1;
  return options;
}

std::string describe(char const* what, io::BatchReader const& reader) {
  io::DatasetInfo const& info = reader.info();
  return fmt::format("{} data {}: {} tokens in {} windows, content {}",
                     what,
                     info.path,
                     info.tokens,
                     reader.samples_per_epoch(),
                     info.content_hash.substr(0, 12));
}

}  // namespace

DataFeed::DataFeed(RunConfig const& config)
    : global_batch_{config.train.global_batch_size},
      seed_{config.run.seed},
      train_{open(config.data.train, config), reader_options(config)} {
  if (!config.data.valid.empty()) {
    valid_ = std::make_unique<io::BatchReader>(open(config.data.valid, config),
                                               validation_options(config));
    validation_windows_ =
        std::min(config.eval.iters * *config.train.micro_batch_size, valid_->samples_per_epoch());
  }
  seek(0);
}

io::Block DataFeed::next_step() {
  io::Block const block = train_.next();
  next_sample_ += global_batch_;
  return block;
}

void DataFeed::seek(std::int64_t next_sample) {
  next_sample_ = next_sample;
  train_.start({static_cast<std::uint64_t>(next_sample), global_batch_, global_batch_});
}

io::Block DataFeed::validation() {
  valid_->start({0, validation_windows_, validation_windows_});
  return valid_->next();
}

std::string DataFeed::fingerprint() const {
  return fmt::format("{}, seed {}", train_.fingerprint(), seed_);
}

std::string DataFeed::description() const {
  std::string text = describe("training", train_);
  if (valid_) text.append("\n").append(describe("validation", *valid_));
  return text.append("\ndata fingerprint ").append(fingerprint());
}

}  // namespace motley::app
