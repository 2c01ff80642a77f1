// compare.h: equal, different or undecided, for two parsed answers in one tree. The rules are in docs/grading.md.
//
// Symmetric up to the order of work: callers pass the two sides in a fixed order. Bounded by the tree's budget. Used by
// math_robust.cc; the parts live in scalar.cc, region.cc, inequalities.cc, rewrite.cc, conditions.cc, vectors.cc,
// compare*.cc.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "benchmarks/scoring/math/balls.h"
#include "benchmarks/scoring/math/node.h"

namespace iha::scoring::math {

struct Result {
  MathOutcome outcome = MathOutcome::kUndecided;
  std::string rule;
};
inline Result Equal(std::string rule) { return {MathOutcome::kEqual, std::move(rule)}; }
inline Result Different(std::string rule) { return {MathOutcome::kDifferent, std::move(rule)}; }
inline Result Undecided(std::string rule) { return {MathOutcome::kUndecided, std::move(rule)}; }

// One end of an interval: a value, or minus or plus infinity.
struct End {
  int infinite = 0;  // -1, 0, 1
  Ref value = kNoRef;
  bool closed = false;
};
struct Piece {
  End low;
  End high;
};
// A part of the real line: disjoint pieces in order, none touching the next. `variable` is the Key of what lies in it,
// "" for a bare set.
struct Region {
  std::vector<Piece> pieces;
  std::string variable;
  bool explicit_set = false;  // a form that can only be read as a set (not a pair (a, b) or a list)
};

class Comparer {
 public:
  explicit Comparer(Tree& tree) : tree_(tree), work_(tree.budget().ball_work), left_(tree.budget().comparisons) {}

  Result Compare(Ref a, Ref b);

  // rewrite.cc: the forms that compare as others: approximations and chains of equations dropped, sums and products of
  // matrices carried out, groups of assignments as tuples.
  Ref Rewrite(Ref ref);

  // conditions.cc: readings of whole answers.
  Ref TupleOfNames(Ref chain);
  std::optional<Result> CompareDerivatives(Ref a, Ref b);

 private:
  // scalar.cc
  Result CompareScalars(Ref a, Ref b);
  Result CompareValues(Ref a, Ref b);
  bool DecimalEqual(Ref literal, Ref value);
  int InfinitySign(Ref ref) const;  // -1, 1, or 0 for finite values
  std::string Unevaluated(Ref ref) const;
  std::string WhyNot(Ref a, Ref b) const;
  bool IsScalar(Ref ref) const;

  // region.cc
  std::optional<Region> RegionOf(Ref ref);
  std::optional<Region> RegionOfRelation(Ref ref);
  std::optional<Region> RegionOfList(const std::vector<Ref>& kids, const std::string& mark);
  std::optional<Region> RegionOfBracket(Ref ref);
  std::optional<Region> RegionOfNamedSet(const std::string& name);
  std::optional<Region> RegionOfPoints(const std::vector<Ref>& values);
  std::optional<Region> RegionOfJoined(const std::vector<Ref>& sets, bool intersect);
  std::optional<Region> RegionOfBuilder(const Node& builder);
  bool IsSystem(const Node& node) const;
  std::optional<Region> Join(const Region& a, const Region& b, bool intersect);
  std::optional<Region> Without(const Region& a, const Region& b);
  std::optional<Region> Canonical(Region region);
  std::optional<int> OrderEnds(const End& a, const End& b);
  std::optional<Result> CompareRegions(Ref a, Ref b);
  Ref WholeNumbers(Ref builder);
  Result ComparePieces(const Region& a, const Region& b);

  // inequalities.cc. `mark` is one of < > l(<=) g(>=) = !; nullopt: not of one variable, or not solved.
  std::optional<Region> Solve(Ref left, char mark, Ref right);
  std::optional<Region> SolveAbsolute(Ref left, char mark, Ref right);
  std::optional<Region> SolveRational(Ref left, char mark, Ref right);
  std::optional<Region> SolveLinear(Ref left, char mark, Ref right);
  std::optional<Region> RayOf(const std::string& variable, char mark, Ref bound);

  // compare_relations.cc
  bool IsName(Ref ref) const;
  bool IsNameSum(Ref ref) const;
  Ref ValueOf(Ref relation) const;  // kNoRef: it has no value
  Ref ValueOfIdentity(Ref ref) const;
  Result CompareRelations(Ref a, Ref b);
  Result CompareEquations(Ref a, Ref b);
  std::vector<Ref> Links(Ref relation);
  Result CompareLinks(Ref a, Ref b);
  Result CompareNamed(Ref a, Ref b);

  // compare_lists.cc
  std::vector<Ref> Items(Ref ref);
  bool ExpandSigns(Ref ref, std::vector<Ref>& out);
  std::vector<Ref> Distinct(std::vector<Ref> items);
  Result CompareInOrder(const std::vector<Ref>& a, const std::vector<Ref>& b, const char* rule);
  Result CompareUnordered(std::vector<Ref> a, std::vector<Ref> b, const char* rule);
  Ref AsCollection(Ref ref, Ref other);
  std::vector<Ref> Elements(Ref set);
  Result CompareSets(Ref a, Ref b);
  Result CompareTupleWithList(Ref a, Ref b);
  Result CompareLists(Ref a, Ref b);
  std::optional<Result> CompareCollections(Ref a, Ref b);
  Result CompareBrackets(Ref a, Ref b);
  bool IsListOfRows(Ref ref, size_t rows) const;
  std::vector<Ref> CellsOf(Ref rows) const;
  Result CompareCases(const Node& x, const Node& y);
  std::optional<Result> CompareMatrices(Ref a, Ref b);
  Ref Remainder(Ref mod);
  Result CompareRatios(Ref a, Ref b);
  Result CompareBig(Ref a, Ref b);
  Result CompareBuilders(Ref a, Ref b);
  std::optional<Result> CompareSpecial(Ref a, Ref b);

  // vectors.cc
  bool HasUnitVectors(Ref ref) const;
  std::optional<std::vector<Ref>> Components(Ref ref, size_t size, bool plain_letters);
  std::optional<Result> CompareVectors(Ref a, Ref b);
  Ref AsMatrix(Ref ref, const Node& matrix);
  Ref AddTuples(const std::vector<Ref>& kids);
  Ref ScaleTuple(const std::vector<Ref>& kids);
  Ref Counted(Ref ref, Ref other);
  Ref NormOf(const std::vector<Ref>& elements);

  // conditions.cc
  struct Stated {
    Ref value = kNoRef;
    std::vector<Ref> domains;
  };
  Stated WithoutDomains(Ref ref);
  Ref WithParameterOf(const Stated& stated, Ref value);
  std::optional<Result> CompareFamilies(Ref a, Ref b);
  std::optional<Result> CompareDomains(Ref a, Ref b);
  std::vector<Ref> WithoutDots(const std::vector<Ref>& kids);
  Ref WithPrimes(Ref ref, std::set<std::string>& variables);

  // rewrite.cc
  Ref RewriteRelation(Ref ref);
  Ref RewriteFunction(const Node& node);
  Ref RewriteList(const Node& node);
  Ref AddMatrices(const std::vector<Ref>& kids);
  Ref MultiplyMatrices(const std::vector<Ref>& kids);
  Ref Determinant(const std::vector<Ref>& cells, size_t n);
  Ref Transpose(const Node& matrix);
  Ref Inverse(const Node& matrix);
  Ref RepeatedNames(const Node& list);
  Ref MatrixPower(Ref matrix, Ref exponent);

  Tree& tree_;
  int64_t work_;
  int64_t left_;
  int depth_ = 0;
};

}  // namespace iha::scoring::math
