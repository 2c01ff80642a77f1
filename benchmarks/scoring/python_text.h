// python_text.h: str.strip(), str.lower(), str.isspace(), \d and \w as CPython 3.11 does them, for rules that are
// Python's own.
//
// UTF-8 in and out; bytes that are no UTF-8 stay as they are and are neither space nor letter. Pure, thread-safe,
// linear time. Source: CPython 3.11, Objects/unicodectype.c and unicodeobject.c (do_lower, handle_capital_sigma).
#pragma once

#include <string>
#include <string_view>

namespace iha::scoring {

bool IsPythonSpace(char32_t c);
// \d of re, and str.isdecimal(): of any script.
bool IsPythonDigit(char32_t c);
// \w of re: letters, anything numeric, the underscore.
bool IsPythonWord(char32_t c);

// `text` without the white space at both ends, or at its end only.
std::string_view PythonStrip(std::string_view text);
std::string_view PythonRstrip(std::string_view text);

// Full lower case: U+0130 becomes two characters, a capital sigma at a word's end the final one.
std::string PythonLower(std::string_view text);

}  // namespace iha::scoring
