#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace motley::io {

enum class TextFormat {
  by_name,  ///< jsonl if the name without .gz/.zst/.dz ends in .jsonl or .ndjson, else text
  text,
  jsonl,
};

/// Where a text file is cut into documents.
enum class DocumentSplit {
  file,            ///< nowhere: the file is one document
  blank_line,      ///< at each run of empty lines
  separator_line,  ///< at each line equal to TextOptions::separator_line
};

/// How files are read as documents. Compression (gzip, zstd) is found by their first bytes.
struct TextOptions {
  TextFormat format = TextFormat::by_name;
  std::string json_key = "text";              ///< of jsonl: the member that holds the document
  DocumentSplit split = DocumentSplit::file;  ///< of text
  std::string separator_line;                 ///< without its line end
  std::int64_t piece_bytes = std::int64_t{1} << 20U;     ///< longer documents come in pieces
  std::int64_t max_line_bytes = std::int64_t{1} << 30U;  ///< a longer jsonl line is refused
};

}  // namespace motley::io
