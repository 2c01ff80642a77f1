// extract_impl.h: parts of the extraction that its own files and the judge share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iha::scoring::math {

// A text that is an answer as it stands: no words of prose, or nothing but a few words.
bool IsWholeAnswer(std::string_view text);

// The letter (A to J) that a text chooses: "(C) 5", "the answer is C", "B. not A"; nullopt when it chooses none.
std::optional<char> ExtractChoice(std::string_view text);
// The letter that an extracted answer is, alone or in parentheses, with or without the text of the choice.
std::optional<char> BareChoice(std::string_view answer);
// Several letters, "A, C" or "(A) and (C)": no choice of one.
bool IsChoiceList(std::string_view answer);
// The letters, sorted, of "A, C", "(A) and (C)" or "AC"; "" for anything else.
std::string ChoiceLetters(std::string_view answer);
// "(b)": chooses as "(B)" does, where the other side is a choice.
std::optional<char> LowerChoice(std::string_view answer);

struct Phrase {
  size_t begin = 0;
  size_t end = 0;
};
// A text without the marks around its bold words ("**12**"), and where those words stand in it.
struct Emphasis {
  std::string text;
  std::vector<Phrase> spans;
};
Emphasis WithoutBold(std::string_view text);
// What the last line puts in bold type as its answer: "he walked **200 meters** in 5 minutes", "it is a **parabola**";
// "" for a heading, and where the line goes on to another value.
std::string_view SaidInBold(const Emphasis& emphasis);
// The last answer phrase of `lower` (text in lower case) that begins at or behind `from` and in front of `before`.
std::optional<Phrase> LastPhrase(std::string_view lower, bool strong, size_t from, size_t before);
// The last number in front of `limit`, with its sign, marks and percent sign.
std::optional<Phrase> LastPlainNumber(std::string_view text, size_t limit);
// The bytes of a fraction in one character ("¾") that a text begins with; 0 for none.
size_t FractionMark(std::string_view text);
// A digit, or a mark inside of a number, fraction or time.
bool IsNumberPart(char c);
// "March 5, 2020", "5th of May", "3 to 2": what the number is a part of.
Phrase AroundNumber(std::string_view text, Phrase number);
// The last mathematics that plain text states between `from` and `limit`, which is the last number with what belongs to
// it: "2√3", "f(x) = x^2 + 1", "[2, 5)", "March 5, 2020", "3 to 2", "1, 2, and 3"; of "16 - 3 - 4 = 9" the result.
std::optional<Phrase> LastPlain(std::string_view text, size_t from, size_t limit);
// What joins two answers into one list: blanks, "$", punctuation, math delimiters, \quad, bullets, "and", "or".
bool OnlyJoins(std::string_view gap);
// The items of a list of lines as a list in one line.
std::string InOneLine(std::string_view text);
// "- 1", "- 2" or "1. $x = 1$", "2. $x = 2$" below each other at the start of a text, in one line; ""
// for anything else.
std::string ListedBelow(std::string_view text);
// Whether a text ends in front of the values of a reason: "Since $a_1 = 2$ and $d = 3$, $a_2 = 5$".
bool GivesReason(std::string_view before);
// A value in several units that `text` begins with ("2 hours and 30 minutes in total"), "" for none.
std::string_view LeadingQuantity(std::string_view text);
// Such a value that ends with the unit of the number that ends at `number_end`; "" for none.
std::string_view QuantityUpTo(std::string_view text, size_t number_end);
// "3 to 2" at the start of a text; "" for none.
std::string_view LeadingRatio(std::string_view text);
// Whether a formula is an equation: of a name, a call or a tuple with its value, or another one.
enum class Equation : uint8_t { kNone, kNamed, kOther };
Equation EquationOf(std::string_view text);
// Whether a text holds a relation, or several values.
bool IsRelation(std::string_view text);
// Of one equation, or of the last row of a derivation, what stands behind its last "="; any other text as it is.
std::string_view ConclusionOf(std::string_view text);
// Of rows that solve an equation for its one letter ("2x = 24 \\\\ x = 12" in align, gathered, ...) the last; any other
// text as it is.
std::string LastRowOf(std::string_view text);
// Whether `name` is an environment of rows: align, gathered, split, ...
bool IsRows(std::string_view name);
// Without drawings ([asy]...[/asy]) at the end.
std::string_view WithoutDrawings(std::string_view text);
// "The answer is not 15 but 12." as "The answer is 12.", in several languages.
std::string WithCorrections(std::string_view text);
// `text` without what it says that the answer is not.
std::string WithoutDenials(std::string_view text);

}  // namespace iha::scoring::math
