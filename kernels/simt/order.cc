#include "kernels/simt/order.h"

#include <algorithm>

namespace iha::kernels::simt {

void Order::Reset(uint32_t warps) {
  warps_.resize(warps);
  for (Warp& w : warps_) {
    w.clock = 1;
    w.all = 0;
    if (w.partial) w.lanes = {};
    w.partial = false;
    w.known.assign(warps, 0);
  }
}

void Order::SyncLanes(uint32_t warp, uint32_t mask) {
  Warp& w = warps_[warp];
  const uint32_t done = w.clock++;
  if (mask == ~uint32_t{0}) {
    w.all = done + 1;
    return;
  }
  std::array<uint32_t, kWarpSize> joined = {};
  for (uint32_t a = 0; a < kWarpSize; ++a) {
    if ((mask >> a & 1) == 0) continue;
    for (uint32_t b = 0; b < kWarpSize; ++b) joined[b] = std::max(joined[b], w.lanes[a][b]);
    joined[a] = done + 1;
  }
  for (uint32_t a = 0; a < kWarpSize; ++a) {
    if ((mask >> a & 1) != 0) w.lanes[a] = joined;
  }
  w.partial = true;
}

void Order::Tell(uint32_t warp, bool waits, Knowledge& to) {
  Warp& w = warps_[warp];
  if (waits) {
    SyncLanes(warp, ~uint32_t{0});
  } else {
    ++w.clock;
  }
  to.resize(warps_.size(), 0);
  for (size_t i = 0; i < warps_.size(); ++i) to[i] = std::max(to[i], w.known[i]);
  to[warp] = std::max(to[warp], w.clock);
}

void Order::Hear(uint32_t warp, const Knowledge& from) {
  Knowledge& known = warps_[warp].known;
  for (size_t i = 0; i < from.size(); ++i) known[i] = std::max(known[i], from[i]);
}

}  // namespace iha::kernels::simt
