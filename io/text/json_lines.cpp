#include <string>
#include <utility>

#include "io/json.hpp"
#include "io/text/document_stream.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

Json parse_line(Piece const& piece, std::filesystem::path const& file) {
  try {
    return Json::parse(piece.bytes);
  } catch (nlohmann::json::parse_error const& error) {
    MOTLEY_FAIL(data,
                "line " << piece.line << " of " << file << " is not JSON at column " << error.byte
                        << " (" << error.what() << "); mend the line or leave it out");
  }
}

}  // namespace

void extract_document(Piece& piece,
                      std::vector<std::filesystem::path> const& files,
                      TextOptions const& options) {
  if (!piece.is_json_line) return;
  std::filesystem::path const& file = files[static_cast<std::size_t>(piece.file)];
  Json line = parse_line(piece, file);
  MOTLEY_VALIDATE(data,
                  line.is_object(),
                  "line " << piece.line << " of " << file << " is JSON, but " << line.type_name()
                          << " (an object with the key \"" << options.json_key
                          << "\" is needed); mend the line or leave it out");
  auto const member = line.find(options.json_key);
  MOTLEY_VALIDATE(data,
                  member != line.end(),
                  "line " << piece.line << " of " << file << " has no key \"" << options.json_key
                          << "\" (it names the text of the document); name the right key, or mend "
                             "the line");
  MOTLEY_VALIDATE(data,
                  member->is_string(),
                  "line " << piece.line << " of " << file << " has " << member->type_name()
                          << " under the key \"" << options.json_key
                          << "\" (a string is needed); name the right key, or mend the line");
  piece.bytes = std::move(member->get_ref<std::string&>());
  piece.is_json_line = false;
}

}  // namespace motley::io
