// ball_eval.h: the value of an expression as a complex ball at one point. Used by balls.cc.
#pragma once

#include <acb.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "benchmarks/scoring/math/balls.h"

namespace iha::scoring::math {

class Complex {
 public:
  Complex() { acb_init(value_); }
  ~Complex() { acb_clear(value_); }
  Complex(const Complex& other) : Complex() { acb_set(value_, other.value_); }
  Complex& operator=(const Complex& other) {
    acb_set(value_, other.value_);
    return *this;
  }
  acb_struct* get() { return value_; }
  const acb_struct* get() const { return value_; }
  arb_struct* re() { return acb_realref(value_); }
  arb_struct* im() { return acb_imagref(value_); }

 private:
  acb_t value_;
};

// Names of the symbols that only make sense as whole numbers: in factorials, binomials, exponents of negative numbers,
// bounds of sums.
std::set<std::string> WholeSymbols(const Tree& tree, Ref a, Ref b);

class BallEvaluator {
 public:
  BallEvaluator(const Tree& tree, const BallOptions& options, const std::set<std::string>& whole, int64_t& work)
      : tree_(tree), options_(options), whole_(whole), work_(work) {}

  // The point that symbols are evaluated at, from 0.
  void SetPoint(int64_t point) { point_ = point; }
  // Whether the last Eval took a logarithm of a negative number; asking forgets it.
  bool TakeOutside() { return std::exchange(outside_, false); }
  // False when the value is not finite or can't be computed, or the work is spent.
  bool Eval(Ref ref, slong precision, Complex& out);

 private:
  bool EvalNode(Ref ref, slong prec, Complex& out);
  static bool EvalConstant(const std::string& name, slong prec, Complex& out);
  bool EvalChain(const Node& node, slong prec, Complex& out);
  bool EvalDegrees(const Node& node, slong prec, Complex& out);
  bool EvalPower(const Node& node, slong prec, Complex& out);
  bool EvalFunction(const Node& node, slong prec, Complex& out);
  bool EvalTrig(const Node& node, slong prec, Complex& out);
  bool EvalReal(const Node& node, slong prec, Complex& out);
  bool EvalCounting(const Node& node, slong prec, Complex& out);
  bool EvalBig(const Node& node, slong prec, Complex& out);
  bool EvalSum(const Node& node, slong prec, Complex& out);
  void SetSymbol(const std::string& name, Complex& out) const;

  // integrals.cc
  struct Integrand;
  bool EvalIntegral(const Node& node, slong prec, Complex& out);
  bool IsHolomorphic(const std::string& name, const Complex& x) const;

  const Tree& tree_;
  const BallOptions& options_;
  const std::set<std::string>& whole_;
  int64_t& work_;
  int64_t point_ = 0;
  bool outside_ = false;
  int angle_depth_ = 0;                     // inside an argument of a trigonometric function
  std::map<std::string, int64_t> bound_;    // running variables of sums
  std::map<std::string, Complex> running_;  // those of integrals
  bool holomorphic_ = false;                // what is no holomorphic function of them has no value
};

}  // namespace iha::scoring::math
