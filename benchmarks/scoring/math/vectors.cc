// Vectors in i, j, k, their lengths, and counts written as C(n, k) and P(n, k).
#include <algorithm>

#include "benchmarks/scoring/math/compare.h"
#include "benchmarks/scoring/math/exact.h"

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
  if (!left && !right) return std::nullopt;
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

// C(7, 2) and P(5, 2) against a value: the numbers of choices and of arrangements.
Ref Comparer::Counted(Ref ref, Ref other) {
  const Node node = tree_[ref];
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
