#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/talking_heads/talking_heads.h"

namespace iha::kernels {
namespace {

// y[b] = sum_a x[a] mix[a, b], each x[a] a row over the keys.
std::vector<double> Mix(const std::vector<double>& x, const float* mix, size_t heads, size_t keys) {
  std::vector<double> y(heads * keys, 0.0);
  for (size_t a = 0; a < heads; ++a) {
    for (size_t b = 0; b < heads; ++b) {
      for (size_t j = 0; j < keys; ++j) y[b * keys + j] += x[a * keys + j] * mix[a * heads + b];
    }
  }
  return y;
}

void Softmax(double* row, size_t keys) {
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (size_t j = 0; j < keys; ++j) largest = std::max(largest, row[j]);
  for (size_t j = 0; j < keys; ++j) total += row[j] = std::exp(row[j] - largest);
  for (size_t j = 0; j < keys; ++j) row[j] /= total;
}

}  // namespace

void TalkingHeadsRef(const TalkingHeadsShape& shape, const TalkingHeadsTokens& tokens, double* out) {
  const KvLayout& layout = shape.layout;
  const size_t heads = shape.heads, group = heads / shape.kv_heads;
  const auto block = [&](size_t head, size_t j) {
    return static_cast<const void*>(static_cast<const char*>(tokens.blocks[j / kKeyBlock]) + tokens.offset +
                                    head / group * layout.bytes());
  };
  for (size_t t = 0; t < tokens.positions.size(); ++t) {
    const size_t first = FirstVisible(tokens.positions[t], shape.window), keys = tokens.positions[t] + 1 - first;
    std::vector<double> score(heads * keys);  // L
    for (size_t a = 0; a < heads; ++a) {
      const float* q = tokens.q + t * tokens.q_stride + a * layout.d;
      for (size_t j = 0; j < keys; ++j) {
        double sum = 0;
        for (size_t i = 0; i < layout.d; ++i) {
          sum += static_cast<double>(q[i]) * KeyAt(layout, block(a, first + j), (first + j) % kKeyBlock, i);
        }
        score[a * keys + j] = sum * shape.scale;
      }
    }
    std::vector<double> weight = Mix(score, shape.pre, heads, keys);  // J, then W
    for (size_t b = 0; b < heads; ++b) Softmax(&weight[b * keys], keys);
    const std::vector<double> mixed = Mix(weight, shape.post, heads, keys);  // U
    for (size_t c = 0; c < heads; ++c) {
      for (size_t i = 0; i < layout.d_v; ++i) {
        double sum = 0;
        for (size_t j = 0; j < keys; ++j) {
          sum += mixed[c * keys + j] * ValueAt(layout, block(c, first + j), (first + j) % kKeyBlock, i);
        }
        *out++ = sum;
      }
    }
  }
}

}  // namespace iha::kernels
