// html_text.h: untrusted text inside HTML. Pure; thread: any.
#pragma once

#include <string>
#include <string_view>

namespace iha::reports {

// For text and for attributes in double quotes: & < > " ' are entities; what could steer the reader's eye (control
// characters, bidirectional overrides, invalid UTF-8) is spelled out as TerminalSafe does. Line ends and tabs stay.
std::string HtmlText(std::string_view text);

}  // namespace iha::reports
