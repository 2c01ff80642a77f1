#include "model/transformer/attention_work.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "kernels/attention/attention_jobs.h"

namespace iha::model {
namespace {

using kernels::kKeyBlock;

// A block as a head reads it, from the first to the last slot that is seen.
struct SeenBlock {
  const void* identity = nullptr;
  size_t head_offset = 0, key = 0;
  uint32_t first = 0, last = 0;  // slots
  [[nodiscard]] auto part() const { return std::tie(identity, head_offset, key); }
};

void AddSeen(const kernels::AttentionGroup& group, uint32_t first, uint32_t last, std::vector<SeenBlock>& seen) {
  for (size_t b = first / kKeyBlock; b <= last / kKeyBlock; b++) {
    const auto begin = static_cast<uint32_t>(b * kKeyBlock);
    seen.push_back({.identity = kernels::BlockIdentity(group, b),
                    .head_offset = group.head_offset,
                    .key = group.key,
                    .first = std::max(first, begin) - begin,
                    .last = std::min(last - begin, static_cast<uint32_t>(kKeyBlock - 1))});
  }
}

// Slots of the union; what lies between the ranges of one block counts, too: it comes from memory with them.
double DistinctKeys(std::vector<SeenBlock>& seen) {
  std::sort(seen.begin(), seen.end(), [](const SeenBlock& a, const SeenBlock& b) { return a.part() < b.part(); });
  double keys = 0;
  for (size_t i = 0; i < seen.size();) {
    SeenBlock whole = seen[i];
    for (; i < seen.size() && seen[i].part() == whole.part(); i++) {
      whole.first = std::min(whole.first, seen[i].first);
      whole.last = std::max(whole.last, seen[i].last);
    }
    keys += whole.last - whole.first + 1;
  }
  return keys;
}

}  // namespace

OpWork WorkOf(const kernels::KvLayout& layout, std::span<const kernels::AttentionGroup> groups) {
  double pairs = 0;
  std::vector<SeenBlock> seen;
  for (const kernels::AttentionGroup& group : groups) {
    if (group.rows.empty()) continue;
    uint32_t first = group.rows.front().first, last = group.rows.front().last;
    for (const kernels::AttentionRow& row : group.rows) {
      pairs += static_cast<double>(row.last - row.first) + 1;
      first = std::min(first, row.first);
      last = std::max(last, row.last);
    }
    AddSeen(group, first, last, seen);
  }
  const double numbers = static_cast<double>(layout.d + layout.d_v);
  return {.flops = 2 * pairs * numbers,
          .bytes = DistinctKeys(seen) * numbers * static_cast<double>(kernels::StorageBytes(layout.type))};
}

}  // namespace iha::model
