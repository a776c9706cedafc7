#include "app/commands/text_options.hpp"

#include <algorithm>

#include <sched.h>

namespace motley::app {
namespace {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

}  // namespace

void add_text_arguments(CLI::App& app, TextArguments& arguments) {
  app.add_option("FILES", arguments.files, "Texts: .txt, .jsonl, each also .gz or .zst")
      ->required();
  app.add_option("--format", arguments.format, "auto (by name) | text | jsonl")
      ->check(CLI::IsMember({"auto", "text", "jsonl"}))
      ->capture_default_str();
  app.add_option("--key", arguments.json_key, "Member of a jsonl line that holds the document")
      ->capture_default_str();
  app.add_option("--split",
                 arguments.split,
                 "Where a text file is cut into documents: file (nowhere) | blank_line")
      ->check(CLI::IsMember({"file", "blank_line"}))
      ->capture_default_str();
  app.add_option("--separator", arguments.separator_line, "Cut at each line equal to this one");
  app.add_option("--threads", arguments.threads, "Threads (0: all cores this process may use)")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
}

std::vector<std::filesystem::path> files_of(TextArguments const& arguments) {
  return {arguments.files.begin(), arguments.files.end()};
}

io::TextOptions text_options_of(TextArguments const& arguments) {
  io::TextOptions options;
  if (arguments.format == "text") options.format = io::TextFormat::text;
  if (arguments.format == "jsonl") options.format = io::TextFormat::jsonl;
  options.json_key = arguments.json_key;
  if (arguments.split == "blank_line") options.split = io::DocumentSplit::blank_line;
  if (!arguments.separator_line.empty()) {
    options.split = io::DocumentSplit::separator_line;
    options.separator_line = arguments.separator_line;
  }
  return options;
}

int threads_of(TextArguments const& arguments) {
  return arguments.threads > 0 ? arguments.threads : usable_cores();
}

}  // namespace motley::app
