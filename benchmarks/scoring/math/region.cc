// Intervals, unions, inequalities and set-builders of one variable as parts of the real line.
#include <flint/fmpq.h>
#include <flint/fmpz.h>

#include <algorithm>

#include "benchmarks/scoring/math/compare.h"

namespace iha::scoring::math {
namespace {

constexpr size_t kMaxPieces = 200;
constexpr const char* kSystem = "system";

End Infinite(int sign) { return {.infinite = sign, .value = kNoRef, .closed = false}; }

}  // namespace

std::optional<int> Comparer::OrderEnds(const End& a, const End& b) {
  if (a.infinite != 0 || b.infinite != 0) return a.infinite < b.infinite ? -1 : a.infinite > b.infinite ? 1 : 0;
  return OrderOf(tree_, a.value, b.value, work_);
}

// Sorted by lower end, empty pieces gone, touching pieces joined.
std::optional<Region> Comparer::Canonical(Region region) {
  if (region.pieces.size() > kMaxPieces) return std::nullopt;
  std::vector<Piece> kept;
  for (const Piece& piece : region.pieces) {
    const auto order = OrderEnds(piece.low, piece.high);
    if (!order.has_value()) return std::nullopt;
    if (*order > 0 || (*order == 0 && !(piece.low.closed && piece.high.closed))) continue;
    // Insertion keeps a failing comparison from confusing a library sort.
    size_t at = kept.size();
    while (at > 0) {
      const auto before = OrderEnds(kept[at - 1].low, piece.low);
      if (!before.has_value()) return std::nullopt;
      if (*before < 0 || (*before == 0 && (kept[at - 1].low.closed || !piece.low.closed))) break;
      --at;
    }
    kept.insert(kept.begin() + static_cast<ptrdiff_t>(at), piece);
  }
  std::vector<Piece> merged;
  for (const Piece& piece : kept) {
    if (!merged.empty()) {
      Piece& last = merged.back();
      const auto gap = OrderEnds(last.high, piece.low);
      if (!gap.has_value()) return std::nullopt;
      if (*gap > 0 || (*gap == 0 && (last.high.closed || piece.low.closed))) {
        const auto reach = OrderEnds(last.high, piece.high);
        if (!reach.has_value()) return std::nullopt;
        if (*reach < 0) {
          last.high = piece.high;
        } else if (*reach == 0) {
          last.high.closed = last.high.closed || piece.high.closed;
        }
        continue;
      }
    }
    merged.push_back(piece);
  }
  region.pieces = std::move(merged);
  return region;
}

std::optional<Region> Comparer::Join(const Region& a, const Region& b, bool intersect) {
  if (!a.variable.empty() && !b.variable.empty() && a.variable != b.variable) return std::nullopt;
  Region out;
  out.variable = a.variable.empty() ? b.variable : a.variable;
  out.explicit_set = a.explicit_set || b.explicit_set;
  if (!intersect) {
    out.pieces = a.pieces;
    out.pieces.insert(out.pieces.end(), b.pieces.begin(), b.pieces.end());
    return Canonical(std::move(out));
  }
  if (a.pieces.size() * b.pieces.size() > kMaxPieces) return std::nullopt;
  for (const Piece& x : a.pieces) {
    for (const Piece& y : b.pieces) {
      const auto low = OrderEnds(x.low, y.low);
      const auto high = OrderEnds(x.high, y.high);
      if (!low.has_value() || !high.has_value()) return std::nullopt;
      Piece piece;
      piece.low = *low > 0 ? x.low : y.low;
      piece.high = *high < 0 ? x.high : y.high;
      if (*low == 0) piece.low.closed = x.low.closed && y.low.closed;
      if (*high == 0) piece.high.closed = x.high.closed && y.high.closed;
      out.pieces.push_back(piece);
    }
  }
  return Canonical(std::move(out));
}

std::optional<Region> Comparer::Without(const Region& a, const Region& b) {
  Region rest;
  rest.variable = b.variable;
  End low = Infinite(-1);
  for (const Piece& piece : b.pieces) {
    End high = piece.low;
    high.closed = high.infinite == 0 && !piece.low.closed;
    if (piece.low.infinite == 0) rest.pieces.push_back({low, high});
    low = piece.high;
    low.closed = low.infinite == 0 && !piece.high.closed;
    if (piece.high.infinite > 0) return Join(a, rest, true);
  }
  rest.pieces.push_back({low, Infinite(1)});
  return Join(a, rest, true);
}

std::optional<Region> Comparer::RegionOfBracket(Ref ref) {
  const Node node = tree_[ref];
  if (node.kids.size() != 2 || node.text.size() != 2 || node.text == "<>") return std::nullopt;
  Region region;
  Piece piece;
  for (const int side : {0, 1}) {
    End& end = side == 0 ? piece.low : piece.high;
    const Ref kid = node.kids[static_cast<size_t>(side)];
    end.infinite = InfinitySign(kid);
    if (end.infinite == 0 && (!IsScalar(kid) || HasSymbols(tree_, kid))) return std::nullopt;
    end.value = kid;
    end.closed = end.infinite == 0 && node.text[static_cast<size_t>(side)] == (side == 0 ? '[' : ']');
    region.explicit_set = region.explicit_set || end.infinite != 0;
  }
  region.explicit_set = region.explicit_set || node.text == "(]" || node.text == "[)";
  const auto order = OrderEnds(piece.low, piece.high);
  if (!order.has_value() || *order >= 0) return std::nullopt;
  region.pieces.push_back(piece);
  return region;
}

std::optional<Region> Comparer::RegionOfRelation(Ref ref) {
  const Node node = tree_[ref];
  // "x \ne \pm 3": neither of the two.
  std::vector<Ref> excluded;
  if (node.text == "!" && ExpandSigns(node.kids[1], excluded)) {
    for (Ref& value : excluded) value = tree_.New(Kind::kRelation, "!", {node.kids[0], value});
    return RegionOfList(excluded, "and");
  }
  // "D = \mathbb{R} \setminus \{0\}": a name of the set, not of what lies in it.
  const Kind kind = tree_.kind(node.kids.back());
  const bool set = kind == Kind::kUnion || kind == Kind::kMinus || kind == Kind::kSetBuilder ||
                   kind == Kind::kBracket || kind == Kind::kNamedSet;
  if (node.text == "=" && set && IsName(node.kids[0])) {
    auto region = RegionOf(node.kids[1]);
    if (region.has_value()) region->variable = "=" + tree_.Key(node.kids[0]);
    return region;
  }
  std::optional<Region> out;
  for (size_t i = 0; i < node.text.size(); ++i) {
    std::optional<Region> link;
    if (node.text[i] == 'e') {
      if (!tree_.Is(node.kids[i], Kind::kSymbol) && !tree_.Is(node.kids[i], Kind::kApply)) return std::nullopt;
      link = RegionOf(node.kids[i + 1]);
      if (!link.has_value() || !link->variable.empty()) return std::nullopt;
      link->variable = tree_.Key(node.kids[i]);
      link->explicit_set = true;
    } else if (std::string_view("<>lg=!").find(node.text[i]) != std::string_view::npos) {
      link = Solve(node.kids[i], node.text[i], node.kids[i + 1]);
    }
    if (!link.has_value()) return std::nullopt;
    out = out.has_value() ? Join(*out, *link, true) : link;
    if (!out.has_value()) return std::nullopt;
  }
  return out;
}

// "or" joins; "and" and a comma narrow down, unless nothing is left then ("x < -1 and x > 1"); a system always narrows.
std::optional<Region> Comparer::RegionOfList(const std::vector<Ref>& kids, const std::string& mark) {
  std::optional<Region> narrow;
  std::optional<Region> wide;
  bool all_relations = true;
  Ref excluded = kNoRef;  // "x \\ne 2, 3": the name that all the values are excluded from
  for (Ref kid : kids) {
    if (tree_.Is(kid, Kind::kRelation) && tree_[kid].text == "!") excluded = tree_[kid].kids[0];
    if (excluded != kNoRef && IsScalar(kid)) kid = tree_.New(Kind::kRelation, "!", {excluded, kid});
    const auto part = RegionOf(kid);
    if (!part.has_value()) return std::nullopt;
    all_relations = all_relations && tree_.Is(kid, Kind::kRelation) && tree_[kid].text != "=";
    narrow = narrow.has_value() ? Join(*narrow, *part, true) : part;
    wide = wide.has_value() ? Join(*wide, *part, false) : part;
    if (!narrow.has_value() || !wide.has_value()) return std::nullopt;
  }
  if (mark == kSystem || (all_relations && mark != "or" && !narrow->pieces.empty())) return narrow;
  return wide;
}

// \mathbb{R}, \mathbb{R}^+, \mathbb{R}_{\ge 0}, ...
std::optional<Region> Comparer::RegionOfNamedSet(const std::string& name) {
  Region region;
  region.explicit_set = true;
  if (name == "R") {
    region.pieces.push_back({Infinite(-1), Infinite(1)});
    return region;
  }
  if (name.size() != 3 || name[0] != 'R') return std::nullopt;
  const char sign = name[2];
  const End end{.infinite = 0, .value = tree_.Number(Rational(0)), .closed = sign == 'g' || sign == 'l'};
  if (sign == '*') {
    region.pieces = {{Infinite(-1), end}, {end, Infinite(1)}};
    return region;
  }
  if (sign == '+' || sign == '>' || sign == 'g') {
    region.pieces.push_back({end, Infinite(1)});
  } else if (sign == '-' || sign == '<' || sign == 'l') {
    region.pieces.push_back({Infinite(-1), end});
  } else {
    return std::nullopt;
  }
  return region;
}

// Whole numbers are no part of the line.
std::optional<Region> Comparer::RegionOfBuilder(const Node& builder) {
  Ref element = builder.kids[0];
  if (tree_.Is(element, Kind::kRelation)) {
    const Node inner = tree_[element];
    if (inner.text != "e" || !tree_.Is(inner.kids[1], Kind::kNamedSet) || tree_[inner.kids[1]].text != "R") {
      return std::nullopt;
    }
    element = inner.kids[0];
  }
  auto region = RegionOf(builder.kids[1]);
  if (!region.has_value() || region->variable != tree_.Key(element)) return std::nullopt;
  region->variable.clear();
  region->explicit_set = true;
  return region;
}

std::optional<Region> Comparer::RegionOfPoints(const std::vector<Ref>& values) {
  Region region;
  for (const Ref value : values) {
    if (!IsScalar(value) || HasSymbols(tree_, value) || InfinitySign(value) != 0) return std::nullopt;
    const End end{.infinite = 0, .value = value, .closed = true};
    region.pieces.push_back({end, end});
  }
  return Canonical(std::move(region));
}

std::optional<Region> Comparer::RegionOfJoined(const std::vector<Ref>& sets, bool intersect) {
  std::optional<Region> out;
  for (const Ref set : sets) {
    const auto part = RegionOf(set);
    if (!part.has_value()) return std::nullopt;
    out = out.has_value() ? Join(*out, *part, intersect) : part;
    if (!out.has_value()) return std::nullopt;
  }
  if (out.has_value()) out->explicit_set = true;
  return out;
}

// \begin{cases} x > 1 \\ x < 3 \end{cases}: inequalities that hold together.
bool Comparer::IsSystem(const Node& node) const {
  return node.text == "cases" && node.kids.size() == static_cast<size_t>(node.rows) &&
         std::all_of(node.kids.begin(), node.kids.end(), [&](Ref kid) {
           return tree_.Is(kid, Kind::kRelation) && tree_[kid].text.find('=') == std::string::npos;
         });
}

std::optional<Region> Comparer::RegionOf(Ref ref) {
  if (ref == kNoRef) return std::nullopt;
  const Node node = tree_[ref];
  switch (node.kind) {
    case Kind::kBracket:
      return RegionOfBracket(ref);
    case Kind::kRelation:
      return RegionOfRelation(ref);
    case Kind::kList:
      return RegionOfList(node.kids, node.text);
    case Kind::kMatrix:
      return IsSystem(node) ? RegionOfList(node.kids, kSystem) : std::nullopt;
    case Kind::kSet:
      return RegionOfPoints(node.kids);
    case Kind::kNamedSet:
      return RegionOfNamedSet(node.text);
    case Kind::kSetBuilder:
      return RegionOfBuilder(node);
    case Kind::kUnion:
    case Kind::kIntersect:
      return RegionOfJoined(node.kids, node.kind == Kind::kIntersect);
    case Kind::kMinus: {
      const auto whole = RegionOf(node.kids[0]);
      const auto hole = whole.has_value() ? RegionOf(node.kids[1]) : std::nullopt;
      if (!hole.has_value()) return std::nullopt;
      auto out = Without(*whole, *hole);
      if (out.has_value()) out->explicit_set = true;
      return out;
    }
    default:
      return std::nullopt;
  }
}

// {x in Z | 1 <= x <= 3} as {1, 2, 3}; kNoRef for anything else or more than kMaxPieces numbers.
Ref Comparer::WholeNumbers(Ref builder) {
  const std::vector<Ref> kids = tree_[builder].kids;
  if (!tree_.Is(kids[0], Kind::kRelation) || tree_[kids[0]].text != "e") return kNoRef;
  const std::vector<Ref> membership = tree_[kids[0]].kids;
  const bool naturals = tree_[membership[1]].text == "N" || tree_[membership[1]].text == "Z^+";
  if (!tree_.Is(membership[1], Kind::kNamedSet) || (!naturals && tree_[membership[1]].text != "Z")) return kNoRef;
  auto region = RegionOf(kids[1]);
  // What has no least number begins with 0, or with 1 where 0 is out.
  if (naturals && region.has_value() && !region->pieces.empty() && region->pieces[0].low.infinite < 0) {
    const Rational least(tree_[membership[1]].text == "N" ? 0 : 1);
    region->pieces[0].low = {.infinite = 0, .value = tree_.Number(least), .closed = true};
  }
  if (!region.has_value() || region->variable != tree_.Key(membership[0])) return kNoRef;
  std::vector<Ref> numbers;
  for (const Piece& piece : region->pieces) {
    const bool ends = piece.low.infinite == 0 && piece.high.infinite == 0 && tree_.Is(piece.low.value, Kind::kNumber) &&
                      tree_.Is(piece.high.value, Kind::kNumber);
    if (!ends || (naturals && tree_[piece.low.value].value.Sign() < 0)) return kNoRef;
    if (tree_[membership[1]].text == "Z^+" && tree_[piece.low.value].value.Sign() < 1) return kNoRef;
    const Rational low = tree_[piece.low.value].value;
    const Rational high = tree_[piece.high.value].value;
    Rational at;
    fmpz_cdiv_q(fmpq_numref(at.mutable_raw()), fmpq_numref(low.raw()), fmpq_denref(low.raw()));
    if (at == low && !piece.low.closed) at += Rational(1);
    for (; at < high || (at == high && piece.high.closed); at += Rational(1)) {
      if (numbers.size() >= kMaxPieces) return kNoRef;
      numbers.push_back(tree_.Number(at));
    }
  }
  return tree_.New(Kind::kSet, "", std::move(numbers));
}

Result Comparer::ComparePieces(const Region& a, const Region& b) {
  if (a.pieces.size() != b.pieces.size()) return Different("region");
  Result out = Equal("region");
  for (size_t i = 0; i < a.pieces.size(); ++i) {
    const End* left[] = {&a.pieces[i].low, &a.pieces[i].high};
    const End* right[] = {&b.pieces[i].low, &b.pieces[i].high};
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (left[side]->infinite != right[side]->infinite || left[side]->closed != right[side]->closed)
        return Different("region");
      if (left[side]->infinite != 0) continue;
      const Result end = CompareScalars(left[side]->value, right[side]->value);
      if (end.outcome == MathOutcome::kDifferent) return Different("region");
      if (end.outcome == MathOutcome::kUndecided) out = end;
    }
  }
  return out;
}

// nullopt: they aren't both parts of the line, or nothing says that a set is meant.
std::optional<Result> Comparer::CompareRegions(Ref a, Ref b) {
  const auto left = RegionOf(a);
  if (!left.has_value()) return std::nullopt;
  const auto right = RegionOf(b);
  if (!right.has_value() || !(left->explicit_set || right->explicit_set)) return std::nullopt;
  const bool unnamed = left->variable.empty() || right->variable.empty() || left->variable == "?" ||
                       right->variable == "?" || left->variable.starts_with('=') != right->variable.starts_with('=');
  if (!unnamed && left->variable != right->variable) return Different("region of another name");
  return ComparePieces(*left, *right);
}

}  // namespace iha::scoring::math
