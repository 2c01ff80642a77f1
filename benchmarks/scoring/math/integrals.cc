// Definite integrals (ball_eval.h): Arb's rigorous integration, and functions on balls around the line of integration.
#include <acb_calc.h>
#include <acb_hypgeom.h>

#include <algorithm>

#include "benchmarks/scoring/math/ball_eval.h"

namespace iha::scoring::math {
namespace {

constexpr slong kMaxEvaluations = 20000;

}  // namespace

// What is integrated at `value` of the variable. `holomorphic`: the value must be that of a function that is
// holomorphic on all of the ball, else not finite.
struct BallEvaluator::Integrand {
  BallEvaluator* evaluator;
  const Node* integral;

  static int At(acb_ptr out, const acb_t value, void* self, slong order, slong prec) {
    const auto& integrand = *static_cast<Integrand*>(self);
    BallEvaluator& evaluator = *integrand.evaluator;
    Complex point;
    acb_set(point.get(), value);
    evaluator.running_.insert_or_assign(evaluator.tree_[integrand.integral->kids[0]].text, point);
    const bool outer = std::exchange(evaluator.holomorphic_, evaluator.holomorphic_ || order != 0);
    Complex result;
    if (evaluator.Eval(integrand.integral->kids[3], prec, result)) {
      acb_set(out, result.get());
    } else {
      acb_indeterminate(out);
    }
    evaluator.holomorphic_ = outer;
    return 0;
  }
};

bool BallEvaluator::EvalIntegral(const Node& node, slong prec, Complex& out) {
  if (!tree_.Is(node.kids[0], Kind::kSymbol)) return false;
  const std::string& name = tree_[node.kids[0]].text;
  if (running_.contains(name) || bound_.contains(name)) return false;
  Complex low;
  Complex high;
  if (!Eval(node.kids[1], prec, low) || !Eval(node.kids[2], prec, high)) return false;
  Integrand integrand{this, &node};
  acb_calc_integrate_opt_t options;
  acb_calc_integrate_opt_init(options);
  options->eval_limit = std::min<slong>(kMaxEvaluations, 1 + static_cast<slong>(work_ / prec));
  mag_t tolerance;
  mag_init(tolerance);
  mag_set_ui_2exp_si(tolerance, 1, -prec);
  acb_calc_integrate(out.get(), &Integrand::At, &integrand, low.get(), high.get(), prec, tolerance, options, prec);
  mag_clear(tolerance);
  running_.erase(name);
  return acb_is_finite(out.get());
}

// Functions with a cut: outside of it, or not at all.
bool BallEvaluator::IsHolomorphic(const std::string& name, const Complex& x) const {
  const arb_struct* re = acb_realref(x.get());
  const arb_struct* im = acb_imagref(x.get());
  const auto below_one = [](const arb_struct* value) {
    arb_t one;
    arb_init(one);
    arb_one(one);
    arb_t size;
    arb_init(size);
    arb_abs(size, value);
    const bool below = arb_lt(size, one) != 0;
    arb_clear(size);
    arb_clear(one);
    return below;
  };
  if (name == "arctan" || name == "arcsinh") return !arb_contains_zero(re) || below_one(im);
  if (name == "arcsin" || name == "arccos" || name == "arctanh") return !arb_contains_zero(im) || below_one(re);
  return !name.starts_with("arc");
}

}  // namespace iha::scoring::math
