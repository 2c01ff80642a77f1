#include "benchmarks/scoring/math/ball_eval.h"

#include <acb_hypgeom.h>
#include <arb.h>
#include <flint/fmpq.h>

#include <algorithm>

#include "common/philox.h"

namespace iha::scoring::math {
namespace {

constexpr uint64_t kPointKey = 0x6d6174682e726f62;  // "math.rob"
constexpr int64_t kMaxSumTerms = 5000;
constexpr ulong kMaxFactorial = 5000;

uint64_t HashOf(const std::string& name) {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// The integer that a ball is known to be.
bool ExactInteger(const Complex& value, slong& out) {
  if (!acb_is_int(value.get())) return false;
  fmpz_t integer;
  fmpz_init(integer);
  const bool fits = arb_get_unique_fmpz(integer, acb_realref(value.get())) && fmpz_fits_si(integer);
  if (fits) out = fmpz_get_si(integer);
  fmpz_clear(integer);
  return fits;
}

void CollectSymbols(const Tree& tree, Ref ref, std::set<std::string>& out) {
  if (tree.Is(ref, Kind::kSymbol)) out.insert(tree[ref].text);
  for (const Ref kid : tree[ref].kids) CollectSymbols(tree, kid, out);
}

void CollectWhole(const Tree& tree, Ref ref, std::set<std::string>& out) {
  const Node& node = tree[ref];
  const bool counting =
      node.kind == Kind::kFunction && (node.text == "fact" || node.text == "binom" || node.text == "fact2");
  if (counting || (node.kind == Kind::kBig && (node.text == "sum" || node.text == "prod"))) {
    for (const Ref kid : node.kids) CollectSymbols(tree, kid, out);
  } else if (node.kind == Kind::kPow && tree.Is(node.kids[0], Kind::kNumber) && tree[node.kids[0]].value.Sign() < 0) {
    CollectSymbols(tree, node.kids[1], out);
  }
  for (const Ref kid : node.kids) CollectWhole(tree, kid, out);
}

bool IsTrig(const std::string& name) {
  return name == "sin" || name == "cos" || name == "tan" || name == "cot" || name == "sec" || name == "csc" ||
         name == "cis";
}

}  // namespace

std::set<std::string> WholeSymbols(const Tree& tree, Ref a, Ref b) {
  std::set<std::string> out;
  CollectWhole(tree, a, out);
  CollectWhole(tree, b, out);
  return out;
}

// Two points in three are positive (lengths, counts), the others of either sign.
void BallEvaluator::SetSymbol(const std::string& name, Complex& out) const {
  if (const auto found = bound_.find(name); found != bound_.end()) {
    acb_set_si(out.get(), found->second);
    return;
  }
  if (const auto found = running_.find(name); found != running_.end()) {
    out = found->second;
    return;
  }
  const PhiloxBlock block = Philox4x32(kPointKey, static_cast<uint64_t>(point_), HashOf(name));
  if (whole_.contains(name)) {
    acb_set_si(out.get(), 2 + static_cast<slong>(block.word[0] % 11));
    return;
  }
  // A multiple of 2^-24 in (1/4, 3 1/4), negative at every third point for about half of the symbols.
  const auto steps = static_cast<slong>(block.word[0] % (3u << 24)) + (1 << 22) + 1;
  const bool negative = point_ % 3 == 2 && block.word[1] % 2 == 0;
  acb_set_si(out.get(), negative ? -steps : steps);
  acb_mul_2exp_si(out.get(), out.get(), -24);
}

bool BallEvaluator::Eval(Ref ref, slong precision, Complex& out) {
  if (ref == kNoRef) return false;
  // Transcendental functions cost more than their bits where there are many.
  const int64_t steep = std::max<int64_t>(1, precision / 1024);
  const bool gamma = tree_.Is(ref, Kind::kFunction) && tree_[ref].text == "fact";
  work_ -= precision * steep * (gamma && steep > 1 ? 64 : 1);
  if (work_ < 0) return false;
  return EvalNode(ref, precision, out) && acb_is_finite(out.get());
}

bool BallEvaluator::EvalConstant(const std::string& name, slong prec, Complex& out) {
  if (name == "pi") {
    acb_const_pi(out.get(), prec);
  } else if (name == "e") {
    arb_const_e(out.re(), prec);
    arb_zero(out.im());
  } else if (name == "i") {
    acb_onei(out.get());
  } else {
    return false;
  }
  return true;
}

// A sum or a product.
bool BallEvaluator::EvalChain(const Node& node, slong prec, Complex& out) {
  Complex total;
  if (node.kind == Kind::kMul) acb_one(total.get());
  for (const Ref kid : node.kids) {
    Complex value;
    if (!Eval(kid, prec, value)) return false;
    if (node.kind == Kind::kAdd) {
      acb_add(total.get(), total.get(), value.get(), prec);
    } else {
      acb_mul(total.get(), total.get(), value.get(), prec);
    }
  }
  out = total;
  return true;
}

// Radians inside of a trigonometric function, elsewhere the number of degrees.
bool BallEvaluator::EvalDegrees(const Node& node, slong prec, Complex& out) {
  if (!Eval(node.kids[0], prec, out)) return false;
  if (angle_depth_ == 0) return true;
  Complex pi;
  acb_const_pi(pi.get(), prec);
  acb_mul(out.get(), out.get(), pi.get(), prec);
  acb_div_si(out.get(), out.get(), 180, prec);
  return true;
}

bool BallEvaluator::EvalNode(Ref ref, slong prec, Complex& out) {
  const Node& node = tree_[ref];
  switch (node.kind) {
    case Kind::kNumber:
      acb_set_fmpq(out.get(), node.value.raw(), prec);
      return true;
    case Kind::kSymbol:
      SetSymbol(node.text, out);
      return true;
    case Kind::kApply:
      SetSymbol(tree_.Key(ref), out);
      return true;
    case Kind::kConstant:
      return EvalConstant(node.text, prec, out);
    case Kind::kAdd:
    case Kind::kMul:
      return EvalChain(node, prec, out);
    case Kind::kPow:
      return EvalPower(node, prec, out);
    case Kind::kFunction:
      return EvalFunction(node, prec, out);
    case Kind::kPercent:
      if (!Eval(node.kids[0], prec, out)) return false;
      acb_div_si(out.get(), out.get(), 100, prec);
      return true;
    case Kind::kDegree:
      return EvalDegrees(node, prec, out);
    case Kind::kRatio: {
      Complex right;
      if (node.kids.size() != 2 || !Eval(node.kids[0], prec, out) || !Eval(node.kids[1], prec, right)) return false;
      acb_div(out.get(), out.get(), right.get(), prec);
      return true;
    }
    case Kind::kBig:
      return EvalBig(node, prec, out);
    default:
      return false;
  }
}

// An odd root of a negative real number is real: (-8)^(1/3) is -2.
bool BallEvaluator::EvalPower(const Node& node, slong prec, Complex& out) {
  Complex base;
  if (!Eval(node.kids[0], prec, base)) return false;
  const Node& exponent = tree_[node.kids[1]];
  if (exponent.kind == Kind::kNumber) {
    const fmpq* e = exponent.value.raw();
    if (fmpz_is_one(fmpq_denref(e))) {
      // A squaring a bit of the exponent: a tower of powers has thousands.
      work_ -= prec * static_cast<slong>(fmpz_bits(fmpq_numref(e)));
      if (work_ < 0) return false;
      acb_pow_fmpz(out.get(), base.get(), fmpq_numref(e), prec);
      return true;
    }
    if (fmpz_equal_si(fmpq_denref(e), 2) && fmpz_is_one(fmpq_numref(e))) {
      acb_sqrt_analytic(out.get(), base.get(), holomorphic_ ? 1 : 0, prec);
      return true;
    }
    const bool odd_root = !holomorphic_ && fmpz_is_odd(fmpq_denref(e)) != 0;
    if (odd_root && acb_is_real(base.get()) && arb_is_negative(base.re())) {
      acb_neg(base.get(), base.get());
      arb_t power;
      arb_init(power);
      arb_set_fmpq(power, e, prec);
      arb_pow(out.re(), base.re(), power, prec);
      arb_zero(out.im());
      arb_clear(power);
      if (fmpz_is_odd(fmpq_numref(e))) acb_neg(out.get(), out.get());
      return true;
    }
  }
  Complex power;
  if (!Eval(node.kids[1], prec, power)) return false;
  if (tree_.IsConstant(node.kids[0], "e")) {
    acb_exp(out.get(), power.get(), prec);
  } else {
    acb_pow_analytic(out.get(), base.get(), power.get(), holomorphic_ ? 1 : 0, prec);
  }
  return true;
}

bool BallEvaluator::EvalFunction(const Node& node, slong prec, Complex& out) {
  if (node.kids.empty()) return false;
  if (IsTrig(node.text)) {
    ++angle_depth_;
    const bool ok = EvalTrig(node, prec, out);
    --angle_depth_;
    return ok;
  }
  if (node.text.starts_with("arc") || node.text.ends_with('h')) return EvalTrig(node, prec, out);
  if (node.text == "ln" || node.text == "log") {
    Complex x;
    if (!Eval(node.kids[0], prec, x) || acb_contains_zero(x.get())) return false;
    outside_ = outside_ || (acb_is_real(x.get()) && arb_is_negative(x.re()));
    acb_log_analytic(out.get(), x.get(), holomorphic_ ? 1 : 0, prec);
    const bool decimal = node.text == "log" && node.kids.size() == 1 && options_.log_is_decimal;
    if (node.kids.size() < 2 && !decimal) return true;
    Complex base;
    if (decimal) {
      acb_set_si(base.get(), 10);
    } else if (!Eval(node.kids[1], prec, base) || acb_contains_zero(base.get())) {
      return false;
    }
    acb_log_analytic(base.get(), base.get(), holomorphic_ ? 1 : 0, prec);
    acb_div(out.get(), out.get(), base.get(), prec);
    return true;
  }
  if (node.text == "fact" || node.text == "fact2" || node.text == "binom" || node.text == "gcd" || node.text == "lcm") {
    return EvalCounting(node, prec, out);
  }
  return EvalReal(node, prec, out);
}

bool BallEvaluator::EvalTrig(const Node& node, slong prec, Complex& out) {
  Complex x;
  if (node.kids.size() != 1 || !Eval(node.kids[0], prec, x)) return false;
  using Function = void (*)(acb_t, const acb_t, slong);
  struct Named {
    const char* name;
    Function function;
    bool of_inverse;  // the function of 1/x
  };
  static constexpr Named kFunctions[] = {
      {"sin", acb_sin, false},       {"cos", acb_cos, false},       {"tan", acb_tan, false},
      {"cot", acb_cot, false},       {"sec", acb_sec, false},       {"csc", acb_csc, false},
      {"arcsin", acb_asin, false},   {"arccos", acb_acos, false},   {"arctan", acb_atan, false},
      {"arccot", acb_atan, true},    {"arcsec", acb_acos, true},    {"arccsc", acb_asin, true},
      {"sinh", acb_sinh, false},     {"cosh", acb_cosh, false},     {"tanh", acb_tanh, false},
      {"coth", acb_coth, false},     {"sech", acb_sech, false},     {"csch", acb_csch, false},
      {"arcsinh", acb_asinh, false}, {"arccosh", acb_acosh, false}, {"arctanh", acb_atanh, false}};
  if (node.text == "cis") {
    acb_mul_onei(x.get(), x.get());
    acb_exp(out.get(), x.get(), prec);
    return true;
  }
  for (const Named& named : kFunctions) {
    if (node.text != named.name) continue;
    if (holomorphic_ && !IsHolomorphic(node.text, x)) return false;
    if (named.of_inverse) acb_inv(x.get(), x.get(), prec);
    named.function(out.get(), x.get(), prec);
    return true;
  }
  return false;
}

bool BallEvaluator::EvalReal(const Node& node, slong prec, Complex& out) {
  Complex x;
  if (!Eval(node.kids[0], prec, x)) return false;
  const bool one = node.kids.size() == 1;
  if (!running_.empty() && node.text == "abs" && one) {
    acb_real_abs(out.get(), x.get(), holomorphic_ ? 1 : 0, prec);
    return true;
  }
  if (holomorphic_) return false;
  if (node.text == "conj" && one) {
    acb_conj(out.get(), x.get());
    return true;
  }
  if ((node.text == "abs" || node.text == "norm") && one) {
    acb_abs(out.re(), x.get(), prec);
    arb_zero(out.im());
    return true;
  }
  if ((node.text == "Re" || node.text == "Im") && one) {
    arb_set(out.re(), node.text == "Re" ? x.re() : x.im());
    arb_zero(out.im());
    return true;
  }
  if (node.text == "arg" && one) {
    acb_arg(out.re(), x.get(), prec);
    arb_zero(out.im());
    return true;
  }
  if (!acb_is_real(x.get())) return false;
  acb_zero(out.get());
  if (node.text == "floor" && one) {
    arb_floor(out.re(), x.re(), prec);
  } else if (node.text == "ceil" && one) {
    arb_ceil(out.re(), x.re(), prec);
  } else if (node.text == "sgn" && one) {
    arb_sgn(out.re(), x.re());
  } else if (node.text == "max" || node.text == "min") {
    arb_set(out.re(), x.re());
    for (size_t i = 1; i < node.kids.size(); ++i) {
      if (!Eval(node.kids[i], prec, x) || !acb_is_real(x.get())) return false;
      (node.text == "max" ? arb_max : arb_min)(out.re(), out.re(), x.re(), prec);
    }
  } else {
    return false;
  }
  return true;
}

bool BallEvaluator::EvalCounting(const Node& node, slong prec, Complex& out) {
  std::vector<Complex> values(node.kids.size());
  std::vector<slong> integers(node.kids.size());
  bool all_integers = true;
  for (size_t i = 0; i < node.kids.size(); ++i) {
    if (!Eval(node.kids[i], prec, values[i])) return false;
    all_integers = all_integers && ExactInteger(values[i], integers[i]);
  }
  acb_zero(out.get());
  if (node.text == "fact" && values.size() == 1) {
    if (all_integers && integers[0] < 0) return false;
    if (all_integers && static_cast<ulong>(integers[0]) <= kMaxFactorial) {
      arb_fac_ui(out.re(), static_cast<ulong>(integers[0]), prec);
      return true;
    }
    acb_add_si(values[0].get(), values[0].get(), 1, prec);
    acb_gamma(out.get(), values[0].get(), prec);
    return true;
  }
  if (node.text == "binom" && values.size() == 2) {
    if (all_integers && integers[0] >= 0 && integers[0] <= 100000) {
      if (integers[1] < 0 || integers[1] > integers[0]) return true;
      arb_bin_uiui(out.re(), static_cast<ulong>(integers[0]), static_cast<ulong>(integers[1]), prec);
      return true;
    }
    return false;
  }
  if (!all_integers) return false;
  if (node.text == "fact2" && values.size() == 1) {
    if (integers[0] < 0 || integers[0] > static_cast<slong>(kMaxFactorial)) return false;
    arb_doublefac_ui(out.re(), static_cast<ulong>(integers[0]), prec);
    return true;
  }
  Rational result(integers.empty() ? 0 : integers[0]);
  fmpz* r = fmpq_numref(result.mutable_raw());
  for (size_t i = 1; i < integers.size(); ++i) {
    const Rational other(integers[i]);
    (node.text == "gcd" ? fmpz_gcd : fmpz_lcm)(r, r, fmpq_numref(other.raw()));
  }
  acb_set_fmpq(out.get(), result.raw(), prec);
  return true;
}

bool BallEvaluator::EvalBig(const Node& node, slong prec, Complex& out) {
  if (node.text == "int") return EvalIntegral(node, prec, out);
  return node.text == "sum" || node.text == "prod" ? EvalSum(node, prec, out) : false;
}

bool BallEvaluator::EvalSum(const Node& node, slong prec, Complex& out) {
  const bool sum = node.text == "sum";
  if (!tree_.Is(node.kids[0], Kind::kSymbol)) return false;
  Complex low;
  Complex high;
  slong from = 0;
  slong to = 0;
  if (!Eval(node.kids[1], prec, low) || !Eval(node.kids[2], prec, high)) return false;
  if (!ExactInteger(low, from) || !ExactInteger(high, to)) return false;
  if (to - from > kMaxSumTerms || from < -1000000 || to > 1000000) return false;
  const std::string name = tree_[node.kids[0]].text;
  if (bound_.contains(name)) return false;
  Complex total;
  if (!sum) acb_one(total.get());
  bool ok = true;
  for (slong k = from; k <= to && ok; ++k) {
    bound_[name] = k;
    Complex value;
    ok = Eval(node.kids[3], prec, value);
    if (sum) {
      acb_add(total.get(), total.get(), value.get(), prec);
    } else {
      acb_mul(total.get(), total.get(), value.get(), prec);
    }
  }
  bound_.erase(name);
  out = total;
  return ok;
}

}  // namespace iha::scoring::math
