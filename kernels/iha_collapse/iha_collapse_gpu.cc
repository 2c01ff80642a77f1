#include "kernels/iha_collapse/iha_collapse_gpu.h"

namespace iha::kernels {
namespace {

template <uint32_t kLanes>
GpuStatus LaunchHeads(const IhaCollapseGpuArgs& args, GpuStream stream) {
  return args.v != nullptr ? LaunchCollapseHeads<kLanes, true>(args, stream)
                           : LaunchCollapseHeads<kLanes, false>(args, stream);
}

template <uint32_t kHeadTiles>
GpuStatus LaunchGlobal(const IhaCollapseGlobalGpuArgs& args, GpuStream stream) {
  if (args.v == nullptr) {
    return args.terms == 1 ? LaunchCollapseGlobal<kHeadTiles, 1>(args, stream)
                           : LaunchCollapseGlobal<kHeadTiles, 2>(args, stream);
  }
  return args.d == 64    ? LaunchCollapseGlobalXsa<kHeadTiles, 64>(args, stream)
         : args.d == 128 ? LaunchCollapseGlobalXsa<kHeadTiles, 128>(args, stream)
                         : LaunchCollapseGlobalXsa<kHeadTiles, 256>(args, stream);
}

}  // namespace

GpuStatus IhaCollapseGpu(const IhaCollapseGpuArgs& args, GpuStream stream) {
  if (args.heads == 0 || args.pseudo == 0) return 1;
  if (args.tokens == 0) return 0;
  if (args.d == 64) return LaunchHeads<8>(args, stream);
  if (args.d == 128) return LaunchHeads<16>(args, stream);
  if (args.d == 256) return LaunchHeads<32>(args, stream);
  return 1;
}

GpuStatus IhaCollapseGlobalGpu(const IhaCollapseGlobalGpuArgs& args, GpuStream stream) {
  if (args.heads == 0 || args.heads > kCollapseGpuMaxHeads || args.pseudo == 0) return 1;
  if (args.d == 0 || args.d % kCollapseGpuColumns != 0 || args.terms == 0 || args.terms > 2) return 1;
  if (args.v != nullptr && args.d != 64 && args.d != 128 && args.d != 256) return 1;
  const CollapseGpuLayout layout = CollapseGpuLayoutFor(args.heads, args.pseudo, args.terms);
  const uint32_t tiles = CollapseGpuTilesFor(layout, args.v == nullptr ? 0 : args.d, args.max_shared_bytes);
  if (tiles == 0) return 1;
  if (args.tokens == 0) return 0;
  return tiles == 1   ? LaunchGlobal<1>(args, stream)
         : tiles == 2 ? LaunchGlobal<2>(args, stream)
                      : LaunchGlobal<4>(args, stream);
}

}  // namespace iha::kernels
