#include "io/text/document_stream.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "io/text/byte_source.hpp"
#include "io/text/detail/line_reader.hpp"
#include "io/tokenizer/pretokenizer.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

constexpr std::int64_t smallest_piece_bytes = 16;

bool names_jsonl(std::filesystem::path path) {
  auto const ending = path.extension();
  if (ending == ".gz" || ending == ".dz" || ending == ".zst") path = path.stem();
  return path.extension() == ".jsonl" || path.extension() == ".ndjson";
}

void check_options(std::vector<std::filesystem::path> const& files, TextOptions const& options) {
  MOTLEY_VALIDATE(usage,
                  !files.empty(),
                  "no text file was named (there is nothing to read); name "
                  "at least one");
  MOTLEY_VALIDATE(usage,
                  options.piece_bytes >= smallest_piece_bytes,
                  "pieces of " << options.piece_bytes << " bytes were asked for (at least "
                               << smallest_piece_bytes << " are needed); use more");
  MOTLEY_VALIDATE(usage,
                  options.max_line_bytes > 0,
                  "lines of at most " << options.max_line_bytes
                                      << " bytes were asked for (none fits); use more");
  MOTLEY_VALIDATE(usage,
                  options.separator_line.find('\n') == std::string::npos,
                  "the separator line holds a line end (it is compared with single lines); give "
                  "it without");
}

std::int64_t size_of(std::filesystem::path const& path) {
  std::error_code error;
  auto const bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(bytes);
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

class DocumentStream::Impl {
 public:
  Impl(std::vector<std::filesystem::path> files, TextOptions options)
      : files_{std::move(files)}, options_{std::move(options)} {
    check_options(files_, options_);
    for (auto const& file : files_) {
      // What is wrong with a file on the outside shows now, not after hours of work on others.
      static_cast<void>(open_byte_source(file));
      bytes_total_ += size_of(file);
    }
  }

  bool next(Piece& piece) {
    for (; file_ < files_.size(); close_file()) {
      if (!lines_) lines_.emplace(files_[file_]);
      bool const is_json = options_.format == TextFormat::jsonl ||
                           (options_.format == TextFormat::by_name && names_jsonl(files_[file_]));
      if (is_json ? next_json_line(piece) : next_text(piece)) {
        piece.is_json_line = is_json;
        piece.file = static_cast<std::int32_t>(file_);
        ++pieces_of_file_;
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] std::int64_t bytes_done() const {
    return bytes_of_done_files_ + (lines_ ? lines_->file_position() : 0);
  }
  [[nodiscard]] std::int64_t bytes_total() const noexcept { return bytes_total_; }

 private:
  bool next_json_line(Piece& piece);
  bool next_text(Piece& piece);
  [[nodiscard]] bool is_separator(std::string_view line) const;
  void give_document(Piece& piece, std::size_t bytes, bool ends);
  void close_file();

  std::vector<std::filesystem::path> files_;
  TextOptions options_;
  PreTokenizer pretokenizer_;
  std::int64_t bytes_total_ = 0;
  std::int64_t bytes_of_done_files_ = 0;
  std::size_t file_ = 0;
  // Of the open file:
  std::optional<detail::LineReader> lines_;
  std::int64_t line_ = 0;
  std::int64_t pieces_of_file_ = 0;
  std::string document_;  // text read and not yet given out
  std::string line_text_;
  bool is_document_open_ = false;  // a part of it was given out
  bool is_line_open_ = false;      // the last line was cut at the limit
};

bool DocumentStream::Impl::next_json_line(Piece& piece) {
  auto const limit = static_cast<std::size_t>(options_.max_line_bytes);
  do {
    piece.bytes.clear();
    if (!lines_->append_line(piece.bytes, limit)) return false;
    ++line_;
    MOTLEY_VALIDATE(data,
                    piece.bytes.size() < limit || piece.bytes.ends_with('\n'),
                    "line " << line_ << " of " << files_[file_] << " is longer than " << limit
                            << " bytes (a document of jsonl is read as a whole); split it, or "
                               "raise the limit");
  } while (is_blank(piece.bytes));
  piece.starts_document = true;
  piece.ends_document = true;
  piece.line = line_;
  return true;
}

bool DocumentStream::Impl::is_separator(std::string_view line) const {
  std::string_view const text = without_line_end(line);
  switch (options_.split) {
    case DocumentSplit::blank_line:
      return text.empty();
    case DocumentSplit::separator_line:
      return text == options_.separator_line;
    case DocumentSplit::file:
      break;
  }
  return false;
}

/// Gives out the first bytes of what was read of the document.
void DocumentStream::Impl::give_document(Piece& piece, std::size_t bytes, bool ends) {
  std::string rest = document_.substr(bytes);
  document_.resize(bytes);
  piece.bytes.swap(document_);
  document_ = std::move(rest);
  piece.starts_document = !is_document_open_;
  piece.ends_document = ends;
  is_document_open_ = !ends;
}

bool DocumentStream::Impl::next_text(Piece& piece) {
  auto const piece_bytes = static_cast<std::size_t>(options_.piece_bytes);
  while (document_.size() < piece_bytes) {
    line_text_.clear();
    if (!lines_->append_line(line_text_, piece_bytes)) {
      if (document_.empty()) return false;
      give_document(piece, document_.size(), true);
      return true;
    }
    bool const is_whole = !std::exchange(is_line_open_, !line_text_.ends_with('\n'));
    if (!is_whole || !is_separator(line_text_)) {
      document_ += line_text_;
    } else if (!document_.empty()) {
      give_document(piece, document_.size(), true);
      return true;
    }
  }
  give_document(piece, pretokenizer_.last_cut(document_), false);
  return true;
}

void DocumentStream::Impl::close_file() {
  MOTLEY_VALIDATE(data,
                  pieces_of_file_ > 0,
                  "text file " << files_[file_]
                               << " holds no document (it is empty, or has nothing but blank "
                                  "lines); leave it out or fetch it again");
  bytes_of_done_files_ += lines_->file_position();
  lines_.reset();
  line_ = 0;
  pieces_of_file_ = 0;
  is_line_open_ = false;
  ++file_;
}

DocumentStream::DocumentStream(std::vector<std::filesystem::path> files, TextOptions options)
    : impl_{std::make_unique<Impl>(std::move(files), std::move(options))} {}
DocumentStream::DocumentStream(DocumentStream&&) noexcept = default;
DocumentStream& DocumentStream::operator=(DocumentStream&&) noexcept = default;
DocumentStream::~DocumentStream() = default;

bool DocumentStream::next(Piece& piece) { return impl_->next(piece); }
std::int64_t DocumentStream::bytes_done() const { return impl_->bytes_done(); }
std::int64_t DocumentStream::bytes_total() const noexcept { return impl_->bytes_total(); }

}  // namespace motley::io
