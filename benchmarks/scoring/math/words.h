// words.h: the word lists of math.robust: units, months, connectives, names of functions and phrases.
// Pure lookups; all arguments are compared in lower case unless said otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace iha::scoring::math {

bool IsAsciiDigit(char c);
bool IsAsciiLetter(char c);
bool IsAsciiSpace(char c);
std::string LowerAscii(std::string_view text);
// LowerAscii, and the capitals of Latin-1, Greek and Cyrillic.
std::string LowerLetters(std::string_view text);
std::string_view TrimSpaces(std::string_view text);

bool IsUnit(std::string_view word);  // "cm", "feet", "dollars"
// The letter of a unit as behind a number in \text{...}: "K", "V", "m".
bool IsUnitLetter(std::string_view word);
bool IsCurrencyCode(std::string_view word);                        // "USD", as it is written
bool IsPercentWord(std::string_view word);                         // "percent", "pct"
bool IsConnective(std::string_view word);                          // "and", "or", "und", "et", ...
bool IsOrWord(std::string_view word);                              // of those, the ones that mean "or"
std::optional<int64_t> MultiplierOf(std::string_view);             // "million" -> 1000000
std::optional<int> MonthOf(std::string_view word);                 // "june", "jun" -> 6
std::optional<std::string_view> WeekdayOf(std::string_view word);  // "wed", "wednesday" -> "wednesday"
// "\sin" and "sin", "oo" and "infinity": the command of a function or constant that may be written as a plain word.
std::optional<std::string_view> PlainCommand(std::string_view word);
bool IsGreek(std::string_view command);
bool IsFunctionName(std::string_view name);  // "sin", "log", "gcd", as a command is named

// Phrases after which a text states its answer, in lower case, several languages; strong ones say "final answer".
std::span<const std::string_view> StrongPhrases();
std::span<const std::string_view> AnswerPhrases();

}  // namespace iha::scoring::math
