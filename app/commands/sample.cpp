#include <iostream>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/commands/commands.hpp"
#include "app/config/load.hpp"
#include "app/sampling.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/tokenizer/tokenizer.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/philox.hpp"
#include "model/train/trainer.hpp"

namespace motley::app {
namespace {

struct SampleArguments {
  std::string path;
  std::string tokenizer;
  std::string prompt;
  std::int64_t tokens = 128;
  std::int64_t seed = 1234;
  int threads = 0;
  SamplingOptions sampling;
};

/// The configuration a checkpoint was trained with, for evaluation of one window at a time.
RunConfig evaluation_config(io::CheckpointMeta const& meta) {
  RunConfig config = parse_config(meta.config, "configuration of the checkpoint");
  config.train.micro_batch_size = 1;
  config.train.global_batch_size = 1;
  config.model.dropout = 0;
  return config;
}

io::Tokenizer load_tokenizer(SampleArguments const& arguments, RunConfig const& config) {
  std::string const& path =
      arguments.tokenizer.empty() ? config.data.tokenizer : arguments.tokenizer;
  MOTLEY_VALIDATE(usage,
                  !path.empty(),
                  "no tokenizer is named (the run's configuration has no data.tokenizer); "
                  "give --tokenizer tokenizer.json");
  io::Tokenizer tokenizer = io::Tokenizer::load(path);
  MOTLEY_VALIDATE(data,
                  tokenizer.vocab_size() <= config.model.vocab,
                  "tokenizer \"" << path << "\" has " << tokenizer.vocab_size()
                                 << " ids (the model was trained for " << config.model.vocab
                                 << "); use the tokenizer of the data set");
  return tokenizer;
}

/// Ids of the prompt; a new text starts after the end of another one.
std::vector<std::int32_t> first_ids(io::Tokenizer const& tokenizer, std::string const& prompt) {
  std::vector<std::int32_t> ids = tokenizer.encode(prompt);
  if (ids.empty()) ids.push_back(tokenizer.end_of_text_id());
  return ids;
}

/// Logits of the token after `ids`, from at most the model's window of them.
std::vector<double> next_logits(model::Trainer& model, std::vector<std::int32_t> const& ids) {
  auto const window = static_cast<std::size_t>(model.config().model.seq_length);
  std::size_t const count = std::min(ids.size(), window);
  std::uint64_t const sample = 0;  // keys dropout, which is off
  Batch batch;
  batch.batch = 1;
  batch.tokens = static_cast<std::int64_t>(count);
  batch.inputs = std::span{ids}.last(count);
  batch.samples = {&sample, 1};
  return model.logits(batch, model::LogitRows::last_of_window);
}

void generate(model::Trainer& model,
              io::Tokenizer const& tokenizer,
              SampleArguments const& arguments) {
  std::vector<std::int32_t> ids = first_ids(tokenizer, arguments.prompt);
  std::cout << arguments.prompt << std::flush;
  Philox const random{static_cast<std::uint64_t>(arguments.seed)};
  for (std::int64_t i = 0; i < arguments.tokens; ++i) {
    std::vector<double> logits = next_logits(model, ids);
    // The model may know more ids (a padded vocabulary) than the tokenizer can say.
    logits.resize(static_cast<std::size_t>(tokenizer.vocab_size()));
    double const uniform = uniform_from(random(0, static_cast<std::uint64_t>(i)).w[0]);
    std::int32_t const id = sample_token(logits, arguments.sampling, uniform);
    if (id == tokenizer.end_of_text_id()) break;
    ids.push_back(id);
    std::cout << tokenizer.token_bytes(id) << std::flush;
  }
  std::cout << "\n";
}

int sample(SampleArguments const& arguments) {
  RunConfig const config = evaluation_config(io::read_checkpoint_meta(arguments.path));
  io::Tokenizer const tokenizer = load_tokenizer(arguments, config);
  model::TrainerConfig trainer_config = config.trainer();
  trainer_config.purpose = model::Purpose::evaluate;
  auto const model = model::make_trainer(trainer_config, comm::Group{});
  std::vector<NamedTensor> const parameters = model->tensors(model::StateKind::parameter);
  io::StateTensors wanted;
  wanted.parameters = parameters;
  io::load_checkpoint(arguments.path, wanted);
  model->adopt_parameters();
  generate(*model, tokenizer, arguments);
  return 0;
}

}  // namespace

void add_sample_command(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("sample", "Write text with a trained model");
  auto const arguments = std::make_shared<SampleArguments>();
  SampleArguments& a = *arguments;
  sub->add_option("PATH", a.path, "Folder of a run (its newest checkpoint) or of a checkpoint")
      ->required();
  sub->add_option(
      "--tokenizer", a.tokenizer, "tokenizer.json (default: data.tokenizer of the run)");
  sub->add_option("--prompt", a.prompt, "Text to go on from (default: the start of a text)");
  sub->add_option("--tokens", a.tokens, "Tokens to write at most")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40U))
      ->capture_default_str();
  sub->add_option("--temperature", a.sampling.temperature, "0: the likeliest token each time")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  sub->add_option("--top-k", a.sampling.top_k, "Draw from the k likeliest tokens (0: all)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31U))
      ->capture_default_str();
  sub->add_option("--top-p", a.sampling.top_p, "Draw from the likeliest tokens of this probability")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  sub->add_option("--seed", a.seed, "Seed of the draws")->capture_default_str();
  sub->add_option("--threads", a.threads, "Threads (0: all cores this process may use)")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  sub->callback([arguments, &command] {
    command.needs = Command::Needs::kernels;
    if (arguments->threads > 0) command.threads = arguments->threads;
    command.run = [arguments](Ranks const&) { return sample(*arguments); };
  });
}

}  // namespace motley::app
