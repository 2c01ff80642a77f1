#include <algorithm>

#include "benchmarks/scoring/math/parser_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kMaxElements = 2000;  // of one bracket or matrix

bool AllUpper(string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

Ref Parser::ParsePrimary() {
  const Token& token = At();
  switch (token.kind) {
    case Tok::kNumber:
      return ParseNumber();
    case Tok::kWord:
      return ParseWord();
    case Tok::kCommand:
      return ParseCommand();
    case Tok::kChar:
      return ParseCharPrimary();
    case Tok::kBegin:
      return ParseMatrix();
    case Tok::kText: {
      const std::string text = token.text;
      if (IsConnective(LowerAscii(text))) return Fail("a connective");
      Next();
      return tree_.New(Kind::kText, LowerAscii(text), {});
    }
    default:
      return Fail("no operand");
  }
}

Ref Parser::ParseSymbol(std::string name) {
  while (IsChar('\'')) {
    name += '\'';
    Next();
  }
  if (IsChar('_')) {
    Next();
    const Ref script = ParseScript();
    if (script == kNoRef) return failed_ ? kNoRef : Fail("subscript");
    // An index that is computed with makes the symbol a function of it: F_{n-k-1}.
    // C_n^k, the number of choices; C_0 and C_1 are constants.
    if (name == "C" && IsChar('^') && !tree_.IsNumber(script, 0) && !tree_.IsNumber(script, 1)) {
      Next();
      const Ref chosen = ParseScript();
      if (chosen == kNoRef) return failed_ ? kNoRef : Fail("choice");
      return tree_.New(Kind::kFunction, "binom", {script, chosen});
    }
    // A_n^k, P_n^k of whole numbers: arrangements.
    if ((name == "A" || name == "P") && IsChar('^') && tree_.Is(script, Kind::kNumber)) {
      const size_t braced = IsChar('{', 1) ? 1 : 0;
      const auto chosen = IsInteger(1 + braced) && (braced == 0 || IsChar('}', 3))
                              ? Rational::ParseDecimal(At(1 + braced).text)
                              : std::nullopt;
      const Rational n = tree_[script].value;
      if (chosen.has_value() && n.IsInteger() && n > Rational(1) && *chosen <= n && chosen->Sign() >= 0) {
        pos_ += braced == 1 ? 4 : 2;
        return tree_.Div(tree_.New(Kind::kFunction, "fact", {script}),
                         tree_.New(Kind::kFunction, "fact", {tree_.Number(n - *chosen)}));
      }
    }
    if (tree_.Is(script, Kind::kAdd) || tree_.Is(script, Kind::kMul)) {
      return tree_.New(Kind::kApply, name + "_", {script});
    }
    name += "_" + tree_.Key(script);
    while (IsChar('\'')) {
      name += '\'';
      Next();
    }
  }
  return tree_.New(Kind::kSymbol, std::move(name), {});
}

// "(1, 2)" behind the name of a point: a comma at the level of the bracket.
bool Parser::IsPointBehind() const {
  int depth = 0;
  for (size_t ahead = 0; ahead < 60; ++ahead) {
    const Token& token = At(ahead);
    if (token.kind == Tok::kEnd) return false;
    if (token.kind != Tok::kChar) continue;
    const char c = token.text[0];
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (depth == 0) return false;
    if (c == ',' && depth == 1) return true;
  }
  return false;
}

// f(x), P(A), W(n), A(1, 2): a call; x(x+1) a product. f, g, h, F, G, H always call; other capitals when the argument
// is one name or number.
Ref Parser::ParseCall(std::string name) {
  if (name == "P") {
    if (const Ref event = ParseEvent(name, false); event != kNoRef || failed_) return event;
  }
  const bool callable = string_view("fghFGH").find(name[0]) != string_view::npos;
  const bool capital = name[0] >= 'A' && name[0] <= 'Z';
  const bool single =
      (At(1).kind == Tok::kWord && (At(1).text.size() == 1 || AllUpper(At(1).text))) || (At(1).kind == Tok::kNumber);
  // v(t) = ...
  const bool defined = single && IsChar(')', 2) && IsChar('=', 3) && At(1).kind == Tok::kWord && pos_ == 1;
  if (!callable && !defined && !(capital && (IsPointBehind() || (single && IsChar(')', 2))))) return kNoRef;
  if (callable && IsChar(')', 1)) return kNoRef;
  const Ref arguments = ParseBracket();
  if (arguments == kNoRef) return Fail("arguments");
  std::vector<Ref> kids = {arguments};
  if (tree_.Is(arguments, Kind::kBracket)) kids = tree_[arguments].kids;
  return tree_.New(Kind::kApply, std::move(name), std::move(kids));
}

Ref Parser::ParseWord() {
  if (AtBaseNumber()) return ParseBaseNumber();
  const std::string word = At().text;
  const std::string lower = LowerAscii(word);
  const auto command = PlainCommand(word.size() > 2 && !AllUpper(word) ? lower : word);
  if (command.has_value() && word.size() > 1) {
    Next();
    return ParseCommandNamed(std::string(*command));
  }
  // dy/dx: a derivative.
  const auto differential = [](string_view w) { return w.size() == 2 && w[0] == 'd' && w[1] >= 'a' && w[1] <= 'z'; };
  if (differential(word) && IsChar('/', 1) && At(2).kind == Tok::kWord && differential(At(2).text)) {
    const std::string name = word + "/" + At(2).text;
    pos_ += 3;
    return tree_.New(Kind::kSymbol, name, {});
  }
  if (AllUpper(word) && word.size() > 1) {
    Next();
    return ParseSymbol(word);  // AB, ABC: a segment, a triangle
  }
  // "xy" is x times y: the rest of the run stays for the next factor.
  const std::string name = TakeCharacter();
  const bool subscript = IsChar('_') && word.size() == 1;
  if (!subscript && name == "e") return tree_.New(Kind::kConstant, "e", {});
  if (!subscript && name == "i") return tree_.New(Kind::kConstant, "i", {});
  if (word.size() > 1) return tree_.New(Kind::kSymbol, name, {});
  const Ref symbol = ParseSymbol(name);
  if (symbol != kNoRef && tree_.Is(symbol, Kind::kSymbol) && IsChar('(')) {
    const Ref call = ParseCall(tree_[symbol].text);
    if (call != kNoRef || failed_) return call;
  }
  return symbol;
}

// Where the upper number of {}_7C_2, ^7C_2, {}_{n}P_{k} stands; 0 for anything else. `braced`: 1 when it has braces.
size_t Parser::ChooseAt(size_t& braced) const {
  const size_t open = IsChar('{') && IsChar('}', 1) ? 2 : 0;
  if (!IsChar('_', open) && !IsChar('^', open)) return 0;
  braced = IsChar('{', open + 1) ? 1 : 0;
  const size_t at = open + 1 + braced;
  const bool one = IsInteger(at) || (At(at).kind == Tok::kWord && At(at).text.size() == 1);
  const size_t letter = at + 1 + braced;
  if (!one || (braced == 1 && !IsChar('}', at + 1)) || At(letter).kind != Tok::kWord) return 0;
  const std::string& kind = At(letter).text;
  return (kind == "C" || kind == "P") && IsChar('_', letter + 1) ? at : 0;
}

// Braces around nothing say nothing in front of and behind an operand ("5{}", "\pi{}"); they are no operand.
void Parser::SkipEmptyGroups() {
  size_t braced = 0;
  while (IsChar('{') && IsChar('}', 1) && ChooseAt(braced) == 0) pos_ += 2;
}

// kNoRef, with nothing read, for anything but the forms of ChooseAt.
Ref Parser::ParseChoose() {
  size_t braced = 0;
  const size_t at = ChooseAt(braced);
  if (at == 0) return kNoRef;
  const std::string kind = At(at + 1 + braced).text;
  pos_ += at;
  const Ref n = ParseArgument(true);
  pos_ += braced + 2;
  const Ref k = ParseScript();
  if (n == kNoRef || k == kNoRef) return failed_ ? kNoRef : Fail("choice");
  if (kind == "C") return tree_.New(Kind::kFunction, "binom", {n, k});
  return tree_.Div(tree_.New(Kind::kFunction, "fact", {n}), tree_.New(Kind::kFunction, "fact", {tree_.Sub(n, k)}));
}

// P(A \cup B), P(X > 3), P(A|B): one name, whatever is written of the event.
// With `any`, E[X] too.
Ref Parser::ParseEvent(std::string name, bool any) {
  int depth = 0;
  bool event = any;
  size_t ahead = 0;
  for (;; ++ahead) {
    const Token& token = At(ahead);
    if (token.kind == Tok::kEnd || ahead > 60) return kNoRef;
    name += token.text;
    const bool mark = token.kind == Tok::kChar && string_view("|=<>").find(token.text[0]) != string_view::npos;
    const bool command = token.kind == Tok::kCommand &&
                         (token.text == "cup" || token.text == "cap" || token.text == "mid" || token.text == "leq" ||
                          token.text == "geq" || token.text == "le" || token.text == "ge" || token.text == "vert");
    event = event || mark || command || token.kind == Tok::kText;
    depth += IsChar('(', ahead) || IsChar('[', ahead) ? 1 : IsChar(')', ahead) || IsChar(']', ahead) ? -1 : 0;
    if (depth == 0) break;
  }
  if (!event) return kNoRef;
  pos_ += ahead + 1;
  return tree_.New(Kind::kSymbol, std::move(name), {});
}

Ref Parser::ParseCharPrimary() {
  if (const Ref choose = ParseChoose(); choose != kNoRef || failed_) return choose;
  switch (At().text[0]) {
    case '(':
      UnwrapBaseNumber();
      if (AtBaseNumber()) return ParseBaseNumber();
      return ParseBracket();
    case '[':
    case ']':
      return ParseBracket();
    case '{':
      return ParseGroup();
    case '|':
      return ParseBars();
    case '.':
      if (IsCommand("overline", 1) || IsCommand("dot", 1)) {
        Next();
        return ParseRepeating("0.");
      }
      return Fail("point");
    case '?':
      Next();
      return tree_.New(Kind::kSymbol, "?", {});
    default:
      return Fail("no operand");
  }
}

Ref Parser::ParseBracket() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  const char open = At().kind == Tok::kCommand ? '<' : At().text[0];
  Next();
  if (IsChar(',')) return Fail("an empty element");
  const bool bar = std::exchange(bar_stops_, false);
  const bool colon = std::exchange(colon_stops_, false);
  const bool reversed = std::exchange(reversed_, open == ']');
  const int bars = std::exchange(bars_, 0);
  const Ref inside = ParseList(false);
  bar_stops_ = bar;
  colon_stops_ = colon;
  reversed_ = reversed;
  bars_ = bars;
  if (failed_) return kNoRef;
  char close = '\0';
  if (IsChar(')') || IsChar(']')) close = At().text[0];
  if ((open == ']' || open == '[') && IsChar('[')) close = '[';
  if (open == '<' && (IsCommand("rangle") || IsChar('>'))) close = '>';
  if (close == '\0') return Fail("unclosed bracket");
  Next();
  if (inside == kNoRef) return tree_.New(Kind::kBracket, {open, close}, {});
  // A single element in plain brackets is a group.
  if (!tree_.Is(inside, Kind::kList)) {
    if (open == '<') return tree_.New(Kind::kBracket, "<>", {inside});
    return inside;
  }
  std::vector<Ref> kids = tree_[inside].kids;
  if (kids.size() > kMaxElements) return Fail("too many elements");
  if (tree_[inside].text == "or" || tree_[inside].text == "and") return inside;
  // French style: ]a, b] and [a, b[ are half open.
  if (close == '[') close = ')';
  const char shown = open == ']' ? '(' : open;
  return tree_.New(Kind::kBracket, {shown, close}, std::move(kids));
}

Ref Parser::ParseGroup() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  Next();
  if (IsChar('}')) return Fail("an empty group");
  const int bars = std::exchange(bars_, 0);
  const Ref inside = ParseList(false);
  bars_ = bars;
  if (inside == kNoRef) return failed_ ? kNoRef : Fail("group");
  if (!IsChar('}')) return Fail("unclosed brace");
  Next();
  return inside;
}

Ref Parser::ParseSet() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  Next();
  const auto closes = [&] { return IsCommand("}") || IsCommand("rbrace") || IsChar('}'); };
  if (closes()) {
    Next();
    return tree_.New(Kind::kSet, "", {});
  }
  const bool bar = std::exchange(bar_stops_, true);
  const bool colon = std::exchange(colon_stops_, true);
  const int bars = std::exchange(bars_, 0);
  const Ref inside = ParseList(false);
  Ref condition = kNoRef;
  const bool builder = !failed_ && (IsChar('|') || IsCommand("mid") || IsChar(':') || IsCommand("colon"));
  if (builder) {
    Next();
    bar_stops_ = false;
    condition = ParseList(false);
  }
  bar_stops_ = bar;
  colon_stops_ = colon;
  bars_ = bars;
  if (inside == kNoRef || (builder && condition == kNoRef)) return failed_ ? kNoRef : Fail("set");
  if (!closes()) return Fail("unclosed set");
  Next();
  if (builder) return tree_.New(Kind::kSetBuilder, "", {inside, condition});
  std::vector<Ref> kids = {inside};
  if (tree_.Is(inside, Kind::kList)) kids = tree_[inside].kids;
  if (kids.size() > kMaxElements) return Fail("too many elements");
  return tree_.New(Kind::kSet, "", std::move(kids));
}

Ref Parser::ParseDelimited(string_view close, std::string function) {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  Next();
  const bool same = close == "|" || close == "Vert";  // opens and closes alike
  bars_ += same ? 1 : 0;
  const Ref inside = ParseList(false);
  bars_ -= same ? 1 : 0;
  if (inside == kNoRef) return failed_ ? kNoRef : Fail("operand");
  if (!IsCommand(close)) return Fail("unclosed delimiter");
  Next();
  return tree_.New(Kind::kFunction, std::move(function), {inside});
}

Ref Parser::ParseBars() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  Next();
  ++bars_;
  const bool bar = std::exchange(bar_stops_, false);
  const Ref inside = ParseSetExpression();
  bar_stops_ = bar;
  --bars_;
  if (inside == kNoRef) return failed_ ? kNoRef : Fail("operand");
  if (!IsChar('|') && !IsCommand("vert")) return Fail("unclosed bar");
  Next();
  return tree_.New(Kind::kFunction, "abs", {inside});
}

// align and its kin: "&" says nothing, and a row that begins with a relation goes on with the row before it.
void Parser::JoinAlignedRows() {
  int nested = 0;
  for (size_t i = pos_; i + 1 < tokens_.size() && nested >= 0; ++i) {
    if (tokens_[i].kind == Tok::kBegin) ++nested;
    if (tokens_[i].kind == Tok::kEndEnv) --nested;
    if (nested != 0) continue;
    const bool ampersand = tokens_[i].kind == Tok::kChar && tokens_[i].text == "&";
    size_t next = i + 1;
    if (tokens_[next].kind == Tok::kChar && tokens_[next].text == "&") ++next;
    size_t length = 0;
    const size_t here = std::exchange(pos_, next);
    const bool goes_on = tokens_[i].kind == Tok::kNewRow && RelationMark(length) != '\0';
    pos_ = here;
    if (!ampersand && !goes_on) continue;
    tokens_.erase(tokens_.begin() + static_cast<ptrdiff_t>(i));
    --i;
  }
}

// "x & = & 2": a column of relations makes the rows statements. Looks at the first row.
bool Parser::HasRelationColumn() {
  const size_t here = pos_;
  bool found = false;
  for (size_t i = here; i + 2 < tokens_.size() && !found; ++i) {
    const Tok kind = tokens_[i].kind;
    if (kind == Tok::kNewRow || kind == Tok::kEndEnv || kind == Tok::kBegin) break;
    if (kind != Tok::kChar || tokens_[i].text != "&") continue;
    pos_ = i + 1;
    size_t length = 0;
    found = RelationMark(length) != '\0' && IsChar('&', length);
  }
  pos_ = here;
  return found;
}

Ref Parser::ParseMatrix() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  const std::string name = At().text;
  Next();
  if (name.starts_with("align") || name.starts_with("gather") || name == "split" || name.starts_with("eqnarray") ||
      HasRelationColumn()) {
    JoinAlignedRows();
  }
  std::vector<Ref> elements;
  std::vector<Ref> row;
  size_t columns = 0;
  int32_t rows = 0;
  const auto finish_row = [&] {
    if (row.empty()) return true;
    if (rows > 0 && row.size() != columns) return false;
    columns = row.size();
    elements.insert(elements.end(), row.begin(), row.end());
    row.clear();
    ++rows;
    return elements.size() <= kMaxElements;
  };
  while (!failed_ && At().kind != Tok::kEndEnv) {
    if (At().kind == Tok::kEnd) return Fail("unclosed environment");
    if (IsCommand("hline") || IsChar('&')) {
      Next();
      continue;
    }
    if (At().kind == Tok::kNewRow) {
      Next();
      if (!finish_row()) return Fail("uneven rows");
      continue;
    }
    const Ref element = ParseList(false);
    if (element == kNoRef) return failed_ ? kNoRef : Fail("element");
    row.push_back(element);
    if (IsChar('.') && (At(1).kind == Tok::kNewRow || At(1).kind == Tok::kEndEnv)) Next();
    if (!IsChar('&') && At().kind != Tok::kNewRow && At().kind != Tok::kEndEnv) return Fail("element");
  }
  if (failed_ || !finish_row()) return failed_ ? kNoRef : Fail("uneven rows");
  Next();
  if (elements.empty()) return Fail("an empty environment");
  const bool matrix = name.find("matrix") != std::string::npos || name == "array" || name == "tabular";
  if (!matrix) {
    // cases, align, equation: rows of statements; one cell is itself.
    if (elements.size() == 1) return elements[0];
    if (name.ends_with("cases")) return tree_.Matrix("cases", rows, std::move(elements));
    return tree_.New(Kind::kList, ",", std::move(elements));
  }
  const std::string delimiter = name == "vmatrix" ? "v" : name == "Vmatrix" ? "V" : "p";
  return tree_.Matrix(delimiter, rows, std::move(elements));
}

}  // namespace iha::scoring::math
