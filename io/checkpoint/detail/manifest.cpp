#include "io/checkpoint/detail/manifest.hpp"

#include <algorithm>
#include <cmath>

#include "io/hash.hpp"
#include "io/json.hpp"
#include "kernels/base/error.hpp"

namespace motley::io::detail {
namespace {

constexpr std::int64_t version = 1;
constexpr std::string_view hash_key = "\"manifest_sha256\": \"";
constexpr std::string_view text_end = "\"\n}\n";
constexpr std::size_t hash_digits = 64;

Json json_of(Attributes const& attributes) {
  Json json = Json::object();
  for (auto const& [name, value] : attributes) {
    std::visit([&, &key = name](auto const& plain) { json[key] = plain; }, value);
  }
  return json;
}

Attributes attributes_of(Json const& json) {
  Attributes attributes;
  for (auto const& [name, value] : json.items()) {
    if (value.is_string()) {
      attributes[name] = value.get<std::string>();
    } else if (value.is_number_float()) {
      attributes[name] = value.get<double>();
    } else {
      attributes[name] = value.get<std::int64_t>();
    }
  }
  return attributes;
}

Json json_of(TensorRecord const& record) {
  Json extents = Json::array();
  for (int dim = 0; dim < record.shape.order(); ++dim) extents.push_back(record.shape[dim]);
  Json json;
  json["path"] = path_of(record);
  json["dtype"] = to_string(record.dtype);
  json["shape"] = extents;
  json["offset"] = record.offset_bytes;
  json["checksum"] = io::to_hex(record.checksum);
  return json;
}

Shape shape_of_extents(std::vector<std::int64_t> const& extents) {
  switch (extents.size()) {
    case 1:
      return {extents[0]};
    case 2:
      return {extents[0], extents[1]};
    case 3:
      return {extents[0], extents[1], extents[2]};
    case 4:
      return {extents[0], extents[1], extents[2], extents[3]};
    default:
      MOTLEY_FAIL(checkpoint,
                  "a tensor of order " << extents.size()
                                       << " is in the manifest (orders are 1 to 4); use the motley "
                                          "that wrote it");
  }
}

template <class Value>
Value expect_value(std::optional<Value> const& value, std::string const& text) {
  MOTLEY_VALIDATE(checkpoint,
                  value.has_value(),
                  "\"" << text
                       << "\" is in the manifest (this motley does not know it); use the motley "
                          "that wrote it");
  return *value;
}

TensorRecord record_of(Json const& json) {
  TensorRecord record;
  auto const path = json.at("path").get<std::string>();
  auto const dtype = json.at("dtype").get<std::string>();
  auto const checksum = json.at("checksum").get<std::string>();
  std::string_view const group = std::string_view{path}.substr(0, path.rfind('/'));
  auto const* const kind = std::find_if(std::begin(state_kinds),
                                        std::end(state_kinds),
                                        [&](StateKind k) { return group_of(k) == group; });
  record.kind =
      expect_value(kind == std::end(state_kinds) ? std::nullopt : std::optional{*kind}, path);
  record.name = path.substr(group.size() + 1);
  record.dtype = expect_value(parse_dtype(dtype), dtype);
  record.shape = shape_of_extents(json.at("shape").get<std::vector<std::int64_t>>());
  record.offset_bytes = json.at("offset").get<std::int64_t>();
  record.checksum = expect_value(parse_checksum(checksum), checksum);
  return record;
}

Manifest manifest_of(Json const& json) {
  auto const found = json.at("version").get<std::int64_t>();
  MOTLEY_VALIDATE(checkpoint,
                  found == version,
                  "the manifest has version " << found << " (this motley reads version " << version
                                              << "); use the motley that wrote it");
  Manifest manifest;
  CheckpointMeta& meta = manifest.meta;
  json.at("step").get_to(meta.step);
  json.at("tokens").get_to(meta.tokens);
  json.at("next_sample").get_to(meta.next_sample);
  json.at("data_fingerprint").get_to(meta.data_fingerprint);
  json.at("model_hash").get_to(meta.model_hash);
  json.at("config").get_to(meta.config);
  json.at("plan").get_to(meta.plan);
  meta.data = attributes_of(json.at("data"));
  meta.schedule = attributes_of(json.at("sched"));
  meta.random = attributes_of(json.at("rng"));
  json.at("file_bytes").get_to(manifest.file_bytes);
  json.at("outside_sha256").get_to(manifest.outside_sha256);
  for (Json const& tensor : json.at("tensors")) manifest.tensors.push_back(record_of(tensor));
  return manifest;
}

/// The text with zeros for the digits of its own hash.
std::string without_hash(std::string_view text) {
  std::string plain{text};
  plain.replace(plain.size() - text_end.size() - hash_digits, hash_digits, hash_digits, '0');
  return plain;
}

/// Whether the text ends with its own hash, as to_text writes it.
bool is_whole(std::string_view text) {
  std::size_t const tail = hash_key.size() + hash_digits + text_end.size();
  if (text.size() < tail) return false;
  std::string_view const end = text.substr(text.size() - tail);
  if (!end.starts_with(hash_key) || !end.ends_with(text_end)) return false;
  return sha256_hex(without_hash(text)) == end.substr(hash_key.size(), hash_digits);
}

}  // namespace

std::string to_text(Manifest const& manifest) {
  CheckpointMeta const& meta = manifest.meta;
  Json json;
  json["version"] = version;
  json["step"] = meta.step;
  json["tokens"] = meta.tokens;
  json["next_sample"] = meta.next_sample;
  json["data_fingerprint"] = meta.data_fingerprint;
  json["model_hash"] = meta.model_hash;
  json["data"] = json_of(meta.data);
  json["sched"] = json_of(meta.schedule);
  json["rng"] = json_of(meta.random);
  json["config"] = meta.config;
  json["plan"] = meta.plan;
  json["file_bytes"] = manifest.file_bytes;
  json["outside_sha256"] = manifest.outside_sha256;
  Json tensors = Json::array();
  for (TensorRecord const& record : manifest.tensors) tensors.push_back(json_of(record));
  json["tensors"] = std::move(tensors);
  json["manifest_sha256"] = std::string(hash_digits, '0');
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  text.replace(text.size() - text_end.size() - hash_digits, hash_digits, sha256_hex(text));
  MOTLEY_ENSURE(is_whole(text));
  return text;
}

std::optional<Manifest> parse_manifest(std::string_view text, std::vector<std::string>& damage) {
  if (!is_whole(text)) {
    damage.emplace_back("manifest.json is damaged (it does not have the SHA-256 that it names)");
    return std::nullopt;
  }
  try {
    return manifest_of(Json::parse(text));
  } catch (JsonError const& error) {
    damage.push_back(std::string{"manifest.json is intact but not understood ("} + error.what() +
                     ")");
  } catch (Error const& error) {
    damage.push_back(std::string{"manifest.json is intact but not understood: "} + error.what());
  }
  return std::nullopt;
}

std::string path_of(TensorRecord const& record) {
  return std::string{group_of(record.kind)} + "/" + record.name;
}

}  // namespace motley::io::detail
