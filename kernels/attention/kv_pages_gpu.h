// kv_pages_gpu.h: rows into and between the pages of a cache on the device (layout: attention_gpu.h).
//
// Append: key and value row r ([kv_heads][d] and [GpuValueHeads][d_v]) go to slot positions[r] of sequence
// row_sequence[r]: page page_table[sequence][position / 64], slot position % 64 of each KV head. No two rows of a call
// may have one slot. Copy: page pairs[i].to := pages[i].from, all heads; no page is both source and target, or target
// twice, of one call. d, d_v are multiples of 8. Bits are moved, never rounded: 16 bytes are read and written once
// each. Returns before it is done (target.h); status 1 for a shape outside of these.
#pragma once

#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

struct KvPagesGpu {
  uint16_t* k_pages = nullptr;
  uint16_t* v_pages = nullptr;
  uint32_t kv_heads = 0;
  uint32_t d = 0;
  uint32_t d_v = 0;
};

struct KvAppendGpuArgs {
  KvPagesGpu pages = {};
  const uint16_t* k = nullptr;  // [rows][kv_heads][d]
  const uint16_t* v = nullptr;  // [rows][value heads][d_v]
  const uint32_t* row_sequence = nullptr;
  const uint32_t* positions = nullptr;
  const int32_t* page_table = nullptr;  // [sequence][pages_per_sequence]
  uint32_t pages_per_sequence = 0;
  uint32_t rows = 0;
};
GpuStatus KvAppendGpu(const KvAppendGpuArgs& args, GpuStream stream);
void KvAppendRef(const KvAppendGpuArgs& args);  // every pointer is the host's

struct KvCopyGpuArgs {
  KvPagesGpu pages = {};
  const int32_t* pairs = nullptr;  // [count][2]: from, to
  uint32_t count = 0;
};
GpuStatus KvCopyGpu(const KvCopyGpuArgs& args, GpuStream stream);
void KvCopyRef(const KvCopyGpuArgs& args);  // the same

}  // namespace iha::kernels
