#include "kernels/attention/attention_gpu.h"
#include "kernels/attention/kv_pages_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kThreads = 128;

IHA_HOST_DEVICE uint32_t ValueHeads(const KvPagesGpu& pages) {
  return GpuValueHeads(pages.kv_heads, pages.d, pages.d_v);
}

// Row `row` of `heads` heads of `d` columns, to slot `slot` of page `page`.
IHA_DEVICE void MoveRow(ptx::Global<uint16_t> to, ptx::Global<const uint16_t> from, uint32_t heads, uint32_t d,
                        size_t row, size_t page, uint32_t slot) {
  const uint32_t chunks = d / 8;
  for (uint32_t i = ptx::ThreadX(); i < heads * chunks; i += kThreads) {
    const uint32_t head = i / chunks, column = i % chunks * 8;
    const auto eight = ptx::LoadAs<Eight16>(from + ((row * heads + head) * d + column));
    ptx::StoreAs(to + (((page * heads + head) * kGpuKeyBlock + slot) * d + column), eight);
  }
}

IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) KvAppend(KvAppendGpuArgs p) {
  const uint32_t row = ptx::BlockX();
  const uint32_t sequence = ptx::Load(ptx::Global<const uint32_t>(p.row_sequence) + row);
  const uint32_t position = ptx::Load(ptx::Global<const uint32_t>(p.positions) + row);
  const size_t at = size_t{sequence} * p.pages_per_sequence + position / kGpuKeyBlock;
  const size_t page = static_cast<size_t>(ptx::Load(ptx::Global<const int32_t>(p.page_table) + at));
  const ptx::Global<uint16_t> k_pages(p.pages.k_pages), v_pages(p.pages.v_pages);
  const uint32_t slot = position % kGpuKeyBlock;
  MoveRow(k_pages, ptx::Global<const uint16_t>(p.k), p.pages.kv_heads, p.pages.d, row, page, slot);
  MoveRow(v_pages, ptx::Global<const uint16_t>(p.v), ValueHeads(p.pages), p.pages.d_v, row, page, slot);
}

IHA_DEVICE void MovePage(ptx::Global<uint16_t> pool, size_t page_elements, size_t from, size_t to) {
  for (size_t i = (size_t{ptx::BlockY()} * kThreads + ptx::ThreadX()) * 8; i < page_elements;
       i += size_t{ptx::GridY()} * kThreads * 8) {
    ptx::StoreAs(pool + (to * page_elements + i), ptx::LoadAs<Eight16>(pool + (from * page_elements + i)));
  }
}

IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) KvCopy(KvCopyGpuArgs p) {
  const ptx::Global<const int32_t> pairs(p.pairs);
  const size_t from = static_cast<size_t>(ptx::Load(pairs + ptx::BlockX() * 2));
  const size_t to = static_cast<size_t>(ptx::Load(pairs + (ptx::BlockX() * 2 + 1)));
  MovePage(ptx::Global<uint16_t>(p.pages.k_pages), size_t{p.pages.kv_heads} * kGpuKeyBlock * p.pages.d, from, to);
  MovePage(ptx::Global<uint16_t>(p.pages.v_pages), size_t{ValueHeads(p.pages)} * kGpuKeyBlock * p.pages.d_v, from, to);
}

bool Fits(const KvPagesGpu& pages) {
  if (pages.d_v == 2 * pages.d && pages.kv_heads % 2 != 0) return false;
  return pages.kv_heads != 0 && pages.d != 0 && pages.d % 8 == 0 && pages.d_v != 0 && pages.d_v % 8 == 0;
}

}  // namespace

GpuStatus KvAppendGpu(const KvAppendGpuArgs& args, GpuStream stream) {
  if (!Fits(args.pages)) return 1;
  if (args.rows == 0) return 0;
  return LaunchKernel("kv_append", KvAppend, {args.rows, 1, 1, kThreads, 0}, stream, args);
}

GpuStatus KvCopyGpu(const KvCopyGpuArgs& args, GpuStream stream) {
  if (!Fits(args.pages)) return 1;
  if (args.count == 0) return 0;
  return LaunchKernel("kv_copy", KvCopy, {args.count, 4, 1, kThreads, 0}, stream, args);
}

}  // namespace iha::kernels
