#include <algorithm>

#include "benchmarks/scoring/math/parser_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kMaxTokens = 6000;
constexpr size_t kMaxMembers = 64;  // of one chain of relations

struct RelationName {
  string_view name;
  char mark;
};
constexpr RelationName kRelations[] = {{"le", 'l'},
                                       {"leq", 'l'},
                                       {"leqslant", 'l'},
                                       {"leqq", 'l'},
                                       {"ge", 'g'},
                                       {"geq", 'g'},
                                       {"geqslant", 'g'},
                                       {"geqq", 'g'},
                                       {"lt", '<'},
                                       {"gt", '>'},
                                       {"ne", '!'},
                                       {"neq", '!'},
                                       {"approx", '~'},
                                       {"approxeq", '~'},
                                       {"simeq", '~'},
                                       {"thickapprox", '~'},
                                       {"doteq", '='},
                                       {"coloneqq", '='},
                                       {"in", 'e'},
                                       {"notin", 'n'},
                                       {"equiv", '%'},
                                       {"subset", 's'},
                                       {"subseteq", 's'},
                                       {"to", 't'},
                                       {"rightarrow", 't'},
                                       {"mapsto", 't'},
                                       {"longrightarrow", 't'},
                                       {"implies", 'i'},
                                       {"Rightarrow", 'i'},
                                       {"Longrightarrow", 'i'},
                                       {"iff", 'f'},
                                       {"Leftrightarrow", 'f'},
                                       {"parallel", 'p'},
                                       {"perp", 'q'},
                                       {"cong", 'c'},
                                       {"sim", 'S'},
                                       {"propto", 'P'},
                                       {"mid", '|'}};

}  // namespace

bool IsProseWord(string_view word) {
  if (word.size() < 4 || PlainCommand(LowerAscii(word)).has_value()) return false;
  const bool inner_upper = std::any_of(word.begin() + 1, word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (inner_upper || std::is_sorted(word.begin(), word.end())) return false;
  return LowerAscii(word).find_first_of("aeiouy") != string_view::npos;
}

Parser::Parser(Tree& tree, TokenList list, Commas commas)
    : tree_(tree), tokens_(std::move(list.tokens)), complete_(list.complete), commas_(commas) {
  for (Token& token : tokens_) {
    if (token.kind == Tok::kWord && (IsProseWord(token.text) || MultiplierOf(LowerAscii(token.text)).has_value())) {
      token.kind = Tok::kText;
    }
  }
  // "3 und 4", "3 y 4": other languages' connectives between blanks; a single letter only between numbers.
  for (size_t i = 1; i + 1 < tokens_.size(); ++i) {
    Token& token = tokens_[i];
    const bool apart = token.gap >= Gap::kWide && tokens_[i + 1].gap >= Gap::kWide;
    if (token.kind != Tok::kWord || !apart || !IsConnective(LowerAscii(token.text))) continue;
    const bool numbers = tokens_[i - 1].kind == Tok::kNumber && tokens_[i + 1].kind == Tok::kNumber;
    if (token.text.size() > 1 || numbers) token.kind = Tok::kText;
  }
  ReadPlainWords();
  // A point or comma at the end belongs to the sentence around the answer.
  while (tokens_.size() > 1) {
    const Token& last = tokens_[tokens_.size() - 2];
    if (last.kind != Tok::kChar || (last.text != "." && last.text != "," && last.text != ";" && last.text != ":"))
      break;
    tokens_.erase(tokens_.end() - 2);
  }
}

// Words that mean more than their letters: "45 min" is no minimum, "sinx" a function, "x in [0,1]" a relation.
void Parser::ReadPlainWords() {
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    Token& token = tokens_[i];
    if (token.kind != Tok::kWord && token.kind != Tok::kText) continue;
    const Token& next = tokens_[i + 1];
    const bool opens = next.kind == Tok::kChar && string_view("([{_").find(next.text[0]) != string_view::npos;
    const bool set = opens || (next.kind == Tok::kCommand && (next.text == "{" || next.text == "mathbb"));
    // "3 \\text{ out of } 5", "3 \\text{ to } 2", "5 choose 2", "5C2"
    if (i > 0 && tokens_[i - 1].kind == Tok::kNumber && next.kind == Tok::kNumber) {
      if (token.text == "out of") token = {Tok::kChar, token.gap, "/"};
      if (token.text == "to") token.kind = Tok::kWord;
      const bool base = i + 2 < tokens_.size() && tokens_[i + 2].text == "_";
      const bool glued = !base && token.text == "C" && token.gap == Gap::kNone && next.gap == Gap::kNone;
      if (token.text == "choose" || glued) token = {Tok::kCommand, token.gap, "choose"};
    }
    if (token.text == "min" && i > 0 && tokens_[i - 1].kind == Tok::kNumber && !set) token.kind = Tok::kText;
    if (token.text == "in" && i > 0 && tokens_[i - 1].kind == Tok::kWord && tokens_[i - 1].text.size() == 1 && set) {
      token.kind = Tok::kCommand;
    }
    const string_view name = string_view(token.text).substr(0, token.text.size() - 1);
    const char letter = token.text.back();
    if (letter >= 'x' && letter <= 'z' && name.size() >= 2 && IsFunctionName(name)) {
      const Token argument{Tok::kWord, Gap::kNone, std::string(1, letter)};
      token.kind = Tok::kWord;
      token.text.pop_back();
      tokens_.insert(tokens_.begin() + static_cast<ptrdiff_t>(i) + 1, argument);
    }
  }
}

const Token& Parser::At(size_t ahead) const { return tokens_[std::min(pos_ + ahead, tokens_.size() - 1)]; }

bool Parser::IsChar(char c, size_t ahead) const { return At(ahead).kind == Tok::kChar && At(ahead).text[0] == c; }

bool Parser::IsCommand(string_view name, size_t ahead) const {
  return At(ahead).kind == Tok::kCommand && At(ahead).text == name;
}

bool Parser::IsInteger(size_t ahead) const {
  return IsNumber(ahead) && At(ahead).text.find_first_not_of("0123456789") == std::string::npos;
}

std::string Parser::TakeCharacter() {
  std::string first = At().text.substr(0, 1);
  if (At().text.size() == 1) {
    Next();
  } else {
    tokens_[pos_].text.erase(0, 1);
    tokens_[pos_].gap = Gap::kNone;
  }
  return first;
}

Ref Parser::Fail(string_view what) {
  if (!failed_) {
    failed_ = true;
    out_.error = std::string(what);
    if (At().kind != Tok::kEnd) out_.error += " before '" + At().text.substr(0, 20) + "'";
  }
  return kNoRef;
}

Parsed Parser::Run() {
  if (!complete_) {
    Fail("more tokens than are read");
    return out_;
  }
  const Ref root = ParseList(true);
  if (!failed_ && At().kind != Tok::kEnd) Fail("not read to the end");
  if (!failed_ && root == kNoRef) Fail(tree_.full() ? "more nodes than the budget" : "empty");
  out_.root = failed_ ? kNoRef : root;
  out_.ok = !failed_;
  return out_;
}

bool Parser::Done() const {
  const Token& token = At();
  if (token.kind == Tok::kEnd || token.kind == Tok::kEndEnv || token.kind == Tok::kNewRow) return true;
  if (token.kind == Tok::kChar) return string_view(")]}&").find(token.text[0]) != string_view::npos;
  if (token.kind == Tok::kCommand) {
    return token.text == "}" || token.text == "rangle" || token.text == "rfloor" || token.text == "rceil" ||
           token.text == "rvert" || token.text == "rbrace" || token.text == "rVert";
  }
  return false;
}

bool Parser::AtSeparatorWord(size_t ahead) const {
  const Token& token = At(ahead);
  if (token.kind == Tok::kText) return IsConnective(LowerAscii(token.text));
  if (token.kind == Tok::kWord) return token.text == "and" || token.text == "or";
  if (token.kind == Tok::kOther) return IsConnective(token.text);
  return token.kind == Tok::kCommand && (token.text == "land" || token.text == "lor" || token.text == "wedge" ||
                                         token.text == "vee" || token.text == "&");
}

// One or more marks between two items; `mark` is the strongest: ';' before 'o' (or), 'a' (and), ','.
bool Parser::TakeSeparator(char& mark, bool top) {
  bool any = false;
  mark = ',';
  for (;; any = true) {
    const bool quad = top && At().gap == Gap::kQuad && !Done() && !IsChar(',') && !IsChar(';') && !AtSeparatorWord();
    if (IsChar(',')) {
      Next();
    } else if (IsChar(';')) {
      mark = ';';
      Next();
    } else if (AtSeparatorWord()) {
      const std::string word = LowerAscii(At().text);
      if (mark != ';') mark = IsOrWord(word) || word == "lor" || word == "vee" ? 'o' : 'a';
      Next();
    } else if (quad && !any) {
      return true;
    } else {
      return any;
    }
  }
}

Ref Parser::PackItems(std::vector<Ref> items, std::string mark) {
  if (items.empty()) return kNoRef;
  if (items.size() == 1) return items[0];
  std::vector<Ref> flat;
  for (const Ref item : items) {
    // {1,3} inside a list is not a list of its own.
    if (tree_.Is(item, Kind::kList)) {
      const std::vector<Ref> inner = tree_[item].kids;
      flat.insert(flat.end(), inner.begin(), inner.end());
    } else {
      flat.push_back(item);
    }
  }
  return tree_.New(Kind::kList, std::move(mark), std::move(flat));
}

Ref Parser::PackGroups(std::vector<Ref> groups) {
  // "1;2;3" is a plain list; "p=5,q=2;p=7,q=2" a list of groups.
  const bool plain = std::none_of(groups.begin(), groups.end(), [&](Ref g) { return tree_.Is(g, Kind::kList); });
  return tree_.New(Kind::kList, plain ? "," : ";", std::move(groups));
}

Ref Parser::ParseList(bool top) {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  std::vector<Ref> groups;
  std::vector<Ref> items;
  std::string mark = ",";
  char separator = ',';
  if (AtSeparatorWord()) return Fail("a connective without a left side");
  // "]0,1[" opens with what closes elsewhere.
  const bool reversed = top && IsChar(']');
  while ((!Done() || (reversed && items.empty() && groups.empty())) && !failed_) {
    if (bar_stops_ && (IsChar('|') || IsCommand("mid") || IsChar(':')) && !items.empty()) break;
    const Ref item = ParseItem();
    if (item == kNoRef) return failed_ ? kNoRef : Fail("item");
    items.push_back(item);
    if (!TakeSeparator(separator, top)) break;
    if (separator == ';') {
      groups.push_back(PackItems(std::move(items), mark));
      items.clear();
    } else if (separator != ',') {
      mark = separator == 'o' ? "or" : "and";
    }
  }
  if (failed_) return kNoRef;
  if (groups.empty()) return PackItems(std::move(items), mark);
  if (!items.empty()) groups.push_back(PackItems(std::move(items), mark));
  if (groups.size() == 1) return groups[0];
  return PackGroups(std::move(groups));
}

char Parser::RelationMark(size_t& tokens) const {
  tokens = 1;
  const Token& token = At();
  if (token.kind == Tok::kCommand) {
    if (token.text == "not") {
      tokens = 2;
      if (IsChar('=', 1)) return '!';
      return IsCommand("in", 1) ? 'n' : '\0';
    }
    for (const auto& [name, mark] : kRelations) {
      if (token.text == name) return bar_stops_ && mark == '|' ? '\0' : mark;
    }
    return '\0';
  }
  if (token.kind != Tok::kChar) return '\0';
  const bool equals = IsChar('=', 1);
  tokens = equals ? 2 : 1;
  switch (token.text[0]) {
    case '=':
      return '=';
    case '<':
      return equals ? 'l' : '<';
    case '>':
      return equals ? 'g' : '>';
    case '!':
    case ':':
      return equals ? (token.text[0] == '!' ? '!' : '=') : '\0';
    default:
      return '\0';
  }
}

// "approximately 5": words in front of a number say nothing about it.
void Parser::SkipLeadingText() {
  if (At().kind == Tok::kWord && IsCurrencyCode(At().text)) {
    if (IsNumber(1)) Next();
    if (IsChar('.', 1) && IsNumber(2)) pos_ += 2;  // "Rs. 500"
  }
  // "in 1995", "the year 1995"
  if (pos_ == 0 && At().kind == Tok::kWord && At().text == "in" && IsNumber(1)) Next();
  // "if x > 0", "Domain: [0, 1)"
  if (At().kind == Tok::kText && At(1).kind != Tok::kEnd) {
    const std::string word = LowerAscii(At().text);
    if (word == "if" || word == "for" || word == "when" || word == "where" || word.ends_with(':')) Next();
  }
  // "Therefore, x = 5", "so x = 5"
  if (At().kind == Tok::kText && At(1).kind != Tok::kEnd) {
    const std::string word = LowerAscii(At().text);
    for (const string_view link : {"so", "thus", "hence", "therefore", "then"}) {
      if (word == link) pos_ += IsChar(',', 1) ? 2 : 1;
    }
  }
  size_t ahead = 0;
  while (At(ahead).kind == Tok::kText && !IsConnective(LowerAscii(At(ahead).text))) ++ahead;
  if (ahead == 0) return;
  const std::string last = LowerAscii(At(ahead - 1).text);
  const bool states = last.ends_with(" is") || last.ends_with(" are");  // "the minimum is -3"
  if (last == "not") {
    Fail("what it is not");
  } else if (IsNumber(ahead) || IsCommand("$", ahead) || IsCommand("frac", ahead) || IsCommand("sqrt", ahead) ||
             (states && At(ahead).kind != Tok::kEnd)) {
    pos_ += ahead;
  }
}

// Behind \in: "{1, 2}" without backslashes, and the sets of numbers in other letters than \mathbb. kNoRef, with nothing
// read, for anything else.
Ref Parser::ParseMembers() {
  if (IsChar('{') && IsPointBehind()) return ParseSet();
  const bool letter = At().kind == Tok::kWord && At().text.size() == 1 &&
                      string_view("RQZNC").find(At().text[0]) != string_view::npos && !IsChar('(', 1);
  return letter ? ParseBlackboard() : kNoRef;
}

Ref Parser::ParseItem() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  SkipLeadingText();
  size_t tokens = 0;
  char mark = RelationMark(tokens);
  const bool leads = mark == '=';
  std::vector<Ref> members;
  std::string marks;
  if (mark != '\0') {
    // "= 5", "\approx 5" and "\sim 5" are 5; "> 5" is a relation of what was asked.
    if (mark != '=' && mark != '~' && mark != 'S') {
      members.push_back(tree_.New(Kind::kSymbol, "?", {}));
      marks += mark;
    }
    pos_ += tokens;
  }
  while (!failed_) {
    Ref member = (mark == 'e' || mark == 'n') ? ParseMembers() : kNoRef;
    if (member == kNoRef && !failed_) member = ParseSetExpression();
    if (member != kNoRef) member = ParseModulus(member);
    if (member == kNoRef) return failed_ ? kNoRef : Fail("operand");
    members.push_back(member);
    mark = RelationMark(tokens);
    if (mark == '\0') break;
    if (members.size() >= kMaxMembers) return Fail("chain too long");
    pos_ += tokens;
    if (Done()) break;  // "x =": what is missing makes no relation
    marks += mark;
  }
  if (failed_) return kNoRef;
  if (members.size() == 1) return members[0];
  if (leads && marks[0] == '=') {  // "= \pi r^2 = 9\pi": of what was asked
    members.insert(members.begin(), tree_.New(Kind::kSymbol, "?", {}));
    marks.insert(0, "=");
  }
  return tree_.New(Kind::kRelation, std::move(marks), std::move(members));
}

Ref Parser::ParseModulus(Ref value) {
  if (!IsCommand("pmod") && !IsCommand("mod") && !IsCommand("bmod")) {
    const bool parenthesised = IsChar('(') && (IsCommand("mod", 1) || IsCommand("bmod", 1) ||
                                               (At(1).kind == Tok::kWord && At(1).text == "mod"));
    const bool word = At().kind == Tok::kWord && At().text == "mod";
    if (!parenthesised && !word) return value;
    Next();
    if (parenthesised) Next();
    const Ref modulus = ParseAdditive();
    if (modulus == kNoRef) return Fail("modulus");
    if (parenthesised) {
      if (!IsChar(')')) return Fail("unclosed modulus");
      Next();
    }
    return tree_.New(Kind::kMod, "", {value, modulus});
  }
  Next();
  const Ref modulus = IsChar('{') ? ParseGroup() : ParseAdditive();
  if (modulus == kNoRef) return Fail("modulus");
  return tree_.New(Kind::kMod, "", {value, modulus});
}

Ref Parser::ParseSetExpression() {
  Ref left = ParseRatio();
  while (left != kNoRef && !failed_) {
    Kind kind = Kind::kNone;
    if (IsCommand("cup") || IsCommand("bigcup")) kind = Kind::kUnion;
    if (IsCommand("cap") || IsCommand("bigcap")) kind = Kind::kIntersect;
    if (IsCommand("setminus") || IsCommand("backslash") || IsCommand("smallsetminus")) kind = Kind::kMinus;
    // "(-oo, 1) U (2, oo)": U between brackets.
    const bool letter = At().kind == Tok::kWord && (At().text == "U" || At().text == "u" || At().text == "union");
    if (letter && MultiElement(left)) kind = Kind::kUnion;
    const bool minus =
        IsChar('-') && (tree_.Is(left, Kind::kNamedSet) || tree_.Is(left, Kind::kBracket)) && IsCommand("{", 1);
    if (minus) kind = Kind::kMinus;
    if (kind == Kind::kNone) break;
    Next();
    const Ref right = ParseRatio();
    if (right == kNoRef) return Fail("operand of a set");
    if (kind != Kind::kMinus && tree_.Is(left, kind)) {
      std::vector<Ref> kids = tree_[left].kids;
      kids.push_back(right);
      left = tree_.New(kind, "", std::move(kids));
    } else {
      left = tree_.New(kind, "", {left, right});
    }
  }
  return left;
}

Ref Parser::ParseRatio() {
  const size_t begin = pos_;
  Ref left = ParseAdditive();
  // "3 to 2" between numbers.
  const bool to =
      left != kNoRef && tree_.Is(left, Kind::kNumber) && At().kind == Tok::kWord && At().text == "to" && IsNumber(1);
  if (to) {
    Next();
    const Ref right = ParseAdditive();
    return right == kNoRef ? Fail("ratio") : tree_.New(Kind::kRatio, "", {left, right});
  }
  if (left == kNoRef || colon_stops_ || !(IsChar(':') || IsCommand("colon")) || IsChar('=', 1)) return left;
  std::vector<Ref> parts = {left};
  bool clock = pos_ == begin + 1 && tokens_[begin].text.size() <= 2 && IsInteger(1) && At(1).text.size() == 2;
  while ((IsChar(':') || IsCommand("colon")) && !failed_) {
    Next();
    const Ref right = ParseAdditive();
    if (right == kNoRef) return Fail("ratio");
    parts.push_back(right);
  }
  clock = clock && parts.size() == 2 && tree_.Is(parts[1], Kind::kNumber) && tree_[parts[1]].value < Rational(60);
  return tree_.New(Kind::kRatio, clock ? "h:m" : "", std::move(parts));
}

Parsed ParseAnswer(Tree& tree, string_view cleaned, Commas commas) {
  return Parser(tree, Tokenize(cleaned, kMaxTokens), commas).Run();
}

}  // namespace iha::scoring::math
