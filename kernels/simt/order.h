// order.h: which accesses of a block's threads come before which others, by the barriers between them.
//
// Each warp has a clock that moves on with every synchronisation it takes part in; an access carries its lane and the
// warp's clock of that moment. Lanes of a warp learn of each other by SyncWarp (only the lanes of its mask), warps by
// block barriers (only those that take part; an arriving warp is heard but hears nothing). Nothing else orders:
// shuffles, votes, ldmatrix and mma move registers, and atomics are relaxed, as the PTX memory model has it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace iha::kernels::simt {

inline constexpr uint32_t kWarpSize = 32;

class Order {
 public:
  // What the warps that came to a barrier know: per warp, a clock; accesses below it are known.
  using Knowledge = std::vector<uint32_t>;

  void Reset(uint32_t warps);
  [[nodiscard]] uint32_t clock(uint32_t warp) const { return warps_[warp].clock; }

  // Whether an access of (warp, lane) at `clock` comes before what lane `now_lane` of `now_warp` does now.
  [[nodiscard]] bool Before(uint32_t warp, uint32_t lane, uint32_t clock, uint32_t now_warp, uint32_t now_lane) const {
    const Warp& now = warps_[now_warp];
    if (warp != now_warp) return clock < now.known[warp];
    return lane == now_lane || clock < now.all || clock < now.lanes[now_lane][lane];
  }

  // All lanes of the mask know what each of them did and knows.
  void SyncLanes(uint32_t warp, uint32_t mask);
  // All that the lanes of a warp did and know, added to `to`. If they wait they know it of each other, too.
  void Tell(uint32_t warp, bool waits, Knowledge& to);
  void Hear(uint32_t warp, const Knowledge& from);

 private:
  struct Warp {
    uint32_t clock = 1;
    uint32_t all = 0;                                                   // below it, every lane knows of every lane
    bool partial = false;                                               // `lanes` says more than `all`
    std::array<std::array<uint32_t, kWarpSize>, kWarpSize> lanes = {};  // [knowing][known]
    Knowledge known;                                                    // of other warps
  };
  std::vector<Warp> warps_;
};

}  // namespace iha::kernels::simt
