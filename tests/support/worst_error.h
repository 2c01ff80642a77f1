// worst_error.h: the largest of many errors. One NaN among them makes it NaN, which is within no bound; std::max and
// `if (error > worst)` would drop it.
#pragma once

#include <cmath>

namespace iha::testing {

class WorstError {
 public:
  // True if this is the worst so far.
  bool Add(double error) {
    if (std::isnan(worst_) || error <= worst_) return false;
    worst_ = error;
    return true;
  }
  double value() const { return worst_; }

 private:
  double worst_ = 0;
};

}  // namespace iha::testing
