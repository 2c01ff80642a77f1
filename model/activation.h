// activation.h: a checkpoint's activation in the kernels' words, for every backend of ours.
#pragma once

#include <cstdlib>

#include "kernels/mlp/mlp.h"
#include "model/checkpoint/config.h"

namespace iha::model {

inline kernels::Activation ActivationOf(checkpoint::Activation activation) {
  switch (activation) {
    case checkpoint::Activation::kSilu:
      return kernels::Activation::kSilu;
    case checkpoint::Activation::kGeluErf:
      return kernels::Activation::kGeluErf;
    case checkpoint::Activation::kGeluTanh:
      return kernels::Activation::kGeluTanh;
    case checkpoint::Activation::kRelu:
      return kernels::Activation::kRelu;
  }
  std::abort();  // the switch is complete
}

}  // namespace iha::model
