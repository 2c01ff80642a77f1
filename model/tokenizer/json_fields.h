// json_fields.h: typed reading of JSON objects from untrusted files; every error names the field by its path.
//
// `path` is the object's own ("pre_tokenizer.pretokenizers[1]"), errors speak of "path.key". A null field counts as
// absent. Pure; thread: any. Errors: InvalidArgument.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace iha::tokenizer {

using Json = nlohmann::json;

// "array", "string", ... as error messages call it.
std::string_view JsonKind(const Json& value);
std::string FieldPath(std::string_view path, std::string_view key);

// The field, or nullptr if absent or null.
const Json* Find(const Json& object, const char* key);

absl::Status ExpectObject(const Json& value, std::string_view path);
// Absent fields take the default; without a default they are an error.
absl::StatusOr<std::string> GetString(const Json& object, const char* key, std::string_view path,
                                      std::optional<std::string> fallback = std::nullopt);
absl::StatusOr<bool> GetBool(const Json& object, const char* key, std::string_view path,
                             std::optional<bool> fallback = std::nullopt);
absl::StatusOr<int64_t> GetInt(const Json& object, const char* key, std::string_view path, int64_t low, int64_t high,
                               std::optional<int64_t> fallback = std::nullopt);
absl::StatusOr<const Json*> GetArray(const Json& object, const char* key, std::string_view path);
// Exactly one character.
absl::StatusOr<char32_t> GetChar(const Json& object, const char* key, std::string_view path);

// `PATH.type "X" is not supported (known: ...)`.
absl::Status Unsupported(std::string_view field, std::string_view found, std::initializer_list<const char*> known);

// Sequences of components may nest this deep.
inline constexpr int kMaxNesting = 16;
absl::Status TooDeep(std::string_view path);

}  // namespace iha::tokenizer
