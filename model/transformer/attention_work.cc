#include "model/transformer/attention_work.h"

#include <algorithm>

namespace iha::model {

OpWork WorkOf(const kernels::KvLayout& layout, std::span<const kernels::AttentionGroup> groups) {
  double pairs = 0, keys = 0;
  for (const kernels::AttentionGroup& group : groups) {
    if (group.rows.empty()) continue;
    uint32_t first = group.rows.front().first, last = group.rows.front().last;
    for (const kernels::AttentionRow& row : group.rows) {
      pairs += static_cast<double>(row.last - row.first) + 1;
      first = std::min(first, row.first);
      last = std::max(last, row.last);
    }
    keys += static_cast<double>(last - first) + 1;
  }
  const double numbers = static_cast<double>(layout.d + layout.d_v);
  return {.flops = 2 * pairs * numbers,
          .bytes = keys * numbers * static_cast<double>(kernels::StorageBytes(layout.type))};
}

}  // namespace iha::model
