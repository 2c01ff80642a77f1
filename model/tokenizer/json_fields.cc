#include "model/tokenizer/json_fields.h"

#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

absl::Status Wrong(std::string_view path, const char* key, const Json* found, std::string_view expected) {
  const std::string field = FieldPath(path, key);
  if (found == nullptr) return InvalidArgument("{}: missing (expected {})", field, expected);
  // Only scalars are shown: writing out a list or object recurses, however deep an untrusted file nests it.
  const std::string shown = found->is_structured() ? std::string(JsonKind(*found)) : found->dump(-1, ' ', true);
  return InvalidArgument("{}: found {}, expected {}", field, TerminalSafe(shown, 60), expected);
}

}  // namespace

std::string_view JsonKind(const Json& value) { return value.type_name(); }

std::string FieldPath(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

const Json* Find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

absl::Status ExpectObject(const Json& value, std::string_view path) {
  if (value.is_object()) return absl::OkStatus();
  return InvalidArgument("{}: found {}, expected an object", path, JsonKind(value));
}

absl::StatusOr<std::string> GetString(const Json& object, const char* key, std::string_view path,
                                      std::optional<std::string> fallback) {
  const Json* value = Find(object, key);
  if (value == nullptr && fallback.has_value()) return *std::move(fallback);
  if (value == nullptr || !value->is_string()) return Wrong(path, key, value, "a string");
  return value->get<std::string>();
}

absl::StatusOr<bool> GetBool(const Json& object, const char* key, std::string_view path, std::optional<bool> fallback) {
  const Json* value = Find(object, key);
  if (value == nullptr && fallback.has_value()) return *fallback;
  if (value == nullptr || !value->is_boolean()) return Wrong(path, key, value, "true or false");
  return value->get<bool>();
}

absl::StatusOr<int64_t> GetInt(const Json& object, const char* key, std::string_view path, int64_t low, int64_t high,
                               std::optional<int64_t> fallback) {
  const Json* value = Find(object, key);
  if (value == nullptr && fallback.has_value()) return *fallback;
  const std::optional<int64_t> number = value == nullptr ? std::nullopt : JsonInteger(*value);
  if (!number.has_value() || *number < low || *number > high) {
    return Wrong(path, key, value, fmt::format("an integer from {} to {}", low, high));
  }
  return *number;
}

absl::StatusOr<const Json*> GetArray(const Json& object, const char* key, std::string_view path) {
  const Json* value = Find(object, key);
  if (value == nullptr || !value->is_array()) return Wrong(path, key, value, "a list");
  return value;
}

absl::StatusOr<char32_t> GetChar(const Json& object, const char* key, std::string_view path) {
  IHA_ASSIGN_OR_RETURN(const std::string text, GetString(object, key, path));
  char32_t c = 0;
  const size_t length = Utf8Length(text, &c);
  if (length == 0 || length != text.size()) return Wrong(path, key, Find(object, key), "exactly one character");
  return c;
}

absl::Status Unsupported(std::string_view field, std::string_view found, std::initializer_list<const char*> known) {
  std::string list;
  for (const char* name : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
  return InvalidArgument("{} \"{}\" is not supported (known: {})", field, TerminalSafe(found, 60), list);
}

absl::Status TooDeep(std::string_view path) {
  return InvalidArgument("{}: sequences nested deeper than {}", TerminalSafe(path, 200), kMaxNesting);
}

}  // namespace iha::tokenizer
