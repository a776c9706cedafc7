#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "io/text/document_stream.hpp"

namespace motley::app {

/// Options of commands that read text, as typed.
struct TextArguments {
  std::vector<std::string> files;
  std::string format = "auto";
  std::string json_key = "text";
  std::string split = "file";
  std::string separator_line;
  int threads = 0;
};

/// Adds FILES, --format, --key, --split, --separator and --threads to a command.
void add_text_arguments(CLI::App& app, TextArguments& arguments);

[[nodiscard]] std::vector<std::filesystem::path> files_of(TextArguments const& arguments);
[[nodiscard]] io::TextOptions text_options_of(TextArguments const& arguments);
/// The threads asked for, or the cores this process may use.
[[nodiscard]] int threads_of(TextArguments const& arguments);

}  // namespace motley::app
