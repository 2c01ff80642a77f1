// clean.h: an extracted answer rewritten to the plain LaTeX that the lexer reads.
//
// Mathematical Unicode becomes LaTeX ("√" -> "\sqrt "), other scripts' digits become ASCII, math delimiters ($, \(, \[)
// become spaces, doubled backslashes of an escaped text become single. Pure; linear; output at most 12 x the input.
#pragma once

#include <string>
#include <string_view>

namespace iha::scoring::math {

std::string CleanAnswer(std::string_view text);

// Digits of other scripts and full-width marks as ASCII, all else as it is: what extraction looks at.
std::string WithAsciiForms(std::string_view text);

// "\\frac" for "\frac" everywhere (a text that was escaped twice): halved; any other text as it is.
std::string HalveBackslashes(std::string_view text);

// How two texts compare: lower case ASCII letters, one space between words, no punctuation, formatting commands or
// articles. Empty when nothing is left.
std::string TextKey(std::string_view text);

}  // namespace iha::scoring::math
