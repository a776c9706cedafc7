#pragma once

#include <nlohmann/json.hpp>

namespace motley::io {

/// JSON with keys in the order in which they were written. The one header of ours that includes the
/// JSON library; for .cpp files only, since it is slow to compile.
using Json = nlohmann::ordered_json;

/// What the JSON library throws; wherever Json is read, this is turned into an Error that names the
/// file.
using JsonError = nlohmann::json::exception;

}  // namespace motley::io
