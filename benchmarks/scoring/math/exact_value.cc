// ExactValue (exact.h): values that are rational by construction.
#include <flint/fmpq.h>
#include <flint/fmpz.h>

#include <algorithm>
#include <map>

#include "benchmarks/scoring/math/exact.h"

namespace iha::scoring::math {
namespace {

constexpr int64_t kMaxFactorial = 20000;
constexpr int64_t kMaxTerms = 5000;  // of a sum or product
constexpr int64_t kMaxDoubleFactorial = 5000;
constexpr int64_t kMaxSteps = 100'000;
constexpr int64_t kMaxWork = 8'000'000;  // bits of all intermediate values
constexpr int64_t kStepWork = 64;
constexpr int kMaxDepth = 130;

class Evaluator {
 public:
  Evaluator(const Tree& tree, int64_t& work) : tree_(tree), most_bits_(4 * tree.budget().bignum_bits), work_(work) {}

  std::optional<Rational> Value(Ref ref) {
    if (ref == kNoRef || ++steps_ > kMaxSteps || depth_ >= kMaxDepth) return std::nullopt;
    ++depth_;
    std::optional<Rational> value = ValueOf(tree_[ref]);
    --depth_;
    return value.has_value() && Spend(*value) && Fits(*value) ? value : std::nullopt;
  }

 private:
  // Large fractions cost a gcd each.
  bool Spend(const Rational& value) {
    work_ -= Bits(value) + kStepWork;
    spent_ += Bits(value);
    return work_ > 0 && spent_ <= kMaxWork;
  }

  static int64_t Bits(const Rational& value) {
    return static_cast<int64_t>(fmpz_bits(fmpq_numref(value.raw())) + fmpz_bits(fmpq_denref(value.raw())));
  }
  bool Fits(const Rational& value) const { return Bits(value) <= most_bits_; }

  static std::optional<int64_t> Whole(const Rational& value) {
    if (!value.IsInteger() || !fmpz_fits_si(fmpq_numref(value.raw()))) return std::nullopt;
    return fmpz_get_si(fmpq_numref(value.raw()));
  }

  std::optional<Rational> ValueOf(const Node& node) {
    switch (node.kind) {
      case Kind::kNumber:
        return node.value;
      case Kind::kSymbol:
        if (const auto bound = bound_.find(node.text); bound != bound_.end()) return Rational(bound->second);
        return std::nullopt;
      case Kind::kAdd:
      case Kind::kMul: {
        Rational total(node.kind == Kind::kMul ? 1 : 0);
        for (const Ref kid : node.kids) {
          const auto value = Value(kid);
          if (!value.has_value() || Bits(total) + Bits(*value) > most_bits_) return std::nullopt;
          node.kind == Kind::kAdd ? total += * value : total *= *value;
          if (!Spend(total)) return std::nullopt;
        }
        return total;
      }
      case Kind::kPow:
        return Power(node);
      case Kind::kFunction:
        return Function(node);
      case Kind::kBig:
        return Big(node);
      default:
        return std::nullopt;
    }
  }

  std::optional<Rational> Power(const Node& node) {
    const auto base = Value(node.kids[0]);
    const auto exponent = base.has_value() ? Value(node.kids[1]) : std::nullopt;
    const auto power = exponent.has_value() ? Whole(*exponent) : std::nullopt;
    if (!power.has_value() || (base->Sign() == 0 && *power <= 0)) return std::nullopt;
    if (*base == Rational(1)) return base;
    if (*power > most_bits_ || *power < -most_bits_ || Bits(*base) * std::abs(*power) > 2 * most_bits_) {
      return std::nullopt;
    }
    Rational out;
    fmpq_pow_si(out.mutable_raw(), base->raw(), *power);
    return out;
  }

  std::optional<Rational> Function(const Node& node) {
    std::vector<Rational> values;
    for (const Ref kid : node.kids) {
      const auto value = Value(kid);
      if (!value.has_value()) return std::nullopt;
      values.push_back(*value);
    }
    if (values.size() == 1 && node.text == "abs") {
      return values[0].Sign() < 0 ? Rational(0) - values[0] : values[0];
    }
    if (values.empty() || !std::all_of(values.begin(), values.end(), [](const Rational& v) { return v.IsInteger(); })) {
      return std::nullopt;
    }
    if (node.text == "gcd" || node.text == "lcm") {
      Rational out = values[0];
      fmpz* total = fmpq_numref(out.mutable_raw());
      for (const Rational& value : values) {
        (node.text == "gcd" ? fmpz_gcd : fmpz_lcm)(total, total, fmpq_numref(value.raw()));
        if (!Fits(out)) return std::nullopt;
      }
      return out;
    }
    return Counted(node.text, values);
  }

  // Factorials and binomials of small whole numbers.
  static std::optional<Rational> Counted(const std::string& name, const std::vector<Rational>& values) {
    const auto n = Whole(values[0]);
    if (!n.has_value() || *n < 0 || *n > kMaxFactorial) return std::nullopt;
    Rational out;
    fmpz* result = fmpq_numref(out.mutable_raw());
    if (values.size() == 1 && name == "fact") {
      fmpz_fac_ui(result, static_cast<ulong>(*n));
      return out;
    }
    if (values.size() == 1 && name == "fact2" && *n <= kMaxDoubleFactorial) {
      fmpz_one(result);
      for (int64_t k = *n; k > 1; k -= 2) fmpz_mul_si(result, result, k);
      return out;
    }
    const auto k = values.size() == 2 && name == "binom" ? Whole(values[1]) : std::nullopt;
    if (!k.has_value()) return std::nullopt;
    if (*k >= 0 && *k <= *n) fmpz_bin_uiui(result, static_cast<ulong>(*n), static_cast<ulong>(*k));
    return out;
  }

  std::optional<Rational> Big(const Node& node) {
    const bool sum = node.text == "sum";
    if ((!sum && node.text != "prod") || !tree_.Is(node.kids[0], Kind::kSymbol)) return std::nullopt;
    const std::string name = tree_[node.kids[0]].text;
    const auto low = Value(node.kids[1]);
    const auto high = Value(node.kids[2]);
    const auto from = low.has_value() ? Whole(*low) : std::nullopt;
    const auto to = high.has_value() ? Whole(*high) : std::nullopt;
    if (!from.has_value() || !to.has_value() || bound_.contains(name)) return std::nullopt;
    if (*from < -1000000 || *to > 1000000 || *to - *from > kMaxTerms) return std::nullopt;
    std::optional<Rational> total = Rational(sum ? 0 : 1);
    for (int64_t k = *from; k <= *to && total.has_value(); ++k) {
      bound_[name] = k;
      const auto value = Value(node.kids[3]);
      if (!value.has_value() || Bits(*total) + Bits(*value) > most_bits_) {
        total.reset();
      } else {
        sum ? * total += * value : * total *= *value;
        if (!Spend(*total)) total.reset();
      }
    }
    bound_.erase(name);
    return total;
  }

  const Tree& tree_;
  const int64_t most_bits_;
  std::map<std::string, int64_t> bound_;  // running variables
  int64_t& work_;
  int64_t spent_ = 0;
  int64_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<Rational> ExactValue(const Tree& tree, Ref ref, int64_t& work) {
  return Evaluator(tree, work).Value(ref);
}

}  // namespace iha::scoring::math
