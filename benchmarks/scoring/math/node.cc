#include "benchmarks/scoring/math/node.h"

#include <flint/fmpq.h>
#include <flint/fmpz.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace iha::scoring::math {
namespace {

constexpr int64_t kMaxRootIndex = 64;

int64_t Bits(const Rational& value) {
  return static_cast<int64_t>(fmpz_bits(fmpq_numref(value.raw())) + fmpz_bits(fmpq_denref(value.raw())));
}

// value^(1/index) when that is rational.
bool ExactRoot(const Rational& value, int64_t index, Rational& out) {
  const bool negative = value.Sign() < 0;
  if (negative && index % 2 == 0) return false;
  const auto root = [index](fmpz* result, const fmpz* of) {
    return fmpz_root(result, of, static_cast<slong>(index)) != 0;
  };
  Rational magnitude = value;
  fmpq_abs(magnitude.mutable_raw(), magnitude.raw());
  fmpq* r = out.mutable_raw();
  if (!root(fmpq_numref(r), fmpq_numref(magnitude.raw()))) return false;
  if (!root(fmpq_denref(r), fmpq_denref(magnitude.raw()))) return false;
  if (negative) fmpq_neg(r, r);
  return true;
}

bool Commutes(const Node& node) {
  const Kind kind = node.kind;
  const bool function =
      kind == Kind::kFunction && (node.text == "gcd" || node.text == "lcm" || node.text == "max" || node.text == "min");
  return function || kind == Kind::kAdd || kind == Kind::kMul || kind == Kind::kSet || kind == Kind::kUnion ||
         kind == Kind::kIntersect;
}

}  // namespace

Tree::Tree(const MathBudget& budget) : budget_(budget) { nodes_.emplace_back(); }

bool Tree::IsNumber(Ref ref, int64_t value) const {
  return Is(ref, Kind::kNumber) && (*this)[ref].value == Rational(value);
}

bool Tree::IsConstant(Ref ref, std::string_view name) const {
  return Is(ref, Kind::kConstant) && (*this)[ref].text == name;
}

bool Tree::BitsFit(const Rational& value) const { return Bits(value) <= budget_.bignum_bits; }

Ref Tree::New(Kind kind, std::string text, std::vector<Ref> kids) {
  if (full_ || static_cast<int64_t>(nodes_.size() + kids.size()) >= budget_.nodes) {
    full_ = true;
    return kNoRef;
  }
  Node node;
  node.kind = kind;
  node.text = std::move(text);
  node.kids = std::move(kids);
  nodes_.push_back(std::move(node));
  return static_cast<Ref>(nodes_.size() - 1);
}

Ref Tree::Matrix(std::string delimiter, int32_t rows, std::vector<Ref> kids) {
  const Ref ref = New(Kind::kMatrix, std::move(delimiter), std::move(kids));
  if (ref != kNoRef) nodes_[static_cast<size_t>(ref)].rows = rows;
  return ref;
}

Ref Tree::Number(Rational value) { return Literal(std::move(value), -1, 0); }

Ref Tree::Literal(Rational value, int32_t digits, int32_t unit) {
  const Ref ref = New(Kind::kNumber, "", {});
  if (ref == kNoRef) return ref;
  Node& node = nodes_[static_cast<size_t>(ref)];
  node.value = std::move(value);
  node.digits = digits;
  node.unit = unit;
  return ref;
}

Ref Tree::Add(const std::vector<Ref>& kids) {
  std::vector<Ref> terms;
  Rational sum;
  bool any_number = false;
  const auto take = [&](Ref ref) {
    if (Is(ref, Kind::kNumber) && BitsFit((*this)[ref].value + sum)) {
      sum += (*this)[ref].value;
      any_number = true;
    } else {
      terms.push_back(ref);
    }
  };
  for (const Ref kid : kids) {
    if (kid == kNoRef) return kNoRef;
    if (Is(kid, Kind::kAdd)) {
      for (const Ref inner : (*this)[kid].kids) take(inner);
    } else {
      take(kid);
    }
  }
  if (kids.size() == 1) return kids[0];
  if (any_number && (sum.Sign() != 0 || terms.empty())) terms.push_back(Number(sum));
  if (terms.size() == 1) return terms[0];
  return New(Kind::kAdd, "", std::move(terms));
}

Ref Tree::Mul(const std::vector<Ref>& kids) {
  std::vector<Ref> factors;
  Rational product(1);
  bool any_number = false;
  const auto take = [&](Ref ref) {
    if (Is(ref, Kind::kNumber) && Bits((*this)[ref].value) + Bits(product) <= budget_.bignum_bits) {
      product *= (*this)[ref].value;
      any_number = true;
    } else {
      factors.push_back(ref);
    }
  };
  for (const Ref kid : kids) {
    if (kid == kNoRef) return kNoRef;
    if (Is(kid, Kind::kMul)) {
      for (const Ref inner : (*this)[kid].kids) take(inner);
    } else {
      take(kid);
    }
  }
  if (kids.size() == 1) return kids[0];
  if (factors.empty()) return Number(product);
  if (any_number && product != Rational(1)) factors.insert(factors.begin(), Number(product));
  if (factors.size() == 1) return factors[0];
  return New(Kind::kMul, "", std::move(factors));
}

Ref Tree::PowNumbers(const Rational& base, const Rational& exponent) {
  const fmpq* e = exponent.raw();
  if (!fmpz_fits_si(fmpq_numref(e)) || fmpz_cmp_si(fmpq_denref(e), kMaxRootIndex) > 0) return kNoRef;
  const int64_t index = fmpz_get_si(fmpq_denref(e));
  int64_t power = fmpz_get_si(fmpq_numref(e));
  Rational root = base;
  if (index > 1 && !ExactRoot(base, index, root)) return kNoRef;
  if (root.Sign() == 0) {
    if (power < 0) return New(Kind::kConstant, "undefined", {});
    return Number(Rational(power == 0 ? 1 : 0));
  }
  if (root == Rational(1)) return Number(root);
  const uint64_t size = power < 0 ? 0 - static_cast<uint64_t>(power) : static_cast<uint64_t>(power);
  if (size > static_cast<uint64_t>(budget_.bignum_bits) ||
      Bits(root) * static_cast<int64_t>(size) > budget_.bignum_bits) {
    return kNoRef;
  }
  Rational result;
  fmpq_pow_si(result.mutable_raw(), root.raw(), power);
  return Number(std::move(result));
}

Ref Tree::Pow(Ref base, Ref exponent) {
  if (base == kNoRef || exponent == kNoRef) return kNoRef;
  if (IsNumber(exponent, 1)) return base;
  if (Is(base, Kind::kNumber) && Is(exponent, Kind::kNumber)) {
    const Ref folded = PowNumbers((*this)[base].value, (*this)[exponent].value);
    if (folded != kNoRef || full_) return folded;
  }
  return New(Kind::kPow, "", {base, exponent});
}

Ref Tree::Neg(Ref a) {
  if (a == kNoRef) return kNoRef;
  const Node& node = (*this)[a];
  if (node.kind == Kind::kNumber) return Literal(Rational(0) - node.value, node.digits, node.unit);
  if (node.kind == Kind::kPercent || node.kind == Kind::kDegree || node.kind == Kind::kPlusMinus) {
    const Kind kind = node.kind;
    const std::string text = node.text;
    const Ref kid = Neg(node.kids[0]);
    return kid == kNoRef ? kNoRef : New(kind, text, {kid});
  }
  if (IsConstant(a, "undefined")) return a;
  return Mul({Number(Rational(-1)), a});
}

Ref Tree::Div(Ref a, Ref b) {
  if (a == kNoRef || b == kNoRef) return kNoRef;
  return Mul({a, Pow(b, Number(Rational(-1)))});
}

Ref Tree::WithKids(Ref ref, std::vector<Ref> kids) {
  if (ref == kNoRef) return kNoRef;
  for (const Ref kid : kids) {
    if (kid == kNoRef) return kNoRef;
  }
  switch (kind(ref)) {
    case Kind::kAdd:
      return Add(kids);
    case Kind::kMul:
      return Mul(kids);
    case Kind::kPow:
      return Pow(kids[0], kids[1]);
    case Kind::kNumber:
      return ref;
    case Kind::kMatrix: {
      const std::string text = (*this)[ref].text;
      return Matrix(text, (*this)[ref].rows, std::move(kids));
    }
    default: {
      const std::string text = (*this)[ref].text;
      return New(kind(ref), text, std::move(kids));
    }
  }
}

Ref Tree::Substitute(Ref ref, std::string_view symbol, Ref by) {
  if (ref == kNoRef || by == kNoRef) return kNoRef;
  if (Is(ref, Kind::kSymbol) && (*this)[ref].text == symbol) return by;
  if ((*this)[ref].kids.empty()) return ref;
  std::vector<Ref> kids = (*this)[ref].kids;
  bool changed = false;
  for (Ref& kid : kids) {
    const Ref now = Substitute(kid, symbol, by);
    changed = changed || now != kid;
    kid = now;
  }
  return changed ? WithKids(ref, std::move(kids)) : ref;
}

std::string Tree::Key(Ref ref) const {
  if (ref == kNoRef) return "?";
  const Node& node = (*this)[ref];
  if (node.kind == Kind::kNumber) return node.value.ToString();
  if (node.kind == Kind::kSymbol) return node.text;
  if (node.kind == Kind::kText) return "\"" + node.text + "\"";
  std::string out(1, static_cast<char>('A' + static_cast<int>(node.kind)));
  out += node.text;
  if (node.kind == Kind::kMatrix) out += std::to_string(node.rows);
  out += '(';
  std::vector<std::string> keys;
  keys.reserve(node.kids.size());
  for (const Ref kid : node.kids) keys.push_back(Key(kid));
  if (Commutes(node)) std::sort(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    out += key;
    out += ',';
  }
  out += ')';
  return out;
}

bool Contains(const Tree& tree, Ref ref, Kind kind) {
  if (tree.Is(ref, kind)) return true;
  const std::vector<Ref>& kids = tree[ref].kids;
  return std::any_of(kids.begin(), kids.end(), [&](Ref kid) { return Contains(tree, kid, kind); });
}

namespace {

// `bound`: the running variables of the sums and integrals around `ref`.
bool HasFreeSymbols(const Tree& tree, Ref ref, std::vector<std::string_view>& bound) {
  const Node& node = tree[ref];
  if (node.kind == Kind::kSymbol) return std::find(bound.begin(), bound.end(), node.text) == bound.end();
  if (node.kind == Kind::kApply || node.kind == Kind::kText) return true;
  const auto has = [&](Ref kid) { return HasFreeSymbols(tree, kid, bound); };
  if (node.kind != Kind::kBig || !tree.Is(node.kids[0], Kind::kSymbol)) {
    return std::any_of(node.kids.begin(), node.kids.end(), has);
  }
  if (has(node.kids[1]) || has(node.kids[2])) return true;
  bound.push_back(tree[node.kids[0]].text);
  const bool body = has(node.kids[3]);
  bound.pop_back();
  return body;
}

}  // namespace

bool HasSymbols(const Tree& tree, Ref ref) {
  std::vector<std::string_view> bound;
  return HasFreeSymbols(tree, ref, bound);
}

}  // namespace iha::scoring::math
