// extract_shape.h: what a piece of text consists of (words of prose, digits, marks of mathematics) and what dresses it.
// Pure; linear.
#pragma once

#include <cstddef>
#include <string>
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
// What the last sentence ends in, where that is an answer in words: "there is no solution", "it is a Tuesday", "f is
// odd, since ..."; else "".
std::string_view SaidLast(std::string_view text);
// Nothing but math delimiters, blanks, points and commands around nothing: "$\boxed{}$".
bool SaysNothing(std::string_view text);
// What follows "the answer is" without giving one: "correct", "in simplest form", "see above", "an integer", "not 15".
bool IsRemark(std::string_view statement);
// "not 15", "not B", "not correct"; "not possible" is an answer.
bool IsNegated(std::string_view statement);
// Mathematics, or an answer in words ("twelve", "yes", "Tuesday"): what may take the place of a box in front of it.
bool StatesValue(std::string_view answer);
// Without the calculator's marks of GSM8K: "<<9*2=18>>".
std::string WithoutCalculator(std::string_view text);
// Without the marks that end a proof: "QED", "\blacksquare".
std::string_view WithoutProofEnd(std::string_view text);
// Without what only explains an answer behind it: a reason, a check in brackets, what the answer is not.
std::string_view WithoutAfterthought(std::string_view text);
// The last "二分之一" in a text; "" for none.
std::string_view ChineseFractionIn(std::string_view text);
// A short text without what leads to its value: "A: 7", "In 7 days".
std::string_view WithoutLead(std::string_view text);
// "3 to 2", "7 out of 10".
bool NumbersJoined(std::string_view text);
// The content of the last <answer>...</answer>, "" when there is none.
std::string_view AnswerTag(std::string_view text);
// A short text without the markdown around all of it: "**42**", "`42`", "#### 42".
std::string_view WithoutMarkdown(std::string_view text);

}  // namespace iha::scoring::math
