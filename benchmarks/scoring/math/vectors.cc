// Vectors in i, j, k, their lengths, and counts written as C(n, k) and P(n, k).
#include <algorithm>

#include "benchmarks/scoring/math/compare.h"
#include "benchmarks/scoring/math/exact.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

constexpr const char* kUnitVectors[] = {"unit i", "unit j", "unit k"};
constexpr const char* kLetters[] = {"i", "j", "k"};

bool HasName(const Tree& tree, Ref ref, std::string_view name) {
  if (tree.Is(ref, Kind::kSymbol) && tree[ref].text == name) return true;
  const std::vector<Ref>& kids = tree[ref].kids;
  return std::any_of(kids.begin(), kids.end(), [&](Ref kid) { return HasName(tree, kid, name); });
}

// The imaginary unit replaced by `by`.
Ref ReplaceImaginary(Tree& tree, Ref ref, Ref by) {
  if (ref == kNoRef || by == kNoRef) return kNoRef;
  if (tree.IsConstant(ref, "i")) return by;
  if (tree[ref].kids.empty()) return ref;
  std::vector<Ref> kids = tree[ref].kids;
  for (Ref& kid : kids) kid = ReplaceImaginary(tree, kid, by);
  return tree.WithKids(ref, std::move(kids));
}

}  // namespace

bool Comparer::HasUnitVectors(Ref ref) const {
  return std::any_of(std::begin(kUnitVectors), std::end(kUnitVectors),
                     [&](const char* name) { return HasName(tree_, ref, name); });
}

// The coefficients of i, j, k; nullopt when `ref` is not linear in them. With `plain_letters` the names i, j, k are the
// vectors too.
std::optional<std::vector<Ref>> Comparer::Components(Ref ref, size_t size, bool plain_letters) {
  if (tree_.Is(ref, Kind::kBracket)) return tree_[ref].kids;
  if (tree_.Is(ref, Kind::kMatrix)) {
    const Node& node = tree_[ref];
    if (node.rows != 1 && static_cast<size_t>(node.rows) != node.kids.size()) return std::nullopt;
    return node.kids;
  }
  if (!IsScalar(ref)) return std::nullopt;
  Ref named = ref;
  if (plain_letters) {
    named = ReplaceImaginary(tree_, named, tree_.New(Kind::kSymbol, kUnitVectors[0], {}));
    for (const size_t i : {size_t{1}, size_t{2}}) {
      named = tree_.Substitute(named, kLetters[i], tree_.New(Kind::kSymbol, kUnitVectors[i], {}));
    }
  }
  std::vector<Ref> out;
  std::vector<Ref> terms;
  for (size_t i = 0; i < size; ++i) {
    Ref part = named;
    for (size_t j = 0; j < 3; ++j) {
      part = tree_.Substitute(part, kUnitVectors[j], tree_.Number(Rational(i == j ? 1 : 0)));
    }
    if (part == kNoRef) return std::nullopt;
    out.push_back(part);
    terms.push_back(tree_.Mul({part, tree_.New(Kind::kSymbol, kUnitVectors[i], {})}));
  }
  const Ref sum = tree_.Add(terms);
  if (named == kNoRef || sum == kNoRef || CompareExactly(tree_, named, sum) != Exact::kEqual) return std::nullopt;
  return out;
}

std::optional<Result> Comparer::CompareVectors(Ref a, Ref b) {
  const bool left = HasUnitVectors(a);
  const bool right = HasUnitVectors(b);
  // 3i + 4j beside a tuple or a column.
  const auto plain = [&](Ref ref, Ref other) {
    return IsScalar(ref) && (HasName(tree_, ref, "j") || HasName(tree_, ref, "k")) &&
           (tree_.Is(other, Kind::kBracket) || tree_.Is(other, Kind::kMatrix));
  };
  if (!left && !right && !plain(a, b) && !plain(b, a)) return std::nullopt;
  size_t size = HasName(tree_, a, kUnitVectors[2]) || HasName(tree_, b, kUnitVectors[2]) ? 3 : 2;
  for (const Ref ref : {a, b}) {
    if (tree_.Is(ref, Kind::kBracket) || tree_.Is(ref, Kind::kMatrix)) size = tree_[ref].kids.size();
    if (IsScalar(ref) && !HasUnitVectors(ref) && HasName(tree_, ref, "k")) size = 3;
  }
  if (size > 3) return Different("vector: number of elements");
  const auto x = Components(a, size, !left);
  const auto y = Components(b, size, !right);
  if (!x.has_value() || !y.has_value()) return std::nullopt;
  return CompareInOrder(*x, *y, "vector");
}

// What stands beside a matrix for one: \binom{3}{4} beside a column of two, I, I_n and E for the unit matrix, 0 and O
// for the zero matrix, and their multiples. kNoRef for anything else.
Ref Comparer::AsMatrix(Ref ref, const Node& matrix) {
  const Node node = tree_[ref];
  const auto n = static_cast<size_t>(matrix.rows);
  if (node.kind == Kind::kFunction && node.text == "binom" && n == 2 && matrix.kids.size() == 2) {
    return tree_.Matrix(matrix.text, 2, node.kids);
  }
  // -I, 2I
  if (node.kind == Kind::kMul && node.kids.size() == 2 && tree_.Is(node.kids[0], Kind::kNumber)) {
    const Ref unscaled = AsMatrix(node.kids[1], matrix);
    if (unscaled == kNoRef) return kNoRef;
    std::vector<Ref> cells = tree_[unscaled].kids;
    for (Ref& cell : cells) cell = tree_.Mul({node.kids[0], cell});
    return tree_.Matrix(matrix.text, matrix.rows, std::move(cells));
  }
  if ((tree_.IsNumber(ref, 0) || (node.kind == Kind::kSymbol && node.text == "O")) && matrix.kids.size() > 1) {
    return tree_.Matrix(matrix.text, matrix.rows, std::vector<Ref>(matrix.kids.size(), tree_.Number(Rational(0))));
  }
  const bool unit = node.kind == Kind::kSymbol && n * n == matrix.kids.size() && n > 1 &&
                    (node.text == "I" || node.text == "E" || node.text == "I_" + std::to_string(n) ||
                     node.text == "E_" + std::to_string(n));
  if (!unit) return kNoRef;
  std::vector<Ref> cells;
  for (size_t i = 0; i < n * n; ++i) cells.push_back(tree_.Number(Rational(i % (n + 1) == 0 ? 1 : 0)));
  return tree_.Matrix(matrix.text, matrix.rows, std::move(cells));
}

// (1, 2) + (3, 4); kNoRef where not all are tuples of one size.
Ref Comparer::AddTuples(const std::vector<Ref>& kids) {
  std::vector<Ref> sum;
  for (const Ref kid : kids) {
    const Node& node = tree_[kid];
    const bool tuple = node.kind == Kind::kBracket && (node.text == "()" || node.text == "<>") && node.kids.size() > 1;
    if (!tuple || (!sum.empty() && node.kids.size() != sum.size())) return kNoRef;
    const std::vector<Ref> elements = node.kids;
    if (sum.empty()) {
      sum = elements;
      continue;
    }
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = tree_.Add({sum[i], elements[i]});
  }
  return tree_.New(Kind::kBracket, "()", std::move(sum));
}

// t(1, 2): one tuple and single values; kNoRef for anything else.
Ref Comparer::ScaleTuple(const std::vector<Ref>& kids) {
  Ref tuple = kNoRef;
  std::vector<Ref> scalars;
  for (const Ref kid : kids) {
    const Node& node = tree_[kid];
    if (node.kind == Kind::kBracket && tuple == kNoRef && (node.text == "()" || node.text == "<>")) {
      tuple = kid;
    } else if (IsScalar(kid)) {
      scalars.push_back(kid);
    } else {
      return kNoRef;
    }
  }
  if (tuple == kNoRef || tree_[tuple].kids.size() < 2) return kNoRef;
  const Ref scale = tree_.Mul(scalars);
  std::vector<Ref> elements = tree_[tuple].kids;
  for (Ref& element : elements) {
    if (!IsScalar(element)) return kNoRef;
    element = tree_.Mul({scale, element});
  }
  return tree_.New(Kind::kBracket, "()", std::move(elements));
}

// C(7, 2) and P(5, 2) against a value: the numbers of choices and of arrangements.
// Beside a value without it, the name of several small letters (\overline{abc}) is the number of those digits.
Ref Comparer::Counted(Ref ref, Ref other) {
  const Node node = tree_[ref];
  const bool digits = node.kind == Kind::kSymbol && node.text.size() > 1 && node.text.size() < 8 &&
                      node.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos &&
                      !HasName(tree_, other, node.text);
  if (digits && !IsGreek(node.text) && HasName(tree_, other, node.text.substr(0, 1))) {
    std::vector<Ref> terms;
    int64_t place = 1;
    for (size_t i = node.text.size(); i-- > 0; place *= 10) {
      terms.push_back(tree_.Mul({tree_.Number(Rational(place)), tree_.New(Kind::kSymbol, node.text.substr(i, 1), {})}));
    }
    return tree_.Add(terms);
  }
  const bool counts = node.kind == Kind::kApply && node.kids.size() == 2 && (node.text == "C" || node.text == "P") &&
                      !tree_.Is(other, Kind::kApply) && tree_.Is(node.kids[0], Kind::kNumber) &&
                      tree_.Is(node.kids[1], Kind::kNumber);
  if (!counts) return ref;
  const Rational n = tree_[node.kids[0]].value;
  const Rational k = tree_[node.kids[1]].value;
  if (!n.IsInteger() || !k.IsInteger() || k.Sign() < 0 || n < k) return ref;
  if (node.text == "C") return tree_.New(Kind::kFunction, "binom", node.kids);
  return tree_.Div(tree_.New(Kind::kFunction, "fact", {node.kids[0]}),
                   tree_.New(Kind::kFunction, "fact", {tree_.Number(n - k)}));
}

Ref Comparer::NormOf(const std::vector<Ref>& elements) {
  std::vector<Ref> squares;
  for (const Ref element : elements) {
    if (!IsScalar(element)) return kNoRef;
    squares.push_back(tree_.Pow(tree_.New(Kind::kFunction, "abs", {element}), tree_.Number(Rational(2))));
  }
  return tree_.Pow(tree_.Add(squares), tree_.Number(Rational(1, 2)));
}

}  // namespace iha::scoring::math
