// logits.h: what is read off one row of logits: argmax, log-probabilities, sampling weights (NUM-8).
//
// exp terms are ExpNeg(x_i - max) in fp32; they are summed in 16 double lanes, S[i mod 16] += term in increasing i,
// folded 16 -> 1. log is ExactLog. NaN anywhere in a row means the model is broken: Argmax says -1, sums are NaN.
// Single thread, no allocation, the row is only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace iha::kernels {

// Lowest index among the largest values; -1 if a value is NaN or the row is empty. +0 and -0 are equal.
int32_t Argmax(std::span<const float> logits);

// log(sum exp(x_i)). -infinity for an empty row; NaN if a value is NaN or the largest is infinite.
double LogSumExp(std::span<const float> logits);

// logits[id] - LogSumExp(logits), in double.
inline double LogProb(std::span<const float> logits, size_t id, double log_sum_exp) {
  return static_cast<double>(logits[id]) - log_sum_exp;
}

// weights[i] = ExpNeg((x_i - max) / temperature), temperature > 0; returns their sum (lanes as above). weights may be
// the row itself.
double SoftmaxWeights(std::span<const float> logits, float temperature, float* weights);

// Plain double references.
double LogSumExpRef(std::span<const float> logits);

}  // namespace iha::kernels
