#include "benchmarks/own/template_text.h"

#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks {

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

absl::StatusOr<std::string> FieldText(const nlohmann::json& row, const std::string& name) {
  const auto it = row.find(name);
  if (it == row.end()) return InvalidArgument("has no field \"{}\"", TerminalSafe(name, 80));
  if (it->is_string()) return it->get<std::string>();
  return it->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
