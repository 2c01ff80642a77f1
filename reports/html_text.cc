#include "reports/html_text.h"

#include <algorithm>

#include "common/text.h"

namespace iha::reports {
namespace {

void AppendEscaped(std::string_view line, std::string& out) {
  if (line.empty()) return;
  for (const char c : TerminalSafe(line)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
}

}  // namespace

std::string HtmlText(std::string_view text) {
  std::string out;
  while (true) {
    const size_t end = std::min(text.find_first_of("\n\t"), text.size());
    AppendEscaped(text.substr(0, end), out);
    if (end == text.size()) return out;
    out += text[end];
    text.remove_prefix(end + 1);
  }
}

}  // namespace iha::reports
