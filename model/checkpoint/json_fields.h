// json_fields.h: strict reading of one JSON object, field by field, with errors that name the field.
//
// A reader remembers the first error and which fields were asked for; after an error every getter returns its
// fallback, so parsing code reads straight down and checks status() once. `path` prefixes every message and field:
// "config.json: " or "config.json: iha_eval.attention[3].". Private to this folder. One thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace iha::checkpoint {

// Untrusted text for a message: control characters escaped, at most 200 bytes.
std::string Shown(std::string_view text);
std::string ShownJson(const nlohmann::json& value);
// The same with quotes around a string: where another type was expected.
std::string TypedJson(const nlohmann::json& value);

// An object, or InvalidArgument "FILE: ..." with line, column and field (json_check.h).
absl::StatusOr<nlohmann::json> ParseJsonObject(std::string_view text, std::string_view file);

class FieldReader {
 public:
  // `object` must outlive the reader.
  FieldReader(const nlohmann::json& object, std::string path);

  // Absent: fallback; without one, an error "missing (expected WHAT)".
  int64_t Int(const char* field, std::optional<int64_t> fallback, int64_t min, int64_t max);
  double Number(const char* field, std::optional<double> fallback, double min_exclusive, double max);
  bool Bool(const char* field, std::optional<bool> fallback);
  std::string String(const char* field, std::optional<std::string> fallback);
  // Index of the field's string in `names`. "missing (expected a or b)", "is x, expected a or b".
  size_t Choice(const char* field, const std::vector<const char*>& names, std::optional<size_t> fallback);
  // Null if absent or null. Counts as asked for.
  const nlohmann::json* Find(const char* field);
  bool Has(const char* field) const;  // present, even if null
  // The field may be there or not, whatever its value.
  void Ignore(const char* field) { known_.insert(field); }

  // Records an error about a field: "PATHfield MESSAGE". The first one stays.
  void Fail(std::string_view field, std::string_view message);
  void Merge(const absl::Status& status);
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  // Fields never asked for, in name order.
  std::vector<std::string> Unknown() const;
  const std::string& path() const { return path_; }

 private:
  const nlohmann::json* Require(const char* field, bool has_fallback, std::string_view expected);
  const nlohmann::json& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
  absl::Status status_;
};

}  // namespace iha::checkpoint
