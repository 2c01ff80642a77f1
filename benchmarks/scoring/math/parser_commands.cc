#include <algorithm>

#include "benchmarks/scoring/math/parser_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

bool Among(string_view word, std::initializer_list<string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Ref ReplaceUnit(Tree& tree, Ref ref, Ref by) {
  if (ref == kNoRef || by == kNoRef) return kNoRef;
  if (tree.IsConstant(ref, "i")) return by;
  if (tree[ref].kids.empty()) return ref;
  std::vector<Ref> kids = tree[ref].kids;
  for (Ref& kid : kids) kid = ReplaceUnit(tree, kid, by);
  return tree.WithKids(ref, std::move(kids));
}

// Functions of a parenthesised list.
bool TakesList(string_view name) { return Among(name, {"gcd", "lcm", "max", "min", "binom", "floor", "ceil", "abs"}); }

}  // namespace

Ref Parser::ParseCommand() {
  const std::string name = At().text;
  Next();
  return ParseCommandNamed(name);
}

// The command's own token has been read.
Ref Parser::ParseCommandNamed(const std::string& name) {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  const auto back = [&] {
    --pos_;
    return kNoRef;
  };
  if (Among(name, {"frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac", "flatfrac"})) return ParseFraction();
  if (Among(name, {"binom", "dbinom", "tbinom"})) {
    if (IsChar('(')) return ParseFunction("binom");
    const Ref n = ParseArgument(false);
    const Ref k = n == kNoRef ? kNoRef : ParseArgument(false);
    return k == kNoRef ? Fail("binomial") : tree_.New(Kind::kFunction, "binom", {n, k});
  }
  if (name == "sqrt" || name == "cbrt") {
    if (name == "sqrt") return ParseRoot();
    const Ref inside = ParseArgument(true);
    return inside == kNoRef ? Fail("root") : tree_.Pow(inside, tree_.Number(Rational(1, 3)));
  }
  if (name == "pi") return tree_.New(Kind::kConstant, "pi", {});
  if (name == "infty") return tree_.New(Kind::kConstant, "inf", {});
  if (name == "emptyset" || name == "varnothing") return tree_.New(Kind::kSet, "", {});
  if (name == "mathbb" || name == "Bbb") return ParseBlackboard();
  if (Among(name, {"R", "Q", "Z", "N", "C"})) {
    --pos_;
    tokens_[pos_].kind = Tok::kWord;
    return ParseBlackboard();
  }
  if (Among(name, {"dots", "ldots", "cdots", "vdots", "ddots", "dotsc"})) return tree_.New(Kind::kDots, "", {});
  if (name == "{" || name == "lbrace") return back(), ParseSet();
  if (name == "langle") return back(), ParseBracket();
  if (name == "lfloor") return back(), ParseDelimited("rfloor", "floor");
  if (name == "lceil") return back(), ParseDelimited("rceil", "ceil");
  for (const string_view other : {"tg", "ctg", "arctg", "arcctg"}) {
    if (name == other) return ParseFunction(std::string(*PlainCommand(other)));
  }
  if (name == "lvert") return back(), ParseDelimited("rvert", "abs");
  if (name == "lVert") return back(), ParseDelimited("rVert", "norm");
  if (name == "|" || name == "Vert") return back(), ParseDelimited(name, "norm");
  if (name == "vert") return back(), ParseBars();
  if (Among(name, {"sum", "prod", "int", "iint", "oint", "lim", "limsup", "liminf"})) return ParseBig(name);
  if (IsFunctionName(name)) return ParseFunction(name);
  if (Among(name, {"angle", "measuredangle", "triangle", "square", "odot", "arc", "Box"})) return ParseNamed(name);
  if (Among(name,
            {"overline", "bar", "hat", "widehat", "vec", "overrightarrow", "overleftrightarrow", "tilde", "widetilde",
             "dot", "ddot", "overset", "underset", "mathcal", "mathfrak", "mathscr", "overarc", "wideparen"})) {
    return ParseDecorated(name);
  }
  if (Among(name, {"boxed", "fbox", "underbrace", "overbrace", "cancel", "framebox", "mathord", "mathbin", "mathrel",
                   "substack", "smash", "vphantom"})) {
    const Ref inside = ParseArgument(true);
    if (inside == kNoRef) return failed_ ? kNoRef : Fail("group");
    if (name.ends_with("brace") && (IsChar('_') || IsChar('^'))) {
      Next();
      if (ParseScript() == kNoRef) return kNoRef;
    }
    return inside;
  }
  if (!IsAsciiLetter(name[0])) return Fail("a mark that is no operand");
  // Greek letters and whatever else is named: symbols.
  const Ref symbol = ParseSymbol(name);
  return symbol;
}

// What a command takes: a group, or one digit, letter or command. A digit splits its number unless `whole_number`.
Ref Parser::ParseArgument(bool whole_number) {
  if (IsChar('{')) return ParseGroup();
  if (IsNumber()) {
    if (whole_number) {
      const auto value = Rational::ParseDecimal(At().text);
      if (!value.has_value()) return Fail("number too long");
      const size_t dot = At().text.find('.');
      const auto places = dot == std::string::npos ? -1 : static_cast<int32_t>(At().text.size() - dot - 1);
      Next();
      return places < 0 ? tree_.Number(*value) : tree_.Literal(*value, places, -places);
    }
    const char digit = At().text[0];
    if (!IsAsciiDigit(digit)) return Fail("argument");
    TakeCharacter();
    return tree_.Number(Rational(digit - '0'));
  }
  if (At().kind == Tok::kWord) {
    const std::string word = At().text;
    // "\frac lg" is l over g.
    const bool letters = !whole_number && word.size() == 2 && word != "pi";
    if (word.size() > 1 && !letters && PlainCommand(word).has_value()) return ParseWord();
    const std::string name = TakeCharacter();
    if (name == "e" || name == "i") return tree_.New(Kind::kConstant, name, {});
    return tree_.New(Kind::kSymbol, name, {});
  }
  if (At().kind == Tok::kCommand) return ParseCommand();
  if (At().kind == Tok::kText) {
    const std::string text = LowerAscii(At().text);
    Next();
    return tree_.New(Kind::kText, text, {});
  }
  if (IsChar('(') || IsChar('|')) return ParseCharPrimary();
  return Fail("argument");
}

// \frac{dy}{dx}, \frac{d}{dx}, \frac{d^2y}{dx^2}, \frac{\partial f}{\partial x}: one name. kNoRef, with nothing read,
// for anything else.
Ref Parser::ParseDerivative() {
  std::string parts[2];
  size_t ahead = 0;
  for (std::string& part : parts) {
    if (!IsChar('{', ahead)) return kNoRef;
    for (++ahead; !IsChar('}', ahead); ++ahead) {
      // "d^{2}y"
      if (IsChar('^', ahead) && IsChar('{', ahead + 1) && IsInteger(ahead + 2) && IsChar('}', ahead + 3)) {
        part += "^" + At(ahead + 2).text;
        ahead += 3;
        continue;
      }
      const Token& token = At(ahead);
      const bool partial = token.kind == Tok::kCommand && token.text == "partial";
      const bool power = IsChar('^', ahead) || IsInteger(ahead);
      if ((token.kind != Tok::kWord && !partial && !power) || part.size() > 20) return kNoRef;
      part += partial ? "d" : token.text;
    }
    ++ahead;
  }
  const bool top = parts[0].starts_with("d") && parts[0].size() <= 5;
  const bool bottom = parts[1].size() >= 2 && parts[1].size() <= 4 && parts[1][0] == 'd' && IsAsciiLetter(parts[1][1]);
  if (!top || !bottom || (parts[0].size() > 1 && IsAsciiDigit(parts[0][1]))) return kNoRef;
  pos_ += ahead;
  return tree_.New(Kind::kSymbol, parts[0] + "/" + parts[1], {});
}

Ref Parser::ParseFraction() {
  if (const Ref derivative = ParseDerivative(); derivative != kNoRef || failed_) return derivative;
  // "frac(1, 2)" as plain text.
  if (IsChar('(')) {
    const Ref pair = ParseBracket();
    if (pair == kNoRef || !tree_.Is(pair, Kind::kBracket) || tree_[pair].kids.size() != 2) return Fail("fraction");
    return tree_.Div(tree_[pair].kids[0], tree_[pair].kids[1]);
  }
  const Ref top = ParseArgument(false);
  const Ref bottom = top == kNoRef ? kNoRef : ParseArgument(false);
  if (bottom == kNoRef) return failed_ ? kNoRef : Fail("fraction");
  return tree_.Div(top, bottom);
}

Ref Parser::ParseRoot() {
  Ref index = tree_.Number(Rational(2));
  if (IsChar('[')) {
    Next();
    index = ParseAdditive();
    if (index == kNoRef || !IsChar(']')) return Fail("index of a root");
    Next();
  }
  const Ref inside = IsChar('(') ? ParseBracket() : ParseArgument(true);
  if (inside == kNoRef) return failed_ ? kNoRef : Fail("root");
  return tree_.Pow(inside, tree_.Div(tree_.Number(Rational(1)), index));
}

// Without parentheses an argument is a product that ends at a sign, an explicit operator or the next function:
// \sin 2x \cos x.
Ref Parser::FunctionArgument(const std::string& name) {
  if (IsChar('(') || IsChar('[')) return ParseBracket();
  if (IsChar('{') && TakesList(name)) return ParseGroup();
  if (IsCommand("{") && TakesList(name)) return ParseSet();
  std::vector<Ref> factors;
  bool negative = false;
  if (IsChar('-')) {
    negative = true;
    Next();
  }
  while (!failed_ && StartsFactor()) {
    const bool function = (At().kind == Tok::kCommand && IsFunctionName(At().text)) ||
                          (At().kind == Tok::kWord && At().text.size() > 1 && PlainCommand(At().text).has_value() &&
                           IsFunctionName(*PlainCommand(At().text)));
    if (function && !factors.empty()) break;
    if (!factors.empty() && (IsChar('(') || (integrals_ > 0 && AtDifferential()))) break;
    const Ref factor = ParseFactor();
    if (factor == kNoRef) return kNoRef;
    factors.push_back(factor);
    if (function) break;
  }
  if (failed_ || factors.empty()) return failed_ ? kNoRef : Fail("argument of a function");
  const Ref product = factors.size() == 1 ? factors[0] : tree_.Mul(factors);
  return negative ? tree_.Neg(product) : product;
}

Ref Parser::MakeFunction(const std::string& name, Ref base, Ref argument) {
  if (name == "exp") return tree_.Pow(tree_.New(Kind::kConstant, "e", {}), argument);
  if (name == "lg") return tree_.New(Kind::kFunction, "log", {argument, tree_.Number(Rational(10))});
  if (name == "ln") return tree_.New(Kind::kFunction, "ln", {argument});
  if (name == "log") {
    if (base != kNoRef) return tree_.New(Kind::kFunction, "log", {argument, base});
    return tree_.New(Kind::kFunction, "log", {argument});
  }
  if (tree_.Is(argument, Kind::kBracket) || tree_.Is(argument, Kind::kList) || tree_.Is(argument, Kind::kSet)) {
    std::vector<Ref> kids = tree_[argument].kids;
    return tree_.New(Kind::kFunction, name, std::move(kids));
  }
  return tree_.New(Kind::kFunction, name, {argument});
}

Ref Parser::ParseFunction(const std::string& name) {
  // "\max = 5", "f_{\max}": a name.
  if (Among(name, {"max", "min"}) && (IsChar('=') || IsChar('}'))) return tree_.New(Kind::kSymbol, name, {});
  Ref power = kNoRef;
  Ref base = kNoRef;
  while (IsChar('^') || IsChar('_')) {
    Ref& script = IsChar('^') ? power : base;
    if (script != kNoRef) return Fail("a second script");
    Next();
    script = ParseScript();
    if (script == kNoRef) return kNoRef;
  }
  const Ref argument = FunctionArgument(name);
  if (argument == kNoRef) return kNoRef;
  if (tree_.IsNumber(power, -1) && !name.starts_with("arc") && name != "log" && name != "ln") {
    return MakeFunction("arc" + name, base, argument);
  }
  const Ref value = MakeFunction(name, base, argument);
  return power == kNoRef ? value : tree_.Pow(value, power);
}

// Sums, products, integrals, limits: the variable and its range, then the term behind.
Ref Parser::ParseBig(const std::string& name) {
  Ref variable = kNoRef;
  Ref low = kNoRef;
  Ref high = kNoRef;
  while (IsChar('^') || IsChar('_')) {
    const bool lower = IsChar('_');
    Next();
    const Ref script = ParseScript();
    if (script == kNoRef) return kNoRef;
    if (!lower) {
      high = script;
    } else if (tree_.Is(script, Kind::kRelation) && tree_[script].kids.size() == 2) {
      variable = tree_[script].kids[0];
      low = tree_[script].kids[1];
    } else {
      low = script;
    }
  }
  const bool integral = name.ends_with("int");
  integrals_ += integral ? 1 : 0;
  Ref body = ParseTerm();
  integrals_ -= integral ? 1 : 0;
  if (body == kNoRef) return failed_ ? kNoRef : Fail("body");
  Ref outer = kNoRef;
  if (name == "int") {
    const Ref differential = TakeDifferential(body, outer);
    if (differential != kNoRef) variable = differential;
  }
  if (failed_) return kNoRef;
  if (variable != kNoRef && tree_.IsConstant(variable, "i")) {
    // An index named i is no imaginary unit.
    variable = tree_.New(Kind::kSymbol, "i#", {});
    body = ReplaceUnit(tree_, body, variable);
    if (body == kNoRef) return Fail("body");
  }
  const Ref none = tree_.New(Kind::kText, "", {});
  const auto or_none = [none](Ref ref) { return ref == kNoRef ? none : ref; };
  const Ref big = tree_.New(Kind::kBig, name, {or_none(variable), or_none(low), or_none(high), body});
  return outer == kNoRef ? big : tree_.Mul({big, outer});
}

// "dx", "d\theta".
bool Parser::AtDifferential() const {
  if (At().kind != Tok::kWord || At().text[0] != 'd' || At().text.size() > 2) return false;
  return At().text.size() == 2 || At(1).kind == Tok::kWord || (At(1).kind == Tok::kCommand && IsGreek(At(1).text));
}

// Takes the first "dx" out of `body`, for its x; kNoRef where there is none. Differentials behind it are those of
// integrals around this one: `outer`.
Ref Parser::TakeDifferential(Ref& body, Ref& outer) {
  if (!tree_.Is(body, Kind::kMul)) return kNoRef;
  const std::vector<Ref> factors = tree_[body].kids;
  const auto is_d = [&](size_t i) {
    return i + 1 < factors.size() && tree_.Is(factors[i], Kind::kSymbol) && tree_[factors[i]].text == "d" &&
           tree_.Is(factors[i + 1], Kind::kSymbol);
  };
  Ref variable = kNoRef;
  std::vector<Ref> inside = {tree_.Number(Rational(1))};
  std::vector<Ref> outside;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!is_d(i)) {
      inside.push_back(factors[i]);
    } else if (variable == kNoRef) {
      variable = factors[++i];
    } else {
      outside.push_back(factors[i]);
      outside.push_back(factors[++i]);
    }
  }
  if (variable == kNoRef) return kNoRef;
  body = tree_.Mul(inside);
  if (!outside.empty()) outer = tree_.Mul(outside);
  return body == kNoRef ? Fail("body") : variable;
}

// \angle ABC, \triangle ABC: one name.
Ref Parser::ParseNamed(const std::string& name) {
  std::string full = name == "measuredangle" ? "angle" : name;
  while (At().kind == Tok::kWord || (At().kind == Tok::kNumber && full == name) || IsChar('{')) {
    if (IsChar('{')) {
      const Ref inside = ParseGroup();
      if (inside == kNoRef) return kNoRef;
      full += " " + tree_.Key(inside);
      break;
    }
    const bool capital = At().text[0] >= 'A' && At().text[0] <= 'Z';
    if (!capital && full != name && full != "angle") break;
    full += " " + At().text;
    Next();
    if (!capital) break;
  }
  if (At().kind == Tok::kCommand && IsGreek(At().text) && (full == name || full == "angle")) {
    full += " " + At().text;
    Next();
  }
  return ParseSymbol(full);
}

// An arrow or a line over letters names a segment or vector: dropped over several letters and for vectors, kept as part
// of the name over one letter.
Ref Parser::ParseDecorated(const std::string& name) {
  if (name == "overset" || name == "underset") {
    if (ParseArgument(true) == kNoRef) return failed_ ? kNoRef : Fail("group");
    return ParseArgument(true);
  }
  // \hat{i}, \vec j, \hat{\mathbf k}: the unit vectors.
  const bool marks_unit = Among(name, {"hat", "widehat", "vec", "overrightarrow"});
  const size_t braced = IsChar('{') ? 1 : 0;
  const Token& letter = At(braced);
  std::string unit = letter.text == "imath" ? "i" : letter.text == "jmath" ? "j" : letter.text;
  if (letter.kind == Tok::kCommand && unit.starts_with("unit ")) unit = unit.substr(5);
  const bool is_letter = letter.kind == Tok::kWord || letter.kind == Tok::kCommand;
  if (marks_unit && is_letter && unit.size() == 1 && unit[0] >= 'i' && unit[0] <= 'k' &&
      (braced == 0 || IsChar('}', 2))) {
    pos_ += braced == 1 ? 3 : 1;
    return tree_.New(Kind::kSymbol, "unit " + unit, {});
  }
  Ref inside = kNoRef;
  if (IsChar('{') && At(1).kind == Tok::kWord && IsChar('}', 2)) {
    const std::string letters = At(1).text;
    pos_ += 3;
    const bool plain = letters.size() > 1 || name == "vec" || name == "overrightarrow";
    return ParseSymbol(plain ? letters : name + " " + letters);
  }
  inside = ParseArgument(true);
  if (inside == kNoRef) return failed_ ? kNoRef : Fail("group");
  if (name == "overline" || name == "bar") return tree_.New(Kind::kFunction, "conj", {inside});
  if (tree_.Is(inside, Kind::kSymbol)) {
    const bool plain = name == "vec" || name == "overrightarrow";
    return plain ? inside : ParseSymbol(name + " " + tree_[inside].text);
  }
  return inside;
}

Ref Parser::ParseBlackboard() {
  const size_t braced = IsChar('{') ? 1 : 0;
  const Token& token = At(braced);
  if (token.kind != Tok::kWord || token.text.size() != 1) return Fail("name of a set");
  std::string name = token.text;
  pos_ += braced == 1 ? 3 : 1;
  if (braced == 1 && tokens_[pos_ - 1].text != "}") return Fail("name of a set");
  if ((name == "E" || name == "P") && (IsChar('(') || IsChar('['))) return ParseEvent(name, true);
  if (IsChar('^') || IsChar('_')) {
    name += At().text;
    Next();
    const auto sign = [&](size_t ahead) { return IsChar('+', ahead) || IsChar('-', ahead) || IsChar('*', ahead); };
    if (sign(0)) {
      name += At().text;
      Next();
    } else {
      const size_t open = IsChar('{') && sign(1) && IsChar('}', 2) ? 1 : 0;
      if (open == 1) {
        name += At(1).text;
        pos_ += 3;
      } else {
        const Ref script = ParseScript();
        if (script == kNoRef) return kNoRef;
        // \mathbb{R}_{\ge 0}
        const Node& node = tree_[script];
        const bool bound = node.kind == Kind::kRelation && node.text.size() == 1 && tree_.IsNumber(node.kids.back(), 0);
        name += bound ? node.text : tree_.Key(script);
      }
    }
  }
  // The whole numbers above zero have many names.
  if (Among(name, {"N^*", "N^+", "N_+", "N_>", "Z_+", "Z_>"})) name = "Z^+";
  return tree_.New(Kind::kNamedSet, std::move(name), {});
}

}  // namespace iha::scoring::math
