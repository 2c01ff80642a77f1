// Forms that compare as others (compare.h, Rewrite).
#include <algorithm>

#include "benchmarks/scoring/math/compare.h"

namespace iha::scoring::math {
namespace {

constexpr size_t kMaxDeterminant = 4;
constexpr int64_t kMaxMatrixPower = 12;

}  // namespace

// What follows \approx goes when an exact value stands before it; a chain of = counts as its last member.
Ref Comparer::RewriteRelation(Ref ref) {
  Node node = tree_[ref];
  const size_t about = node.text.find('~');
  if (about != std::string::npos) {
    if (about == 0 && IsName(node.kids[0])) {
      node.text[0] = '=';
      const size_t next = node.text.find('~');
      if (next != std::string::npos) {
        node.text.resize(next);
        node.kids.resize(next + 1);
      }
    } else {
      node.text.resize(about);
      node.kids.resize(about + 1);
    }
  }
  if (node.kids.size() == 1) return node.kids[0];
  // "2 + 3 = 5": a statement of numbers alone is worth its last.
  if (node.text == "=" && IsScalar(node.kids[0]) && IsScalar(node.kids[1]) && !HasSymbols(tree_, node.kids[0]) &&
      !HasSymbols(tree_, node.kids[1])) {
    return node.kids[1];
  }
  if (node.text.size() > 1 && node.text.find_first_not_of('=') == std::string::npos) {
    const Ref last = node.kids.back();
    return IsName(node.kids[0]) ? tree_.New(Kind::kRelation, "=", {node.kids[0], last}) : last;
  }
  return tree_.New(Kind::kRelation, node.text, node.kids);
}

Ref Comparer::AddMatrices(const std::vector<Ref>& kids) {
  const Node first = tree_[kids[0]];
  std::vector<Ref> cells = first.kids;
  for (size_t i = 1; i < kids.size(); ++i) {
    const Node& other = tree_[kids[i]];
    if (other.kind != Kind::kMatrix || other.rows != first.rows || other.kids.size() != cells.size()) return kNoRef;
    const std::vector<Ref> more = other.kids;
    for (size_t c = 0; c < cells.size(); ++c) cells[c] = tree_.Add({cells[c], more[c]});
  }
  return tree_.Matrix(first.text, first.rows, std::move(cells));
}

// Scalars scale, matrices multiply from the left to the right.
Ref Comparer::MultiplyMatrices(const std::vector<Ref>& kids) {
  std::vector<Ref> scalars;
  Ref product = kNoRef;
  for (const Ref kid : kids) {
    if (!tree_.Is(kid, Kind::kMatrix)) {
      scalars.push_back(kid);
      continue;
    }
    if (product == kNoRef) {
      product = kid;
      continue;
    }
    const Node a = tree_[product];
    const Node b = tree_[kid];
    const size_t rows = static_cast<size_t>(a.rows);
    const size_t inner = a.kids.size() / rows;
    if (inner != static_cast<size_t>(b.rows)) return kNoRef;
    const size_t columns = b.kids.size() / inner;
    if (rows * columns * inner > 4096) return kNoRef;
    std::vector<Ref> cells;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        std::vector<Ref> terms;
        for (size_t k = 0; k < inner; ++k) terms.push_back(tree_.Mul({a.kids[r * inner + k], b.kids[k * columns + c]}));
        cells.push_back(tree_.Add(terms));
      }
    }
    product = tree_.Matrix(a.text, a.rows, std::move(cells));
    if (product == kNoRef) return kNoRef;
  }
  if (scalars.empty()) return product;
  const Ref scale = tree_.Mul(scalars);
  Node node = tree_[product];
  for (Ref& cell : node.kids) cell = tree_.Mul({scale, cell});
  return tree_.Matrix(node.text, node.rows, std::move(node.kids));
}

Ref Comparer::Determinant(const std::vector<Ref>& cells, size_t n) {
  if (n == 1) return cells[0];
  std::vector<Ref> terms;
  for (size_t column = 0; column < n; ++column) {
    std::vector<Ref> minor;
    for (size_t r = 1; r < n; ++r) {
      for (size_t c = 0; c < n; ++c) {
        if (c != column) minor.push_back(cells[r * n + c]);
      }
    }
    const Ref term = tree_.Mul({cells[column], Determinant(minor, n - 1)});
    terms.push_back(column % 2 == 0 ? term : tree_.Neg(term));
  }
  return tree_.Add(terms);
}

Ref Comparer::Transpose(const Node& matrix) {
  const auto rows = static_cast<size_t>(matrix.rows);
  const size_t columns = matrix.kids.size() / rows;
  std::vector<Ref> cells;
  for (size_t c = 0; c < columns; ++c) {
    for (size_t r = 0; r < rows; ++r) cells.push_back(matrix.kids[r * columns + c]);
  }
  return tree_.Matrix(matrix.text, static_cast<int32_t>(columns), std::move(cells));
}

// Cofactors over the determinant; kNoRef where that is zero, or for what is large or no square.
Ref Comparer::Inverse(const Node& matrix) {
  const auto n = static_cast<size_t>(matrix.rows);
  if (n < 2 || n > kMaxDeterminant || n * n != matrix.kids.size()) return kNoRef;
  const Ref determinant = Determinant(matrix.kids, n);
  if (determinant == kNoRef || tree_.IsNumber(determinant, 0)) return kNoRef;
  std::vector<Ref> cells;
  for (size_t row = 0; row < n; ++row) {
    for (size_t column = 0; column < n; ++column) {
      std::vector<Ref> minor;
      for (size_t r = 0; r < n; ++r) {
        for (size_t c = 0; c < n; ++c) {
          if (r != column && c != row) minor.push_back(matrix.kids[r * n + c]);
        }
      }
      const Ref cofactor = Determinant(minor, n - 1);
      cells.push_back(tree_.Div((row + column) % 2 == 0 ? cofactor : tree_.Neg(cofactor), determinant));
    }
  }
  return tree_.Matrix(matrix.text, matrix.rows, std::move(cells));
}

// kNoRef: a power that is not carried out.
Ref Comparer::MatrixPower(Ref matrix, Ref exponent) {
  const Node node = tree_[matrix];
  if (tree_.Is(exponent, Kind::kSymbol)) {
    const std::string& mark = tree_[exponent].text;
    return mark == "T" || mark == "t" || mark == "top" || mark == "intercal" ? Transpose(node) : kNoRef;
  }
  if (tree_.IsNumber(exponent, -1)) return Inverse(node);
  for (int64_t n = 2; n <= kMaxMatrixPower; ++n) {
    if (tree_.IsNumber(exponent, n)) return MultiplyMatrices(std::vector<Ref>(static_cast<size_t>(n), matrix));
  }
  return kNoRef;
}

// "x=3, y=4 or x=4, y=3": the names come again, each round is a tuple. kNoRef for any other list.
Ref Comparer::RepeatedNames(const Node& list) {
  std::vector<std::string> names;
  for (const Ref kid : list.kids) {
    if (ValueOf(kid) == kNoRef || tree_[kid].text != "=" || !tree_.Is(tree_[kid].kids[0], Kind::kSymbol)) return kNoRef;
    names.push_back(tree_[tree_[kid].kids[0]].text);
  }
  const auto again = names.empty() ? names.end() : std::find(names.begin() + 1, names.end(), names[0]);
  const auto period = static_cast<size_t>(again - names.begin());
  if (again == names.end() || period < 2 || names.size() % period != 0) return kNoRef;
  std::vector<Ref> tuples;
  for (size_t i = 0; i < names.size(); i += period) {
    std::vector<Ref> values;
    for (size_t j = i; j < i + period; ++j) {
      if (names[j] != names[j - i]) return kNoRef;
      values.push_back(ValueOf(list.kids[j]));
    }
    tuples.push_back(tree_.New(Kind::kBracket, "()", std::move(values)));
  }
  return tree_.New(Kind::kList, ",", std::move(tuples));
}

// Determinants and norms of what is written out.
Ref Comparer::RewriteFunction(const Node& node) {
  if (node.kids.empty()) return kNoRef;
  if (node.text == "diag" && node.kids.size() > 1 && node.kids.size() <= 2 * kMaxDeterminant) {
    const size_t n = node.kids.size();
    std::vector<Ref> cells(n * n, tree_.Number(Rational(0)));
    for (size_t i = 0; i < n; ++i) cells[i * (n + 1)] = node.kids[i];
    return tree_.Matrix("p", static_cast<int32_t>(n), std::move(cells));
  }
  const Node inner = tree_[node.kids[0]];
  const bool norm = (node.text == "norm" || node.text == "abs") && node.kids.size() == 1;
  if (inner.kind == Kind::kMatrix && inner.text != "cases") {
    const auto n = static_cast<size_t>(inner.rows);
    const bool square = n <= kMaxDeterminant && n * n == inner.kids.size();
    if ((node.text == "det" || node.text == "abs") && square) return Determinant(inner.kids, n);
    if (norm && (n == 1 || n == inner.kids.size())) return NormOf(inner.kids);
  }
  return norm && inner.kind == Kind::kBracket ? NormOf(inner.kids) : kNoRef;
}

// "p=5,q=2;p=7,q=2" is a list of tuples, as are names that come again.
Ref Comparer::RewriteList(const Node& node) {
  if (node.text != ";") return RepeatedNames(node);
  std::vector<Ref> groups = node.kids;
  for (Ref& group : groups) {
    if (!tree_.Is(group, Kind::kList)) continue;
    std::vector<Ref> elements = tree_[group].kids;
    for (Ref& element : elements) {
      const Ref value = ValueOf(element);
      if (value != kNoRef) element = value;
    }
    group = tree_.New(Kind::kBracket, "()", std::move(elements));
  }
  return tree_.New(Kind::kList, ",", std::move(groups));
}

Ref Comparer::Rewrite(Ref ref) {
  if (ref == kNoRef || tree_[ref].kids.empty()) return ref;
  std::vector<Ref> kids = tree_[ref].kids;
  bool changed = false;
  for (Ref& kid : kids) {
    const Ref now = Rewrite(kid);
    changed = changed || now != kid;
    kid = now;
  }
  if (changed) ref = tree_.WithKids(ref, kids);
  if (ref == kNoRef) return kNoRef;
  const Node node = tree_[ref];
  const auto is_matrix = [&](Ref kid) { return tree_.Is(kid, Kind::kMatrix) && tree_[kid].text != "cases"; };
  const bool matrices = std::any_of(node.kids.begin(), node.kids.end(), is_matrix);
  const bool tuples =
      std::any_of(node.kids.begin(), node.kids.end(), [&](Ref kid) { return tree_.Is(kid, Kind::kBracket); });
  Ref better = kNoRef;
  if (node.kind == Kind::kList || node.kind == Kind::kSet || node.kind == Kind::kBracket) {
    std::vector<Ref> whole = WithoutDots(node.kids);
    if (!whole.empty()) return tree_.New(node.kind, node.text, std::move(whole));
  }
  switch (node.kind) {
    case Kind::kRelation:
      return RewriteRelation(ref);
    case Kind::kAdd:
      if (matrices && is_matrix(node.kids[0])) better = AddMatrices(node.kids);
      if (tuples) better = AddTuples(node.kids);
      break;
    case Kind::kMul:
      if (matrices) better = MultiplyMatrices(node.kids);
      if (tuples && !matrices) better = ScaleTuple(node.kids);
      break;
    case Kind::kPow:
      if (is_matrix(node.kids[0])) better = MatrixPower(node.kids[0], node.kids[1]);
      // (1, 2)^T
      if (tree_.Is(node.kids[0], Kind::kBracket) && tree_.Is(node.kids[1], Kind::kSymbol) &&
          (tree_[node.kids[1]].text == "T" || tree_[node.kids[1]].text == "top")) {
        better = tree_.New(Kind::kBracket, "()", tree_[node.kids[0]].kids);
      }
      break;
    case Kind::kFunction:
      better = RewriteFunction(node);
      break;
    case Kind::kSetBuilder:
      better = WholeNumbers(ref);
      break;
    case Kind::kMatrix: {
      const auto n = static_cast<size_t>(node.rows);
      if (node.text == "v" && n <= kMaxDeterminant && n * n == node.kids.size()) better = Determinant(node.kids, n);
      break;
    }
    case Kind::kList:
      better = RewriteList(node);
      break;
    default:
      break;
  }
  return better == kNoRef ? ref : better;
}

}  // namespace iha::scoring::math
