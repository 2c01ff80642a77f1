#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/logits/logits.h"

namespace iha::kernels {

double LogSumExpRef(std::span<const float> logits) {
  long double largest = -std::numeric_limits<long double>::infinity(), sum = 0;
  for (float x : logits) largest = std::max<long double>(largest, x);
  for (float x : logits) sum += std::exp(x - largest);
  return static_cast<double>(largest + std::log(sum));
}

}  // namespace iha::kernels
