// json.h: JSON from files and peers, read with messages that name the place. Pure but for ReadJsonFile. Thread: any.
//
// Everything here refuses with InvalidArgument, one line: "sweep.json:12:5: ...".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file.h"
#include "nlohmann/json_fwd.hpp"

namespace iha {

// Objects and arrays nested deeper are refused: whoever walks a value recurses.
inline constexpr int kMaxJsonDepth = 200;

// InvalidArgument for text that nests deeper: before a parse by other means than those below.
absl::Status CheckJsonDepth(std::string_view text);

// Strict JSON, valid UTF-8 without a byte order mark, one value; a field that an object gives twice has its last value.
// `where` ("sweep.json", "stdin:7") begins the message, followed by line:column.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view where);
// The same for what people and other tools hand in line by line: refuses a field that an object gives twice. `Json` is
// nlohmann::json or nlohmann::ordered_json.
template <class Json>
absl::StatusOr<Json> ParseUniqueJson(std::string_view text, std::string_view where);
// The same with // and /* */ comments, keys in order of the text: what people write by hand. Refuses a field that an
// object gives twice.
absl::StatusOr<nlohmann::ordered_json> ParseCommentedJson(std::string_view text, std::string_view where);
// Of a regular file: nothing else is waited for.
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path, int64_t max_bytes = kMaxTextFileBytes);

// The value as T if it is written as a whole number and fits. nlohmann's get<T>() and its silent conversions take any
// number: 1e96 is undefined behaviour, 2^63 (kept as unsigned by the parser) wraps around. So a whole number from a
// file or a peer is read by this. `Json` is either of nlohmann's.
template <class T = int64_t, class Json>
std::optional<T> JsonInteger(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned()) {
    const auto number = value.template get<uint64_t>();
    return std::in_range<T>(number) ? std::optional<T>(static_cast<T>(number)) : std::nullopt;
  }
  const auto number = value.template get<int64_t>();
  return std::in_range<T>(number) ? std::optional<T>(static_cast<T>(number)) : std::nullopt;
}

}  // namespace iha
