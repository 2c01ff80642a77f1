#include <cmath>
#include <vector>

#include "kernels/iha_mix_rope/iha_mix_rope.h"

namespace iha::kernels {

void IhaPackAlpha(IhaAlphaLayout layout, size_t heads, size_t pseudo, const float* alpha, float* packed) {
  for (size_t h = 0; h < heads; ++h) {
    for (size_t j = 0; j < pseudo; ++j) {
      for (size_t m = 0; m < heads; ++m) {
        const size_t to = (h * pseudo + j) * heads + m;
        packed[to] = alpha[layout == IhaAlphaLayout::kTargetPseudoSource ? to : (m * heads + h) * pseudo + j];
      }
    }
  }
}

namespace {

// Paper section 4, step 4: the pseudo token's own phase.
void RotateRef(const IhaMixRefArgs& args, size_t half, double position, double* y) {
  for (size_t i = 0; i < half; ++i) {
    const size_t iu = args.pairing == RopePairing::kHalf ? i : 2 * i;
    const size_t iv = args.pairing == RopePairing::kHalf ? i + half : 2 * i + 1;
    const double angle = position * args.frequency[i];
    const double c = args.factor * std::cos(angle), s = args.factor * std::sin(angle);
    const double u = y[iu], v = y[iv];
    y[iu] = u * c - v * s;
    y[iv] = v * c + u * s;
  }
}

void NormRef(const float* weight, double eps, size_t d, double* y) {
  double sum = 0;
  for (size_t i = 0; i < d; ++i) sum += y[i] * y[i];
  for (size_t i = 0; i < d; ++i) y[i] *= weight[i] / std::sqrt(sum / static_cast<double>(d) + eps);
}

}  // namespace

void IhaMixRef(const IhaShape& shape, const IhaMixRefArgs& args, size_t tokens, double* y) {
  const size_t heads = shape.heads, pseudo = shape.pseudo, d = shape.d;
  const auto alpha = [&](size_t m, size_t h, size_t j) -> double {
    return args.layout == IhaAlphaLayout::kSourceTargetPseudo ? args.alpha[(m * heads + h) * pseudo + j]
                                                              : args.alpha[(h * pseudo + j) * heads + m];
  };
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t h = 0; h < heads; ++h) {
      for (size_t j = 0; j < pseudo; ++j) {
        // Paper section 4, step 2: Q~[h,j] = sum_m alpha(m,h,j) Q^(m).
        double* out = y + ((t * heads + h) * pseudo + j) * d;
        for (size_t i = 0; i < d; ++i) {
          out[i] = 0;
          for (size_t m = 0; m < heads; ++m) out[i] += alpha(m, h, j) * args.x[(t * heads + m) * d + i];
        }
        if (args.norm != nullptr) NormRef(args.norm, args.norm_eps, d, out);
        if (args.frequency == nullptr) continue;
        RotateRef(args, d / 2, static_cast<double>(args.first_position[t]) + static_cast<double>(j * args.step), out);
      }
    }
  }
}

}  // namespace iha::kernels
