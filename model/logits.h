// logits.h: what the engine reads off one row of logits, as the exact kernels define it (NUM-8). The contract is that
// of kernels/logits/logits.h; the engine sees models, not kernels.
#pragma once

#include "kernels/logits/logits.h"

namespace iha::model {

using kernels::Argmax;
using kernels::LogProb;
using kernels::LogSumExp;
using kernels::SoftmaxWeights;

}  // namespace iha::model
