// template_text.h: "{field}" templates over JSON rows. Pure, thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace iha::benchmarks {

struct TemplatePart {
  bool field = false;
  std::string text;  // a field's name, or text as it is
};

// "Q: {question}\nA:"; "{{" and "}}" are braces. InvalidArgument: a brace without its partner, an empty name.
absl::StatusOr<std::vector<TemplatePart>> ParseTemplate(const std::string& text);

// A row's field as text: strings as they are, other values as JSON. InvalidArgument: no such field, null, or a number
// that JSON's numbers round (more than 15 digits and no 64-bit integer): it is to be written as a text.
absl::StatusOr<std::string> FieldText(const nlohmann::json& row, const std::string& name);
// The same of a field that names one thing, an answer or an id: InvalidArgument too for what is neither text nor
// number.
absl::StatusOr<std::string> PlainField(const nlohmann::json& row, const std::string& name);

// A value as a message shows it: its JSON, cut.
std::string Shown(const nlohmann::json& value);

absl::StatusOr<std::string> FillTemplate(const std::vector<TemplatePart>& parts, const nlohmann::json& row);

}  // namespace iha::benchmarks
