#include "kernels/attention/attention_jobs.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace iha::kernels {
namespace {

struct Item {
  const AttentionGroup* group;
  size_t first, last;  // blocks that some row sees
};

Item ItemOf(const AttentionGroup& group) {
  uint32_t first = group.rows.front().first, last = group.rows.front().last;
  for (const AttentionRow& row : group.rows) {
    first = std::min(first, row.first);
    last = std::max(last, row.last);
  }
  return {&group, first / kKeyBlock, last / kKeyBlock};
}

auto HeadOf(const Item& item) {
  return std::tuple(item.group->maker != nullptr, item.group->head_offset, item.group->key);
}

// Tables are chains: sequences that hold the same block at b hold the same ones before it. With windows there are
// exceptions (a cached block was computed anew); they cost time alone, as each block's identity is compared again.
bool Share(const Item& a, const Item& b) {
  const size_t at = std::max(a.first, b.first);
  return at <= std::min(a.last, b.last) && BlockIdentity(*a.group, at) == BlockIdentity(*b.group, at);
}

// Order of the tables from block `from` on, a table before those that it begins: the longer two tables agree, the
// nearer they end up.
bool TableLess(const Item& a, const Item& b, size_t from) {
  for (size_t at = from; at <= b.last; ++at) {
    if (at > a.last) return true;
    const void* x = BlockIdentity(*a.group, at);
    const void* y = BlockIdentity(*b.group, at);
    if (x != y) return std::less<>()(x, y);
  }
  return false;
}

// Groups that share blocks: even jobs, cut between groups where these are small.
void CutShared(std::span<const Item> items, const AttentionCut& cut, std::vector<AttentionJob>& jobs) {
  size_t all = 0;
  for (const Item& item : items) all += item.group->rows.size();
  const size_t count = (all + cut.job_rows - 1) / cut.job_rows;
  size_t before = 0, current = count;  // rows before the piece, the job that the last piece went to
  for (const Item& item : items) {
    const size_t rows = item.group->rows.size(), pieces = (rows + cut.piece_rows - 1) / cut.piece_rows;
    for (size_t p = 0; p < pieces; ++p) {
      const size_t r0 = rows * p / pieces, r1 = rows * (p + 1) / pieces;
      const size_t middle = 2 * before + (r1 - r0), job = middle * count / (2 * all);
      if (job != current) jobs.emplace_back();
      current = job;
      jobs.back().pieces.push_back({item.group, r0, r1 - r0});
      jobs.back().rows += r1 - r0;
      for (const AttentionRow& row : item.group->rows.subspan(r0, r1 - r0)) {
        jobs.back().visible += size_t{row.last} + 1 - row.first;
      }
      before += r1 - r0;
    }
  }
}

void Append(const AttentionJob& from, AttentionJob& to) {
  to.pieces.insert(to.pieces.end(), from.pieces.begin(), from.pieces.end());
  to.rows += from.rows;
  to.visible += from.visible;
}

}  // namespace

const void* BlockIdentity(const AttentionGroup& group, size_t b) {
  return group.maker != nullptr ? group.maker->Source(b) : group.blocks[b];
}

std::vector<AttentionJob> CutAttention(std::span<const AttentionGroup> groups, const AttentionCut& plain,
                                       const AttentionCut& made) {
  std::vector<Item> items;
  items.reserve(groups.size());
  for (const AttentionGroup& group : groups) {
    if (!group.rows.empty()) items.push_back(ItemOf(group));
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return HeadOf(a) < HeadOf(b); });
  std::vector<AttentionJob> jobs;
  for (size_t i = 0; i < items.size();) {
    size_t end = i + 1, from = items[i].first;
    for (; end < items.size() && HeadOf(items[end]) == HeadOf(items[i]); ++end) {
      from = std::max(from, items[end].first);
    }
    std::stable_sort(items.begin() + static_cast<ptrdiff_t>(i), items.begin() + static_cast<ptrdiff_t>(end),
                     [from](const Item& a, const Item& b) { return TableLess(a, b, from); });
    const AttentionCut& cut = items[i].group->maker != nullptr ? made : plain;
    const size_t of_head = jobs.size();
    for (size_t next = i + 1; i < end; i = next++) {
      while (next < end && Share(items[next - 1], items[next])) ++next;
      const size_t first = jobs.size();
      CutShared(std::span(items).subspan(i, next - i), cut, jobs);
      if (first > of_head && jobs[first - 1].rows + jobs[first].rows <= cut.job_rows) {
        Append(jobs[first], jobs[first - 1]);
        jobs.erase(jobs.begin() + static_cast<ptrdiff_t>(first));
      }
    }
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const AttentionJob& a, const AttentionJob& b) { return a.visible > b.visible; });
  return jobs;
}

}  // namespace iha::kernels
