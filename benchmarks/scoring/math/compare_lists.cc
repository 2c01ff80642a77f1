// Lists, tuples, sets, matrices, ratios, times, sums (docs/grading.md, rules `list` to `ratio`).
#include <algorithm>
#include <functional>

#include "benchmarks/scoring/math/compare.h"

namespace iha::scoring::math {
namespace {

constexpr size_t kMaxSigns = 6;

// The plus-minus signs below `ref`, not inside of lists.
void CollectSigns(const Tree& tree, Ref ref, size_t& plus, size_t& minus) {
  if (tree.Is(ref, Kind::kPlusMinus)) (tree[ref].text == "+" ? plus : minus) += 1;
  for (const Ref kid : tree[ref].kids) CollectSigns(tree, kid, plus, minus);
}

}  // namespace

// a +- b as two values. With a -+ all signs go together, otherwise each goes by itself.
bool Comparer::ExpandSigns(Ref ref, std::vector<Ref>& out) {
  size_t plus = 0;
  size_t minus = 0;
  CollectSigns(tree_, ref, plus, minus);
  if (plus + minus == 0) return false;
  const bool linked = minus > 0;
  const size_t free = linked ? 1 : plus;
  if (free > kMaxSigns) return false;
  for (size_t choice = 0; choice < size_t{1} << free; ++choice) {
    size_t index = 0;
    const std::function<Ref(Ref)> choose = [&](Ref at) -> Ref {
      const Node node = tree_[at];
      if (node.kids.empty()) return at;
      std::vector<Ref> kids = node.kids;
      for (Ref& kid : kids) kid = choose(kid);
      if (node.kind != Kind::kPlusMinus) return tree_.WithKids(at, std::move(kids));
      const size_t bit = linked ? 0 : index++;
      const bool negative = ((choice >> bit) % 2 == 1) != (node.text == "-");
      return negative ? tree_.Neg(kids[0]) : kids[0];
    };
    const Ref value = choose(ref);
    if (value == kNoRef) return false;
    out.push_back(value);
  }
  return true;
}

std::vector<Ref> Comparer::Items(Ref ref) {
  std::vector<Ref> out;
  if (tree_.Is(ref, Kind::kList)) {
    const std::vector<Ref> kids = tree_[ref].kids;
    for (const Ref kid : kids) {
      const std::vector<Ref> inner = Items(kid);
      out.insert(out.end(), inner.begin(), inner.end());
    }
    return out;
  }
  if (ExpandSigns(ref, out)) return Distinct(std::move(out));
  return {ref};
}

std::vector<Ref> Comparer::Distinct(std::vector<Ref> items) {
  std::vector<Ref> kept;
  for (const Ref item : items) {
    const bool seen = std::any_of(kept.begin(), kept.end(),
                                  [&](Ref other) { return Compare(item, other).outcome == MathOutcome::kEqual; });
    if (!seen) kept.push_back(item);
  }
  return kept;
}

Result Comparer::CompareInOrder(const std::vector<Ref>& a, const std::vector<Ref>& b, const char* rule) {
  if (a.size() != b.size()) return Different(std::string(rule) + ": number of elements");
  Result out = Equal(rule);
  for (size_t i = 0; i < a.size(); ++i) {
    const Result element = Compare(a[i], b[i]);
    if (element.outcome == MathOutcome::kDifferent) return Different(rule);
    if (element.outcome == MathOutcome::kUndecided) out = element;
  }
  return out;
}

// A perfect matching of equal elements. The relation is not transitive (decimal rule), so a greedy choice could miss
// it.
Result Comparer::CompareUnordered(std::vector<Ref> a, std::vector<Ref> b, const char* rule) {
  if (a.size() != b.size()) return Different(std::string(rule) + ": number of elements");
  const size_t n = a.size();
  if (static_cast<int64_t>(n) > 60 && static_cast<int64_t>(n * n) > left_) return Undecided("budget: comparisons");
  std::vector<std::vector<char>> equal(n, std::vector<char>(n, 0));
  bool undecided = false;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      const MathOutcome outcome = Compare(a[i], b[j]).outcome;
      equal[i][j] = outcome == MathOutcome::kEqual ? 1 : 0;
      undecided = undecided || outcome == MathOutcome::kUndecided;
    }
  }
  std::vector<size_t> partner(n, n);
  std::vector<char> seen;
  const std::function<bool(size_t)> match = [&](size_t i) {
    for (size_t j = 0; j < n; ++j) {
      if (equal[i][j] == 0 || seen[j] != 0) continue;
      seen[j] = 1;
      if (partner[j] == n || match(partner[j])) {
        partner[j] = i;
        return true;
      }
    }
    return false;
  };
  for (size_t i = 0; i < n; ++i) {
    seen.assign(n, 0);
    if (!match(i)) return undecided ? Undecided(rule) : Different(rule);
  }
  return Equal(rule);
}

Result Comparer::CompareBrackets(Ref a, Ref b) {
  const Node left = tree_[a];
  const Node right = tree_[b];
  const auto marks = [](const Node& node) { return node.text == "<>" ? std::string("()") : node.text; };
  if (left.kids.size() == 2 && right.kids.size() == 2 && marks(left) != marks(right)) return Different("brackets");
  return CompareInOrder(left.kids, right.kids, "tuple");
}

// [[1,2],[3,4]]: as many brackets as a matrix has rows.
bool Comparer::IsListOfRows(Ref ref, size_t rows) const {
  const std::vector<Ref>& kids = tree_[ref].kids;
  return kids.size() == rows && rows > 1 &&
         std::all_of(kids.begin(), kids.end(), [&](Ref kid) { return tree_.Is(kid, Kind::kBracket); });
}

std::vector<Ref> Comparer::CellsOf(Ref rows) const {
  std::vector<Ref> cells;
  for (const Ref row : tree_[rows].kids) cells.insert(cells.end(), tree_[row].kids.begin(), tree_[row].kids.end());
  return cells;
}

// Rows of a value and its condition, in any order; "otherwise" is what the others leave.
Result Comparer::CompareCases(const Node& x, const Node& y) {
  const auto rows = static_cast<size_t>(x.rows);
  if (x.kids.size() != 2 * rows) return CompareUnordered(x.kids, y.kids, "cases");
  const auto rows_of = [&](const Node& cases, size_t& rest) {
    std::vector<Ref> out;
    for (size_t i = 0; i < rows; ++i) {
      const Ref condition = cases.kids[2 * i + 1];
      const std::string& words = tree_[condition].text;
      if (tree_.Is(condition, Kind::kText) && (words == "otherwise" || words == "else")) rest = i;
      out.push_back(tree_.New(Kind::kBracket, "()", {cases.kids[2 * i], condition}));
    }
    return out;
  };
  size_t x_rest = rows;
  size_t y_rest = rows;
  std::vector<Ref> left = rows_of(x, x_rest);
  std::vector<Ref> right = rows_of(y, y_rest);
  if (tree_.full()) return Undecided("budget: nodes");
  if ((x_rest == rows) == (y_rest == rows)) return CompareUnordered(left, right, "cases");
  const bool in_left = x_rest < rows;
  std::vector<Ref>& with = in_left ? left : right;
  std::vector<Ref>& without = in_left ? right : left;
  const Ref value = tree_[with[in_left ? x_rest : y_rest]].kids[0];
  with.erase(with.begin() + static_cast<ptrdiff_t>(in_left ? x_rest : y_rest));
  for (size_t i = 0; i < rows; ++i) {
    if (Compare(tree_[without[i]].kids[0], value).outcome != MathOutcome::kEqual) continue;
    std::vector<Ref> others = without;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    Result result = CompareUnordered(with, others, "cases");
    if (result.outcome != MathOutcome::kDifferent) return result;
  }
  return Different("cases");
}

std::optional<Result> Comparer::CompareMatrices(Ref a, Ref b) {
  const bool left = tree_.Is(a, Kind::kMatrix);
  const bool right = tree_.Is(b, Kind::kMatrix);
  if (!left && !right) return std::nullopt;
  const Node x = tree_[a];
  const Node y = tree_[b];
  if (left && right) {
    if (x.rows != y.rows || x.kids.size() != y.kids.size()) return Different("matrix: shape");
    if (x.text == "cases" && y.text == "cases") return CompareCases(x, y);
    return CompareInOrder(x.kids, y.kids, "matrix");
  }
  // A row or column against a tuple; one cell against its value.
  const Node& matrix = left ? x : y;
  const Ref other = left ? b : a;
  if (const Ref written = AsMatrix(other, matrix); written != kNoRef) {
    return left ? CompareMatrices(a, written) : CompareMatrices(written, b);
  }
  if (tree_.Is(other, Kind::kBracket) && IsListOfRows(other, static_cast<size_t>(matrix.rows))) {
    const std::vector<Ref> cells = CellsOf(other);
    return left ? CompareInOrder(x.kids, cells, "matrix") : CompareInOrder(cells, y.kids, "matrix");
  }
  const bool vector = matrix.rows == 1 || static_cast<size_t>(matrix.rows) == matrix.kids.size();
  if (tree_.Is(other, Kind::kBracket) && vector) {
    return left ? CompareInOrder(x.kids, y.kids, "vector") : CompareInOrder(x.kids, y.kids, "vector");
  }
  if (matrix.text == "cases" && (tree_.Is(other, Kind::kList))) {
    return left ? CompareUnordered(x.kids, Items(b), "cases") : CompareUnordered(Items(a), y.kids, "cases");
  }
  if (matrix.kids.size() == 1) return left ? Compare(x.kids[0], b) : Compare(a, y.kids[0]);
  return Different("matrix against another form");
}

// What stands for a collection beside another one: "(x,y)=(1,2)" beside "x=1, y=2" for its tuple, "x \in \{1,2\}"
// beside "1, 2" for its set, a point with its name, P(1, 2), beside its coordinates for them.
Ref Comparer::AsCollection(Ref ref, Ref other) {
  const Node node = tree_[ref];
  const bool point = node.kind == Kind::kApply && node.kids.size() > 1 && node.text.size() == 1 &&
                     node.text[0] >= 'A' && node.text[0] <= 'Z' && tree_.Is(other, Kind::kBracket);
  if (point) return tree_.New(Kind::kBracket, "()", node.kids);
  // "-1 \le x \le 1, x \in \mathbb{Z}" beside numbers: those that it allows.
  if (node.kind == Kind::kList && node.kids.size() == 2) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Node& domain = tree_[node.kids[i]];
      if (domain.kind != Kind::kRelation || domain.text != "e") continue;
      const Ref numbers = WholeNumbers(tree_.New(Kind::kSetBuilder, "", {node.kids[i], node.kids[1 - i]}));
      if (numbers != kNoRef) return numbers;
    }
  }
  const Ref value = tree_.Is(other, Kind::kList) ? ValueOf(ref) : kNoRef;
  return value != kNoRef && (tree_.Is(value, Kind::kBracket) || tree_.Is(value, Kind::kSet)) ? value : ref;
}

// Of a set: those that its members stand for.
std::vector<Ref> Comparer::Elements(Ref set) {
  std::vector<Ref> out;
  const std::vector<Ref> kids = tree_[set].kids;
  for (const Ref kid : kids) {
    const std::vector<Ref> inner = Items(kid);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

// One side, or both, a set.
Result Comparer::CompareSets(Ref a, Ref b) {
  const bool left = tree_.Is(a, Kind::kSet);
  const bool right = tree_.Is(b, Kind::kSet);
  if (tree_.Is(a, Kind::kBracket) || tree_.Is(b, Kind::kBracket)) {
    // {(1, 2)} is (1, 2).
    const std::vector<Ref> only = tree_[left ? a : b].kids;
    if (only.size() != 1 || !tree_.Is(only[0], Kind::kBracket)) return Different("set against tuple");
    return left ? CompareBrackets(only[0], b) : CompareBrackets(a, only[0]);
  }
  return CompareUnordered(Distinct(left ? Elements(a) : Items(a)), Distinct(right ? Elements(b) : Items(b)), "set");
}

Result Comparer::CompareTupleWithList(Ref a, Ref b) {
  const bool left = tree_.Is(a, Kind::kBracket);
  const Ref tuple = left ? a : b;
  const std::vector<Ref> items = Items(left ? b : a);
  const std::vector<Ref> kids = tree_[tuple].kids;
  // One tuple with alternatives, (1, \pm 2), is a list of tuples.
  size_t plus = 0;
  size_t minus = 0;
  CollectSigns(tree_, tuple, plus, minus);
  if (plus + minus > 0) return CompareUnordered(left ? Items(a) : items, left ? items : Items(b), "list");
  return left ? CompareInOrder(kids, items, "list in order") : CompareInOrder(items, kids, "list in order");
}

Result Comparer::CompareLists(Ref a, Ref b) {
  std::vector<Ref> x = Items(a);
  std::vector<Ref> y = Items(b);
  // A repeated solution tuple counts once; repeated numbers count each.
  const auto tuples = [&](const std::vector<Ref>& items) {
    return std::all_of(items.begin(), items.end(), [&](Ref item) { return tree_.Is(item, Kind::kBracket); });
  };
  if (x.size() != y.size() && tuples(x) && tuples(y)) {
    x = Distinct(std::move(x));
    y = Distinct(std::move(y));
  }
  Result result = CompareUnordered(x, y, "list");
  // "1/2 or 0.5" is one value.
  const auto alternatives = [&](Ref ref) { return tree_.Is(ref, Kind::kList) && tree_[ref].text == "or"; };
  if (result.outcome == MathOutcome::kEqual || (!alternatives(a) && !alternatives(b))) return result;
  return CompareUnordered(Distinct(std::move(x)), Distinct(std::move(y)), "list");
}

// Lists compare as multisets, sets as sets, tuples in order; a list against a tuple in order.
std::optional<Result> Comparer::CompareCollections(Ref a, Ref b) {
  const Ref first = AsCollection(a, b);
  b = AsCollection(b, a);
  a = first;
  if (a == kNoRef || b == kNoRef) return Undecided("budget: nodes");
  const auto is_list = [&](Ref ref) {
    size_t plus = 0;
    size_t minus = 0;
    if (!tree_.Is(ref, Kind::kSet) && !tree_.Is(ref, Kind::kBracket)) CollectSigns(tree_, ref, plus, minus);
    return tree_.Is(ref, Kind::kList) || plus + minus > 0;
  };
  const bool lists = is_list(a) || is_list(b);
  const bool sets = tree_.Is(a, Kind::kSet) || tree_.Is(b, Kind::kSet);
  const bool left_tuple = tree_.Is(a, Kind::kBracket);
  const bool right_tuple = tree_.Is(b, Kind::kBracket);
  if (!lists && !sets && !left_tuple && !right_tuple) return std::nullopt;
  if (sets) return CompareSets(a, b);
  if (left_tuple && right_tuple) return CompareBrackets(a, b);
  if (!left_tuple && !right_tuple) return CompareLists(a, b);
  return lists ? CompareTupleWithList(a, b) : Different("tuple against one value");
}

// Two times of day, or two ratios up to a factor, or a ratio of two against its quotient.
Result Comparer::CompareRatios(Ref a, Ref b) {
  const Node x = tree_[a];
  const Node y = tree_[b];
  if (x.kind != Kind::kRatio || y.kind != Kind::kRatio) {
    const Node& ratio = x.kind == Kind::kRatio ? x : y;
    const Ref other = x.kind == Kind::kRatio ? b : a;
    if (ratio.kids.size() != 2 || !IsScalar(other)) return Different("ratio against another form");
    const Ref quotient = tree_.Div(ratio.kids[0], ratio.kids[1]);
    return quotient == kNoRef ? Undecided("budget") : CompareScalars(quotient, other);
  }
  if (x.kids.size() != y.kids.size()) return Different("ratio");
  if (x.text == "h:m" && y.text == "h:m") return CompareInOrder(x.kids, y.kids, "time");
  if (tree_.IsNumber(x.kids[0], 0) || tree_.IsNumber(y.kids[0], 0)) return CompareInOrder(x.kids, y.kids, "ratio");
  Result out = Equal("ratio");
  for (size_t i = 1; i < x.kids.size(); ++i) {
    const Result part = CompareValues(tree_.Mul({x.kids[i], y.kids[0]}), tree_.Mul({y.kids[i], x.kids[0]}));
    if (part.outcome == MathOutcome::kDifferent) return Different("ratio");
    if (part.outcome == MathOutcome::kUndecided) out = part;
  }
  return out;
}

// Sums, integrals and limits of the same kind with equal parts; the running variable's name does not matter.
Result Comparer::CompareBig(Ref a, Ref b) {
  const Node x = tree_[a];
  const Node y = tree_[b];
  if (x.text == y.text) {
    const auto body = [&](const Node& node) {
      if (!tree_.Is(node.kids[0], Kind::kSymbol)) return node.kids[3];
      return tree_.Substitute(node.kids[3], tree_[node.kids[0]].text, tree_.New(Kind::kSymbol, "#", {}));
    };
    const std::vector<Ref> left = {x.kids[1], x.kids[2], body(x)};
    const std::vector<Ref> right = {y.kids[1], y.kids[2], body(y)};
    if (left[2] != kNoRef && right[2] != kNoRef) {
      const Result parts = CompareInOrder(left, right, "sum");
      if (parts.outcome == MathOutcome::kEqual) return parts;
    }
  }
  const Ball balls = CompareBalls(tree_, a, b, {}, work_);
  if (balls == Ball::kUndecided) return Undecided(work_ <= 0 ? "budget: ball arithmetic" : WhyNot(a, b));
  return balls == Ball::kEqual ? Equal("balls") : Different("balls");
}

Result Comparer::CompareBuilders(Ref a, Ref b) {
  const std::vector<Ref> x = tree_[a].kids;
  const std::vector<Ref> y = tree_[b].kids;
  Ref condition = y[1];
  Ref element = y[0];
  // "n", "n \in N" and "2n + 1 | n \in N" run by their own letters.
  const auto letter = [&](const std::vector<Ref>& builder) {
    for (const Ref ref : builder) {
      const Node& node = tree_[ref];
      const Ref name = node.kind == Kind::kRelation && node.text == "e" ? node.kids[0] : ref;
      if (tree_.Is(name, Kind::kSymbol)) return name;
    }
    return kNoRef;
  };
  const Ref from = letter(y);
  const Ref to = letter(x);
  if (from != kNoRef && to != kNoRef) {
    const std::string name = tree_[from].text;
    condition = tree_.Substitute(y[1], name, to);
    element = tree_.Substitute(y[0], name, to);
  }
  if (condition == kNoRef || element == kNoRef) return Undecided("budget");
  return CompareInOrder(x, {element, condition}, "set-builder");
}

// Ratios, times, dates, residues, set-builders and unions that are no regions; nullopt for anything else.
// 1 of "7 \bmod 3"; kNoRef where not both are whole numbers.
Ref Comparer::Remainder(Ref mod) {
  const Node node = tree_[mod];
  if (!tree_.Is(node.kids[0], Kind::kNumber) || !tree_.Is(node.kids[1], Kind::kNumber)) return kNoRef;
  const Rational value = tree_[node.kids[0]].value;
  const Rational modulus = tree_[node.kids[1]].value;
  if (!value.IsInteger() || !modulus.IsInteger() || modulus.Sign() <= 0) return kNoRef;
  Rational rest;
  fmpz_fdiv_r(fmpq_numref(rest.mutable_raw()), fmpq_numref(value.raw()), fmpq_numref(modulus.raw()));
  return tree_.Number(rest);
}

std::optional<Result> Comparer::CompareSpecial(Ref a, Ref b) {
  const Node x = tree_[a];
  const Node y = tree_[b];
  const auto either = [&](Kind kind) { return x.kind == kind || y.kind == kind; };
  if (either(Kind::kTime)) {
    if (x.kind == y.kind) return x.text == y.text ? Equal("time") : Different("time");
    // "6:30" may be in the morning or the afternoon.
    const Node& time = x.kind == Kind::kTime ? x : y;
    const Node& other = x.kind == Kind::kTime ? y : x;
    // "10 pm" and "10"
    const int64_t hour = std::stoll(time.text) / 60 % 12;
    if (other.kind == Kind::kNumber && std::stoll(time.text) % 60 == 0) {
      return other.value == Rational(hour == 0 ? 12 : hour) ? Equal("time") : Different("time");
    }
    if (other.kind != Kind::kRatio || other.text != "h:m") return Different("time");
    const int64_t minutes = std::stoll(time.text);
    const Ref total = tree_.Add({tree_.Mul({other.kids[0], tree_.Number(Rational(60))}), other.kids[1]});
    if (tree_.IsNumber(total, minutes)) return Equal("time");
    // Hours of 1 to 12 leave the half of the day open, others do not: "15:45" is no "3:45 am".
    const bool twelve = minutes / 60 == 0 ? tree_.IsNumber(total, minutes + 720)
                                          : minutes >= 780 && tree_.IsNumber(total, minutes - 720);
    return twelve ? Equal("time") : Different("time");
  }
  if (either(Kind::kDate)) {
    if (x.kind != y.kind) return Different("date");
    // A year that only one side gives is left out.
    const size_t first = x.text.find('-');
    const size_t second = y.text.find('-');
    const bool years = first == 0 || second == 0 || x.text.substr(0, first) == y.text.substr(0, second);
    return years && x.text.substr(first) == y.text.substr(second) ? Equal("date") : Different("date");
  }
  if (either(Kind::kRatio)) return CompareRatios(a, b);
  if (either(Kind::kMod)) {
    if (x.kind != y.kind) {
      const bool left = x.kind == Kind::kMod;
      const Ref rest = Remainder(left ? a : b);  // "7 \bmod 3" is 1
      if (rest != kNoRef && tree_.Key(rest) == tree_.Key(left ? b : a)) return Equal("residue");
      return Compare(left ? x.kids[0] : a, left ? b : y.kids[0]);
    }
    const Result modulus = CompareValues(x.kids[1], y.kids[1]);
    if (modulus.outcome != MathOutcome::kEqual) return modulus;
    const Ref quotient = tree_.Div(tree_.Sub(x.kids[0], y.kids[0]), x.kids[1]);
    if (quotient != kNoRef && tree_.Is(quotient, Kind::kNumber)) {
      return tree_[quotient].value.IsInteger() ? Equal("residue") : Different("residue");
    }
    return Compare(x.kids[0], y.kids[0]);
  }
  if (x.kind == Kind::kSetBuilder && y.kind == Kind::kSetBuilder) return CompareBuilders(a, b);
  for (const Kind kind : {Kind::kUnion, Kind::kIntersect, Kind::kMinus, Kind::kSetBuilder, Kind::kNamedSet}) {
    if (!either(kind)) continue;
    // "R" and "\mathbf{R}" beside \mathbb{R}.
    const bool letter = either(Kind::kSymbol) && kind == Kind::kNamedSet && x.text == y.text && x.text != "C";
    if (letter) return Equal("set");
    if (x.kind != y.kind) return Different("set against another form");
    if (kind == Kind::kNamedSet) return x.text == y.text ? Equal("set") : Different("set");
    return kind == Kind::kMinus ? CompareInOrder(x.kids, y.kids, "set") : CompareUnordered(x.kids, y.kids, "set");
  }
  return std::nullopt;
}

}  // namespace iha::scoring::math
