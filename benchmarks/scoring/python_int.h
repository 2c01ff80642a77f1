// python_int.h: which texts Python's int() reads, for graders that branch on its success.
//
// UTF-8 in; invalid UTF-8 is never an integer. Pure, thread-safe, linear time. Source: CPython 3.11, int(str): optional
// white space around, a sign, decimal digits of any script with single underscores between them, at most 4300 digits.
#pragma once

#include <string_view>

namespace iha::scoring {

bool IsPythonInt(std::string_view text);

// An integer spelt as Python writes it: str(int(text)) == text.
bool IsCanonicalInt(std::string_view text);

}  // namespace iha::scoring
