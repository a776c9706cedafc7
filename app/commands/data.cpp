#include <algorithm>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/text_options.hpp"
#include "app/progress_bar.hpp"
#include "app/step_line.hpp"
#include "io/data_build.hpp"
#include "io/dataset.hpp"
#include "io/json.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"

namespace motley::app {
namespace {

struct BuildArguments {
  TextArguments text;
  std::string tokenizer;
  std::string output = "train.h5";
  std::string valid_output;
  double valid_fraction = 0.0;
  std::string valid_split = "tail";
  bool overwrite = false;
};

std::string describe(io::BuiltSet const& set) {
  return fmt::format("{}: {} documents, {} tokens of {} of text, unigram entropy {:.4f} nats",
                     set.path.string(),
                     set.documents,
                     set.tokens,
                     format_bytes(static_cast<double>(set.text_bytes)),
                     set.unigram_entropy_nats);
}

int build(BuildArguments const& arguments) {
  io::BuildOptions options;
  options.files = files_of(arguments.text);
  options.text = text_options_of(arguments.text);
  options.output = arguments.output;
  options.valid_output = arguments.valid_output;
  options.valid_fraction = arguments.valid_fraction;
  options.valid_split =
      arguments.valid_split == "documents" ? io::ValidSplit::documents : io::ValidSplit::tail;
  options.threads = threads_of(arguments.text);
  options.overwrite = arguments.overwrite;
  io::Tokenizer const tokenizer = io::Tokenizer::load(arguments.tokenizer);
  ProgressBar bar{"data set"};
  io::BuildResult const result =
      io::build_dataset(options, tokenizer, [&](io::BuildProgress const& progress) {
        auto const total = static_cast<double>(std::max<std::int64_t>(progress.bytes_total, 1));
        bar.show(static_cast<double>(progress.bytes_done) / total,
                 fmt::format("{:.2e} tokens", static_cast<double>(progress.tokens)));
      });
  MOTLEY_LOG(info) << describe(result.train);
  if (result.valid) MOTLEY_LOG(info) << describe(*result.valid);
  return 0;
}

void add_build(CLI::App& data, Command& command) {
  CLI::App* const sub = data.add_subcommand("build", "Encode text files into an HDF5 data set");
  auto const arguments = std::make_shared<BuildArguments>();
  BuildArguments& a = *arguments;
  add_text_arguments(*sub, a.text);
  sub->add_option("--tokenizer", a.tokenizer, "tokenizer.json")->required();
  sub->add_option("-o,--output", a.output, "Data set to write")->capture_default_str();
  sub->add_option("--valid-output", a.valid_output, "Validation set to write");
  sub->add_option("--valid-fraction", a.valid_fraction, "Share of the input that goes there")
      ->check(CLI::Range(0.0, 0.999))
      ->capture_default_str();
  sub->add_option("--valid-split", a.valid_split, "tail (the end of the input) | documents (drawn)")
      ->check(CLI::IsMember({"tail", "documents"}))
      ->capture_default_str();
  sub->add_flag("--overwrite", a.overwrite, "Replace outputs that exist");
  sub->callback([arguments, &command] {
    command.run = [arguments](Ranks const&) { return build(*arguments); };
  });
}

struct InspectArguments {
  std::string path;
  bool verify = false;
  bool json = false;
};

std::string to_text(io::DatasetInfo const& info) {
  return fmt::format(
      "data set {}\n"
      "  tokens           {} ({} bytes each, ids below {})\n"
      "  documents        {}\n"
      "  file             {}, tokens compressed {:.2f} times in {} chunks\n"
      "  loss mask        {}\n"
      "  unigram entropy  {:.4f} nats per token\n"
      "  content          {}\n"
      "  tokenizer        {}\n"
      "  sources          {}\n",
      info.path,
      info.tokens,
      info.token_bytes,
      info.vocab,
      info.documents,
      format_bytes(static_cast<double>(info.file_bytes)),
      info.compression_ratio(),
      info.chunks,
      info.has_loss_mask ? "yes" : "none: every token counts",
      info.unigram_entropy_nats,
      info.content_hash,
      info.tokenizer_hash,
      info.sources);
}

std::string to_json(io::DatasetInfo const& info) {
  io::Json json;
  json["path"] = info.path;
  json["tokens"] = info.tokens;
  json["token_bytes"] = info.token_bytes;
  json["vocab"] = info.vocab;
  json["documents"] = info.documents;
  json["file_bytes"] = info.file_bytes;
  json["has_loss_mask"] = info.has_loss_mask;
  json["unigram_entropy_nats"] = info.unigram_entropy_nats;
  json["content_hash"] = info.content_hash;
  json["tokenizer_hash"] = info.tokenizer_hash;
  json["sources"] = io::Json::parse(info.sources, nullptr, false);
  return json.dump() + "\n";
}

int inspect(InspectArguments const& arguments) {
  io::DatasetInfo const info = io::inspect_dataset(arguments.path);
  std::cout << (arguments.json ? to_json(info) : to_text(info));
  if (!arguments.verify) return 0;
  ProgressBar bar{"verify"};
  io::verify_dataset(arguments.path, [&](std::int64_t done, std::int64_t all) {
    bar.show(static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(all, 1)),
             fmt::format("{:.2e} tokens", static_cast<double>(done)));
  });
  MOTLEY_LOG(info) << "data set \"" << arguments.path << "\" is intact";
  return 0;
}

void add_inspect(CLI::App& data, Command& command) {
  CLI::App* const sub = data.add_subcommand("inspect", "Print what a data set holds");
  auto const arguments = std::make_shared<InspectArguments>();
  sub->add_option("FILE", arguments->path, "HDF5 data set")->required();
  sub->add_flag("--verify", arguments->verify, "Read everything and check it (exit 65 on damage)");
  sub->add_flag("--json", arguments->json, "Print one line of JSON");
  sub->callback([arguments, &command] {
    command.run = [arguments](Ranks const&) { return inspect(*arguments); };
  });
}

}  // namespace

void add_data_command(CLI::App& app, Command& command) {
  CLI::App* const data = app.add_subcommand("data", "Make data sets and look into them");
  data->require_subcommand(1);
  add_build(*data, command);
  add_inspect(*data, command);
}

}  // namespace motley::app
