#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/attention.h"

namespace iha::kernels {

void AttentionRef(const KvLayout& layout, float scale, const AttentionGroup& group, double* out) {
  const auto block = [&](size_t j) {
    return static_cast<const void*>(static_cast<const char*>(group.blocks[j / kKeyBlock]) + group.head_offset);
  };
  for (size_t r = 0; r < group.rows.size(); ++r) {
    const AttentionRow& row = group.rows[r];
    std::vector<double> score(row.last - row.first + 1);
    double largest = -std::numeric_limits<double>::infinity();
    for (size_t j = row.first; j <= row.last; ++j) {
      double s = 0;
      for (size_t i = 0; i < layout.d; ++i) {
        s += static_cast<double>(row.q[i]) * KeyAt(layout, block(j), j % kKeyBlock, i, group.key);
      }
      score[j - row.first] = s * scale;
      largest = std::max(largest, s * scale);
    }
    double total = 0;
    for (double& s : score) total += s = std::exp(s - largest);
    for (size_t i = 0; i < layout.d_v; ++i) {
      double sum = 0;
      for (size_t j = row.first; j <= row.last; ++j) {
        sum += score[j - row.first] * ValueAt(layout, block(j), j % kKeyBlock, i);
      }
      out[r * layout.d_v + i] = sum / total;
    }
  }
}

}  // namespace iha::kernels
