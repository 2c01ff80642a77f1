// fold_kids.h: a sum or product of a node's parts, where a part may have no value. Pure.
#pragma once

#include <optional>
#include <utility>

#include "benchmarks/scoring/math/node.h"

namespace iha::scoring::math {

// join(... join(start, read(kid)) ...) over the kids in order; nullopt as soon as `read` or `join` has none.
template <class Value, class Read, class Join>
std::optional<Value> FoldKids(const Node& node, Value start, const Read& read, const Join& join) {
  std::optional<Value> total = std::move(start);
  for (const Ref kid : node.kids) {
    const auto part = read(kid);
    if (!part.has_value()) return std::nullopt;
    total = join(*total, *part);
    if (!total.has_value()) return std::nullopt;
  }
  return total;
}

// A sum or product of quotients, by the Sum and Product of their own type; `constant` makes a polynomial of a number.
template <class Quotient, class Constant, class Read>
std::optional<Quotient> FoldQuotients(const Node& node, const Constant& constant, const Read& read) {
  const bool sum = node.kind == Kind::kAdd;
  const auto join = [sum](const Quotient& a, const Quotient& b) { return sum ? Sum(a, b) : Product(a, b); };
  return FoldKids(node, Quotient{constant(Rational(sum ? 0 : 1)), constant(Rational(1))}, read, join);
}

}  // namespace iha::scoring::math
