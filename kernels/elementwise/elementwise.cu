#include "kernels/elementwise/elementwise_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kThreads = 256;

// Row and first of 8 columns of this thread; false past the last row.
IHA_DEVICE bool PlaceOf(uint32_t rows, uint32_t n, size_t& row, size_t& column) {
  const size_t i = size_t{ptx::BlockX()} * kThreads + ptx::ThreadX(), chunks = n / 8;
  row = i / chunks;
  column = i % chunks * 8;
  return row < rows;
}

IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) AddRows(AddGpuArgs p) {
  size_t row, column;
  if (!PlaceOf(p.rows, p.n, row, column)) return;
  const ptx::Global<uint16_t> x(p.x);
  const ptx::Global<const uint16_t> y(p.y);
  float a[8], b[8];
  Widen(ptx::LoadAs<Eight16>(x + (row * p.ldx + column)), a);
  Widen(ptx::LoadAs<Eight16>(y + (row * p.ldy + column)), b);
  for (int i = 0; i < 8; ++i) a[i] += b[i];
  ptx::StoreAs(x + (row * p.ldx + column), Narrow(a));
}

IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) EmbedRows(EmbedGpuArgs p) {
  size_t row, column;
  if (!PlaceOf(p.rows, p.n, row, column)) return;
  const size_t id = static_cast<size_t>(ptx::Load(ptx::Global<const int32_t>(p.ids) + row));
  auto eight = ptx::LoadAs<Eight16>(ptx::Global<const uint16_t>(p.table) + (id * p.n + column));
  if (p.scale != 1.0f) {
    float x[8];
    Widen(eight, x);
    for (int i = 0; i < 8; ++i) x[i] *= p.scale;
    eight = Narrow(x);
  }
  ptx::StoreAs(ptx::Global<uint16_t>(p.out) + (row * p.n + column), eight);
}

LaunchShape ShapeOf(uint32_t rows, uint32_t n) {
  return {static_cast<uint32_t>((uint64_t{rows} * (n / 8) + kThreads - 1) / kThreads), 1, 1, kThreads, 0};
}

}  // namespace

GpuStatus AddInPlaceGpu(const AddGpuArgs& args, GpuStream stream) {
  if (args.n == 0 || args.n % 8 != 0 || args.ldx % 8 != 0 || args.ldy % 8 != 0) return 1;
  if (args.rows == 0) return 0;
  return LaunchKernel("add", AddRows, ShapeOf(args.rows, args.n), stream, args);
}

GpuStatus EmbedGpu(const EmbedGpuArgs& args, GpuStream stream) {
  if (args.n == 0 || args.n % 8 != 0) return 1;
  if (args.rows == 0) return 0;
  return LaunchKernel("embed", EmbedRows, ShapeOf(args.rows, args.n), stream, args);
}

}  // namespace iha::kernels
