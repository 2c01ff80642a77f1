// extract_shape.h: what a piece of text consists of (words of prose, digits, marks of mathematics) and what dresses it.
// Pure; linear.
#pragma once

#include <cstddef>
#include <string_view>

namespace iha::scoring::math {

struct Shape {
  size_t prose = 0;  // words
  size_t words = 0;
  bool digits = false;
  bool formula = false;  // marks of mathematics
};

// Looks at the words outside of commands and \text{...}.
Shape ShapeOf(std::string_view text);

// A short text that names a month.
bool IsDateLike(std::string_view text);

// "Yes, it converges": the word in front of the comma; "" when the text says neither yes, no, true nor false.
std::string_view YesOrNo(std::string_view text);
// "The function is even": what is said of it, for a few words that hold no mathematics; else "".
std::string_view SaidOf(std::string_view text);
// "3 to 2", "7 out of 10".
bool NumbersJoined(std::string_view text);
// The content of the last <answer>...</answer>, "" when there is none.
std::string_view AnswerTag(std::string_view text);
// A short text without the markdown around all of it: "**42**", "`42`", "#### 42".
std::string_view WithoutMarkdown(std::string_view text);

}  // namespace iha::scoring::math
