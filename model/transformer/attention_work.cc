#include "model/transformer/attention_work.h"

#include <algorithm>
#include <vector>

#include "kernels/attention/attention_jobs.h"

namespace iha::model {
namespace {

using kernels::kKeyBlock;

// A block as a head reads it, from the first to the last slot that is seen.
struct SeenBlock {
  const void* identity = nullptr;
  uint32_t first = 0, last = 0;  // slots
};

void AddSeen(const kernels::AttentionGroup& group, uint32_t first, uint32_t last, std::vector<SeenBlock>& seen) {
  for (size_t b = first / kKeyBlock; b <= last / kKeyBlock; b++) {
    const auto begin = static_cast<uint32_t>(b * kKeyBlock);
    seen.push_back({.identity = kernels::BlockIdentity(group, b),
                    .first = std::max(first, begin) - begin,
                    .last = std::min(last - begin, static_cast<uint32_t>(kKeyBlock - 1))});
  }
}

// Slots of the union; what lies between the ranges of one block counts, too: it comes from memory with them.
double DistinctKeys(std::vector<SeenBlock>& seen) {
  std::ranges::sort(seen, {}, &SeenBlock::identity);
  double keys = 0;
  for (size_t i = 0; i < seen.size();) {
    SeenBlock whole = seen[i];
    for (; i < seen.size() && seen[i].identity == whole.identity; i++) {
      whole.first = std::min(whole.first, seen[i].first);
      whole.last = std::max(whole.last, seen[i].last);
    }
    keys += whole.last - whole.first + 1;
  }
  return keys;
}

}  // namespace

SeenKeys SeenByAHead(std::span<const kernels::AttentionGroup> groups, size_t heads) {
  SeenKeys all;
  std::vector<SeenBlock> blocks;
  for (size_t g = 0; g < groups.size(); g += heads) {
    const kernels::AttentionGroup& group = groups[g];
    if (group.rows.empty()) continue;
    uint32_t first = group.rows.front().first, last = group.rows.front().last;
    for (const kernels::AttentionRow& row : group.rows) {
      all.pairs += static_cast<double>(row.last - row.first) + 1;
      first = std::min(first, row.first);
      last = std::max(last, row.last);
    }
    AddSeen(group, first, last, blocks);
  }
  all.keys = DistinctKeys(blocks);
  return all;
}

OpWork WorkOf(const kernels::KvLayout& layout, std::span<const kernels::AttentionGroup> groups, size_t heads) {
  const SeenKeys seen = SeenByAHead(groups, heads);
  const double keys = static_cast<double>(heads), values = keys / static_cast<double>(layout.keys);
  const double d = static_cast<double>(layout.d), d_v = static_cast<double>(layout.d_v);
  return {.flops = 2 * seen.pairs * keys * (d + d_v),
          .bytes = seen.keys * (keys * d + values * d_v) * static_cast<double>(kernels::StorageBytes(layout.type))};
}

}  // namespace iha::model
