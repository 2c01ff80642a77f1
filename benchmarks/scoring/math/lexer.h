// lexer.h: tokens of a cleaned answer (clean.h). Pure; linear; unknown bytes become kChar tokens that no rule accepts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace iha::scoring::math {

enum class Tok : uint8_t {
  kEnd,
  kNumber,     // digits, optional point and digits, optional exponent "e-3"
  kWord,       // a run of letters
  kCommand,    // text = name without the backslash; "\{" is "{", "\%" is "%"
  kChar,       // one ASCII mark
  kText,       // \text{...}: its trimmed content, which holds words
  kThousands,  // "{,}"
  kNewRow,     // "\\"
  kBegin,      // \begin{text}
  kEndEnv,     // \end{text}
  kOther,      // a character that is not ASCII
};

enum class Gap : uint8_t {
  kNone,
  kJoined,  // "\!": what stands around it belongs together
  kThin,    // "\,"
  kWide,    // blanks, "\;", "~"
  kQuad,    // "\quad"
};

struct Token {
  Tok kind = Tok::kEnd;
  Gap gap = Gap::kNone;  // what stands before it
  std::string text;
};

// At most `max_tokens`; then the list ends without kEnd being reached by the text: `complete` is false.
struct TokenList {
  std::vector<Token> tokens;  // ends with a kEnd token
  bool complete = true;
};
// "m\cdot s^{-2}", "kg\,m/s^2": names of units with what joins them.
bool IsUnitProduct(std::string_view text);

TokenList Tokenize(std::string_view cleaned, size_t max_tokens);

}  // namespace iha::scoring::math
