// text.h: untrusted text made fit for one line of a terminal or log (DESIGN section 9). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace iha {

// Printable UTF-8 stays; everything that could steer a terminal or break the line is written as an escape: C0 controls
// and DEL as \n \t \r or \xNN, invalid UTF-8 bytes as \xNN, C1 controls, line and paragraph separators
// and bidirectional overrides as \u{HEX}. Longer than max_bytes (0 = no limit): cut at a whole character, then "...".
// Backslashes stay as they are (LaTeX), so the result is for eyes, not for parsing.
std::string TerminalSafe(std::string_view text, size_t max_bytes = 0);

// Length of the valid UTF-8 sequence at the start of `text` (1 to 4), or 0: no overlong forms, no surrogates, nothing
// past U+10FFFF. `code_point` (may be null) receives the value.
size_t Utf8Length(std::string_view text, char32_t* code_point);

bool IsValidUtf8(std::string_view text);

}  // namespace iha
