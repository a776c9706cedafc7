#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace motley::io {

enum class TextFormat {
  by_name,  ///< jsonl if the name without .gz/.dz/.zst ends in .jsonl or .ndjson, else text
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

/// A document or a part of one; for jsonl, before `extract_document`, the line that holds it.
struct Piece {
  std::string bytes;
  bool is_json_line = false;
  bool starts_document = true;
  bool ends_document = true;
  std::int32_t file = 0;  ///< index in the list of files
  std::int64_t line = 0;  ///< of a JSON line, from 1
};

/// The documents of text files, in order, in bounded memory.
///
/// Text: lines end in LF; bytes, CR among them, stay as they are; lines that separate documents are
/// dropped, and so are documents without a byte. A document longer than `piece_bytes` is cut at
/// PreTokenizer::last_cut, where encoding the parts gives the ids of the whole, unless the piece
/// has no such place (a MiB without white space). jsonl: each line that is not blank is a document,
/// whole.
///
/// Throws   Error{usage} on options; Error{data} on files: see `open_byte_source`; empty ones; a
///          jsonl line that is too long, naming its number
class DocumentStream {
 public:
  DocumentStream(std::vector<std::filesystem::path> files, TextOptions options);
  DocumentStream(DocumentStream&&) noexcept;
  DocumentStream& operator=(DocumentStream&&) noexcept;
  DocumentStream(DocumentStream const&) = delete;
  DocumentStream& operator=(DocumentStream const&) = delete;
  ~DocumentStream();

  /// The next piece; false after the last.
  [[nodiscard]] bool next(Piece& piece);

  /// Bytes of the files as they lie on disk: read so far, and all.
  [[nodiscard]] std::int64_t bytes_done() const;
  [[nodiscard]] std::int64_t bytes_total() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Puts the document of a JSON line in the line's place; other pieces stay as they are. May run in
/// any thread. Throws Error{data}, naming file, line and column, if the line is not a JSON object
/// with a string of that key.
void extract_document(Piece& piece,
                      std::vector<std::filesystem::path> const& files,
                      TextOptions const& options);

}  // namespace motley::io
