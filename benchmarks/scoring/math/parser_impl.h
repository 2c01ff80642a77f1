// parser_impl.h: the recursive-descent parser behind parser.h. Used by the parser_*.cc files only.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/scoring/math/lexer.h"
#include "benchmarks/scoring/math/parser.h"

namespace iha::scoring::math {

class Parser {
 public:
  Parser(Tree& tree, TokenList list, Commas commas);
  Parsed Run();

 private:
  void ReadPlainWords();
  // Every Parse function returns kNoRef after Fail; callers pass it up. Tokens ahead are read through At().
  const Token& At(size_t ahead = 0) const;
  bool IsChar(char c, size_t ahead = 0) const;
  bool IsCommand(std::string_view name, size_t ahead = 0) const;
  bool IsNumber(size_t ahead = 0) const { return At(ahead).kind == Tok::kNumber; }
  bool IsInteger(size_t ahead = 0) const;
  void Next() { ++pos_; }
  // The first character of a word or number; the rest of the run stays for what comes next.
  std::string TakeCharacter();
  Ref Fail(std::string_view what);
  bool Done() const;  // at the end, or where an enclosing construct closes

  // parser_lists.cc: lists, relations, sets of the line
  Ref ParseList(bool top);
  bool TakeSeparator(char& mark, bool top);
  bool AtSeparatorWord(size_t ahead = 0) const;
  Ref PackItems(std::vector<Ref> items, std::string mark);
  Ref PackGroups(std::vector<Ref> groups);
  Ref ParseItem();
  Ref ParseMembers();
  void SkipLeadingText();
  char RelationMark(size_t& tokens) const;
  Ref ParseSetExpression();
  Ref ParseRatio();
  Ref ParseModulus(Ref value);

  // parser_terms.cc: sums, products, powers, units
  Ref ParseAdditive();
  Ref ParseTerm();
  bool IsPartOfPercent(Ref above, Ref below) const;
  Ref ParseFactor();
  Ref ParsePostfix(Ref base, bool from_number);
  Ref ParseScript();  // behind ^ or _
  Ref ParseExponent(Ref base);
  bool StartsFactor() const;
  bool StartsFactorCommand(std::string_view name) const;
  bool SkipUnits(std::vector<Ref>& factors);
  bool IsUnitToken(bool behind_number) const;
  bool AtCurrencyBehind() const;
  bool ClosesHalfOpen() const;
  size_t Primes(size_t ahead, int& marks) const;
  Ref ParseArcMinutes(Ref degrees);
  Ref ApplyScientific(Ref literal, Ref power);
  bool MultiElement(Ref ref) const;

  // parser_primary.cc: what stands between operators
  Ref ParsePrimary();
  Ref ParseNumber();
  std::string TakeGroupedDigits();
  Ref ParseRepeating(std::string digits);
  Ref ParseMixed(Ref whole);
  bool TakeEuropean(std::string& digits);
  bool TakeIndian(std::string& digits);
  bool IsPointBehind() const;
  Ref ParseWord();
  Ref ParseSymbol(std::string name);
  Ref ParseCall(std::string name);
  Ref ParseCharPrimary();
  size_t ChooseAt(size_t& braced) const;
  void SkipEmptyGroups();
  Ref ParseChoose();
  Ref ParseEvent(std::string name, bool any);
  Ref ParseBracket();
  Ref ParseGroup();
  Ref ParseSet();
  Ref ParseDelimited(std::string_view close, std::string function);
  Ref ParseBars();
  void JoinAlignedRows();
  bool HasRelationColumn();
  Ref ParseMatrix();

  // parser_bases.cc: numbers in other bases
  bool AtBaseNumber() const;
  Ref ParseBaseNumber();
  Ref ParseBaseWord();
  Ref BaseValue(const std::string& digits, int64_t base);
  void UnwrapBaseNumber();

  // parser_commands.cc: LaTeX commands and functions
  Ref ParseCommand();
  Ref ParseCommandNamed(const std::string& name);
  Ref ParseArgument(bool whole_number);
  Ref ParseFraction();
  Ref ParseDerivative();
  Ref ParseRoot();
  Ref ParseFunction(const std::string& name);
  Ref FunctionArgument(const std::string& name);
  Ref MakeFunction(const std::string& name, Ref base, Ref argument);
  Ref ParseBig(const std::string& name);
  bool AtDifferential() const;
  Ref TakeDifferential(Ref& body, Ref& outer);
  Ref ParseNamed(const std::string& name);
  Ref ParseDecorated(const std::string& name);
  Ref ParseBlackboard();

  struct Depth {
    explicit Depth(Parser& owner) : parser(owner) { ++parser.depth_; }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };
  bool TooDeep() const { return depth_ > tree_.budget().depth; }

  Tree& tree_;
  std::vector<Token> tokens_;
  bool complete_;
  Commas commas_;
  size_t pos_ = 0;
  int depth_ = 0;
  int bars_ = 0;            // open | | pairs
  int integrals_ = 0;       // whose terms are being read
  bool bar_stops_ = false;  // "|" ends an item (set-builder)
  bool colon_stops_ = false;
  bool reversed_ = false;  // inside "]a, b["
  bool failed_ = false;
  Parsed out_;
};

bool IsProseWord(std::string_view word);

}  // namespace iha::scoring::math
