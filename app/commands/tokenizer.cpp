#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>

#include "app/commands/commands.hpp"
#include "app/commands/text_options.hpp"
#include "app/progress_bar.hpp"
#include "io/tokenizer/train.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"

namespace motley::app {
namespace {

struct TokenizerArguments {
  TextArguments text;
  std::string output = "tokenizer.json";
  std::int64_t vocab = 8192;
  std::int64_t sample_mib = 1024;
  bool overwrite = false;
};

int train_and_save(TokenizerArguments const& arguments) {
  MOTLEY_VALIDATE(usage,
                  arguments.overwrite || !std::filesystem::exists(arguments.output),
                  "output \"" << arguments.output << "\" exists (it would be replaced); choose "
                              << "another name or add --overwrite");
  io::TokenizerTrainOptions options;
  options.files = files_of(arguments.text);
  options.text = text_options_of(arguments.text);
  options.vocab_size = arguments.vocab;
  options.sample_bytes = arguments.sample_mib << 20U;
  options.threads = threads_of(arguments.text);
  ProgressBar bar{"tokenizer"};
  io::Tokenizer const tokenizer =
      io::train_tokenizer(options, [&](io::TokenizerTrainProgress const& progress) {
        bool const counts = progress.phase == io::TokenizerTrainProgress::Phase::count;
        double const share = static_cast<double>(progress.done) /
                             static_cast<double>(std::max<std::int64_t>(progress.total, 1));
        bar.show(share, counts ? "counting words" : "merging pairs");
      });
  tokenizer.save(arguments.output);
  MOTLEY_LOG(info) << "tokenizer of " << tokenizer.vocab_size() << " ids written to "
                   << arguments.output << " (fingerprint " << tokenizer.fingerprint().substr(0, 12)
                   << ")";
  return 0;
}

}  // namespace

void add_tokenizer_command(CLI::App& app, Command& command) {
  CLI::App* const tokenizer = app.add_subcommand("tokenizer", "Make tokenizers");
  tokenizer->require_subcommand(1);
  CLI::App* const train =
      tokenizer->add_subcommand("train", "Train a byte-level BPE tokenizer on text files");
  auto const arguments = std::make_shared<TokenizerArguments>();
  add_text_arguments(*train, arguments->text);
  train->add_option("-o,--output", arguments->output, "tokenizer.json to write")
      ->capture_default_str();
  train->add_option("--vocab", arguments->vocab, "Token ids, bytes and end of text included")
      ->capture_default_str();
  train->add_option("--sample-mib", arguments->sample_mib, "Text to learn from, MiB (0: all)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30U))
      ->capture_default_str();
  train->add_flag("--overwrite", arguments->overwrite, "Replace an output that exists");
  train->callback([arguments, &command] {
    command.run = [arguments](Ranks const&) { return train_and_save(*arguments); };
  });
}

}  // namespace motley::app
