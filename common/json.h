// json.h: JSON from files and peers, read with messages that name the place. Pure but for ReadJsonFile. Thread: any.
//
// Everything here refuses with InvalidArgument, one line: "sweep.json:12:5: ...", "field \"limit\": found a string,
// expected an integer". Prefix what you know (the file, the path of the object) with Annotate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file.h"
#include "nlohmann/json_fwd.hpp"

namespace iha {

// Objects and arrays nested deeper are refused: whoever walks a value recurses.
inline constexpr int kMaxJsonDepth = 200;

// Strict JSON, valid UTF-8, one value. `where` ("sweep.json", "stdin:7") begins the message, followed by line:column.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view where);
// The same with // and /* */ comments, keys in order of the text: what people write by hand. Refuses a field that an
// object gives twice.
absl::StatusOr<nlohmann::ordered_json> ParseCommentedJson(std::string_view text, std::string_view where);
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path, int64_t max_bytes = kMaxTextFileBytes);

// "null", "true", "\"text\"" (cut), "12", "an array", "an object": what was found, for messages.
std::string DescribeJson(const nlohmann::json& value);

// Field `key` of `object` as T: std::string, bool, int32_t, int64_t, uint64_t, double (any number), or a std::vector of
// std::string, int32_t, int64_t, double. Integers must be written as such and fit. Missing or null is an error.
template <class T>
absl::StatusOr<T> Get(const nlohmann::json& object, std::string_view key);

// As Get, but `fallback` when the field is missing (null is an error).
template <class T>
absl::StatusOr<T> GetOr(const nlohmann::json& object, std::string_view key, T fallback);

// The field as it is; must be an object or array respectively. The pointer lives as long as `object`.
absl::StatusOr<const nlohmann::json*> GetObject(const nlohmann::json& object, std::string_view key);
absl::StatusOr<const nlohmann::json*> GetArray(const nlohmann::json& object, std::string_view key);

// Refuses keys of `object` that are not in `known` (unknown field "limt" (did you mean "limit"?)).
absl::Status CheckKeys(const nlohmann::json& object, std::span<const std::string> known);

// Keys sorted by bytes, no spaces, numbers in the shortest form that reads back equal: the same value, the same bytes.
// Invalid UTF-8 becomes U+FFFD.
std::string CanonicalJson(const nlohmann::json& value);

}  // namespace iha
