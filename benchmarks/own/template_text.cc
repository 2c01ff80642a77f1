#include "benchmarks/own/template_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks {
namespace {

using Json = nlohmann::json;

constexpr size_t kShown = 80;                   // bytes of a name or value in a message
constexpr double kMostExact = 999999999999999;  // whole numbers below are what the file says

absl::Status Unfit(const std::string& name, const Json& value, const char* expected) {
  return InvalidArgument("field \"{}\": found {}, expected {}", TerminalSafe(name, kShown), Shown(value), expected);
}

}  // namespace

std::string Shown(const Json& value) {
  return TerminalSafe(value.dump(-1, ' ', false, Json::error_handler_t::replace), kShown);
}

absl::StatusOr<std::vector<TemplatePart>> ParseTemplate(const std::string& text) {
  std::vector<TemplatePart> parts;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) parts.push_back({false, plain});
    plain.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool doubled = i + 1 < text.size() && text[i + 1] == c;
    if ((c == '{' || c == '}') && doubled) {
      plain += c;
      ++i;
    } else if (c == '{') {
      const size_t end = text.find('}', i);
      if (end == std::string::npos || end == i + 1) {
        return InvalidArgument(
            "found a '{{' without a field name and its '}}'; expected {{field}}, or {{{{ for a brace");
      }
      flush();
      parts.push_back({true, text.substr(i + 1, end - i - 1)});
      i = end;
    } else if (c == '}') {
      return InvalidArgument("found a '}}' without its '{{'; expected {{field}}, or }}}} for a brace");
    } else {
      plain += c;
    }
  }
  flush();
  return parts;
}

absl::StatusOr<std::string> FieldText(const Json& row, const std::string& name) {
  const auto it = row.find(name);
  if (it == row.end()) return InvalidArgument("has no field \"{}\"", TerminalSafe(name, kShown));
  if (it->is_string()) return it->get<std::string>();
  if (it->is_null()) return Unfit(name, *it, "a text or a number");
  if (it->is_number_float() && std::abs(it->get<double>()) > kMostExact) {
    return Unfit(name, *it, "a number of at most 15 digits, or a text in quotes (JSON rounds longer numbers)");
  }
  return it->dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<std::string> PlainField(const Json& row, const std::string& name) {
  const auto it = row.find(name);
  if (it != row.end() && !it->is_string() && !it->is_number()) return Unfit(name, *it, "a text or a number");
  return FieldText(row, name);
}

absl::StatusOr<std::string> FillTemplate(const std::vector<TemplatePart>& parts, const nlohmann::json& row) {
  std::string text;
  for (const TemplatePart& part : parts) {
    if (!part.field) {
      text += part.text;
      continue;
    }
    IHA_ASSIGN_OR_RETURN(const std::string value, FieldText(row, part.text));
    text += value;
  }
  return text;
}

}  // namespace iha::benchmarks
