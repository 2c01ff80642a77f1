// elementwise_gpu.h: sums of rows and rows of an embedding table, on the device, bf16.
//
// AddInPlaceGpu: x = bf16(x + y), one rounding; ldy = 0 adds the same row (a bias) to every row. EmbedGpu: out row r =
// bf16(table[ids[r]] * scale), scale 1 moves bits; an id outside of the table is a bug of the caller. n and strides are
// multiples of 8, rows begin at multiples of 16 bytes. Each element is read and written once. Elements are independent
// of each other. Both return before they are done (target.h); status 1 for a shape outside of these.
#pragma once

#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

struct AddGpuArgs {
  uint16_t* x = nullptr;
  const uint16_t* y = nullptr;
  uint32_t rows = 0;
  uint32_t n = 0;
  uint32_t ldx = 0;  // elements between rows
  uint32_t ldy = 0;
};
GpuStatus AddInPlaceGpu(const AddGpuArgs& args, GpuStream stream);

struct EmbedGpuArgs {
  const uint16_t* table = nullptr;  // [vocabulary][n]
  const int32_t* ids = nullptr;     // [rows]
  uint16_t* out = nullptr;          // [rows][n]
  uint32_t rows = 0;
  uint32_t n = 0;
  float scale = 1.0f;
};
GpuStatus EmbedGpu(const EmbedGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
