#include "benchmarks/scoring/math/compare.h"

#include "benchmarks/scoring/math/clean.h"

namespace iha::scoring::math {
namespace {

constexpr int kMaxCompareDepth = 40;

// "all odd integers" are "odd integers", an "even function" is "even".
std::string SaidKey(const std::string& text) {
  std::string key = TextKey(text);
  if (key.starts_with("all ")) key.erase(0, 4);
  if (key.ends_with(" function")) key.erase(key.size() - 9);
  return key;
}

}  // namespace

Result Comparer::Compare(Ref a, Ref b) {
  if (a == kNoRef || b == kNoRef || tree_.full()) return Undecided("budget: nodes");
  if (--left_ < 0 || work_ < 0) return Undecided("budget: comparisons");
  if (depth_ >= kMaxCompareDepth) return Undecided("budget: depth");
  if (tree_.Key(a) == tree_.Key(b)) return Equal("same form");
  struct Guard {
    explicit Guard(int& level) : depth(level) { ++depth; }
    ~Guard() { --depth; }
    int& depth;
  } const guard(depth_);

  if (auto domains = CompareDomains(a, b)) return *std::move(domains);
  if (depth_ == 1) {  // whole answers
    if (auto families = CompareFamilies(a, b)) return *std::move(families);
  }
  if (auto region = CompareRegions(a, b)) return *std::move(region);
  const bool left_relation = tree_.Is(a, Kind::kRelation);
  const bool right_relation = tree_.Is(b, Kind::kRelation);
  const bool lists = tree_.Is(a, Kind::kList) || tree_.Is(b, Kind::kList) || Contains(tree_, a, Kind::kPlusMinus) ||
                     Contains(tree_, b, Kind::kPlusMinus);
  if (left_relation && right_relation && !lists) return CompareRelations(a, b);
  if ((left_relation || right_relation) && !(left_relation && right_relation) && !tree_.Is(a, Kind::kList) &&
      !tree_.Is(b, Kind::kList)) {
    Ref value = ValueOf(left_relation ? a : b);
    if (value == kNoRef) value = ValueOfIdentity(left_relation ? a : b);
    if (value == kNoRef) return Different("relation against a value");
    Result result = left_relation ? Compare(value, b) : Compare(a, value);
    if (result.outcome == MathOutcome::kEqual) result.rule = "name = value: " + result.rule;
    return result;
  }
  if (auto vectors = CompareVectors(a, b)) return *std::move(vectors);
  if (auto matrices = CompareMatrices(a, b)) return *std::move(matrices);
  if (auto collections = CompareCollections(a, b)) return *std::move(collections);
  if (left_relation || right_relation) return Different("relation");
  if (tree_.Is(a, Kind::kText) || tree_.Is(b, Kind::kText)) {
    // "\text{HHT}" is the name HHT.
    const auto word = [&](Ref ref) { return tree_.Is(ref, Kind::kText) || tree_.Is(ref, Kind::kSymbol); };
    const bool same = word(a) && word(b) && SaidKey(tree_[a].text) == SaidKey(tree_[b].text);
    return same ? Equal("text") : Different("text");
  }
  if (auto special = CompareSpecial(a, b)) return *std::move(special);
  if (tree_.Is(a, Kind::kBig) && tree_.Is(b, Kind::kBig)) return CompareBig(a, b);
  if (IsScalar(a) && IsScalar(b)) {
    const Ref left = Counted(a, b);
    return CompareScalars(left, Counted(b, a));
  }
  return Different("forms that don't compare");
}

}  // namespace iha::scoring::math
