#include <algorithm>

#include "kernels/attention/attention_gpu.h"
#include "kernels/attention/kv_pages_gpu.h"

namespace iha::kernels {
namespace {

void AppendRow(const uint16_t* from, uint32_t heads, uint32_t d, size_t row, size_t page, size_t slot, uint16_t* pool) {
  for (size_t head = 0; head < heads; ++head) {
    std::copy_n(from + (row * heads + head) * d, d, pool + ((page * heads + head) * kGpuKeyBlock + slot) * d);
  }
}

void CopyPage(uint16_t* pool, size_t elements, const int32_t* pair) {
  std::copy_n(pool + static_cast<size_t>(pair[0]) * elements, elements, pool + static_cast<size_t>(pair[1]) * elements);
}

}  // namespace

void KvAppendRef(const KvAppendGpuArgs& args) {
  const KvPagesGpu& pages = args.pages;
  for (size_t row = 0; row < args.rows; ++row) {
    const size_t position = args.positions[row], sequence = args.row_sequence[row];
    const int32_t page = args.page_table[sequence * args.pages_per_sequence + position / kGpuKeyBlock];
    const size_t to = static_cast<size_t>(page), slot = position % kGpuKeyBlock;
    AppendRow(args.k, pages.kv_heads, pages.d, row, to, slot, pages.k_pages);
    AppendRow(args.v, GpuValueHeads(pages.kv_heads, pages.d, pages.d_v), pages.d_v, row, to, slot, pages.v_pages);
  }
}

void KvCopyRef(const KvCopyGpuArgs& args) {
  const KvPagesGpu& pages = args.pages;
  const size_t k_page = size_t{pages.kv_heads} * kGpuKeyBlock * pages.d;
  const size_t v_page = size_t{GpuValueHeads(pages.kv_heads, pages.d, pages.d_v)} * kGpuKeyBlock * pages.d_v;
  for (size_t i = 0; i < args.count; ++i) {
    CopyPage(pages.k_pages, k_page, args.pairs + 2 * i);
    CopyPage(pages.v_pages, v_page, args.pairs + 2 * i);
  }
}

}  // namespace iha::kernels
