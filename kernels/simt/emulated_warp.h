// emulated_warp.h: barriers and warp operations of ptx.h under the emulator.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "kernels/simt/emulated_memory.h"

namespace iha::kernels::ptx {

// All lanes of the operation give `in`; the last to come runs compute(operands, in of lane, out of lane).
template <class In, class Out, class Compute>
Out Together(const simt::WarpOperation& operation, const Site& at, const In& in, Compute compute) {
  simt::Block& block = simt::Block::Current();
  Out out{};
  simt::WarpOperands all;
  if (block.JoinWarp(operation, at, &in, &out, &all)) {
    compute(
        all.mask, [&](uint32_t lane) -> const In& { return *static_cast<const In*>(all.in[lane]); },
        [&](uint32_t lane) -> Out& { return *static_cast<Out*>(all.out[lane]); });
    block.FinishWarp(operation);
  }
  return out;
}

template <class F>
void ForLanes(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<uint32_t>(std::countr_zero(mask)));
}

inline void SyncWarp(uint32_t mask = kAllLanes, const Site& at = Here::current()) {
  Together<char, char>({"SyncWarp", mask, 0, false, true}, at, 0,
                       [](uint32_t lanes, auto, auto) { simt::Block::Current().OrderLanes(lanes); });
}

// The value of the lane that source(lane, n modulo 32, width) names, or the own one.
template <class V>
struct ShuffleOperand {
  V value;
  uint32_t n;
};
inline constexpr uint32_t kOwnValue = ~0u;
template <class V, class Source>
V Shuffle(const char* name, uint32_t mask, V value, uint32_t n, uint32_t width, const Site& at, Source source) {
  static_assert(sizeof(V) == 4 || sizeof(V) == 8);
  simt::Block& block = simt::Block::Current();
  if (width == 0 || width > simt::kWarpSize || !std::has_single_bit(width)) {
    block.Fail(simt::ErrorKind::kDiverged, at, std::string(name) + ": the width is not 1, 2, 4, 8, 16 or 32");
  }
  using In = ShuffleOperand<V>;
  return Together<In, V>(
      {name, mask, sizeof(V) << 8 | width}, at, In{value, n % simt::kWarpSize}, [&](uint32_t lanes, auto in, auto out) {
        ForLanes(lanes, [&](uint32_t lane) {
          const uint32_t from = source(lane, in(lane).n, width);
          if (from != kOwnValue && (lanes >> from & 1) == 0) {
            block.FailLane(lane, simt::ErrorKind::kDiverged, at,
                           std::string(name) + " reads lane " + std::to_string(from) + ", which the mask lacks");
          }
          out(lane) = in(from == kOwnValue ? lane : from).value;
        });
      });
}
template <class V>
V ShflXor(uint32_t mask, V value, uint32_t n, uint32_t width = 32, const Site& at = Here::current()) {
  return Shuffle(__func__, mask, value, n, width, at, [](uint32_t lane, uint32_t x, uint32_t w) {
    const uint32_t from = lane ^ x;  // a lane of an earlier segment may be read, of a later one not
    return from / w > lane / w || from >= simt::kWarpSize ? kOwnValue : from;
  });
}
template <class V>
V ShflUp(uint32_t mask, V value, uint32_t n, uint32_t width = 32, const Site& at = Here::current()) {
  return Shuffle(__func__, mask, value, n, width, at,
                 [](uint32_t lane, uint32_t x, uint32_t w) { return lane % w < x ? kOwnValue : lane - x; });
}
template <class V>
V ShflDown(uint32_t mask, V value, uint32_t n, uint32_t width = 32, const Site& at = Here::current()) {
  return Shuffle(__func__, mask, value, n, width, at, [](uint32_t lane, uint32_t x, uint32_t w) {
    return x >= w || lane % w + x >= w ? kOwnValue : lane + x;
  });
}
template <class V>
V ShflIdx(uint32_t mask, V value, uint32_t n, uint32_t width = 32, const Site& at = Here::current()) {
  return Shuffle(__func__, mask, value, n, width, at,
                 [](uint32_t lane, uint32_t x, uint32_t w) { return lane / w * w + x % w; });
}

inline uint32_t Ballot(uint32_t mask, bool predicate, const Site& at = Here::current()) {
  return Together<bool, uint32_t>({__func__, mask}, at, predicate, [](uint32_t lanes, auto in, auto out) {
    uint32_t set = 0;
    ForLanes(lanes, [&](uint32_t lane) { set |= in(lane) ? 1u << lane : 0; });
    ForLanes(lanes, [&](uint32_t lane) { out(lane) = set; });
  });
}
inline bool Any(uint32_t mask, bool predicate, const Site& at = Here::current()) {
  return Ballot(mask, predicate, at) != 0;
}
inline bool All(uint32_t mask, bool predicate, const Site& at = Here::current()) {
  return Ballot(mask, predicate, at) == mask;
}
// The lanes of the mask with the same value.
template <class V>
uint32_t MatchAny(uint32_t mask, V value, const Site& at = Here::current()) {
  static_assert(sizeof(V) == 4 || sizeof(V) == 8);
  return Together<V, uint32_t>({__func__, mask, sizeof(V)}, at, value, [](uint32_t lanes, auto in, auto out) {
    ForLanes(lanes, [&](uint32_t lane) {
      ForLanes(lanes, [&](uint32_t other) {
        if (std::memcmp(&in(lane), &in(other), sizeof(V)) == 0) out(lane) |= 1u << other;
      });
    });
  });
}
// The mask if all its lanes have the same value, else 0.
template <class V>
uint32_t MatchAll(uint32_t mask, V value, const Site& at = Here::current()) {
  return MatchAny(mask, value, at) == mask ? mask : 0;
}

template <class V, class Join>
V Reduce(const char* name, uint32_t mask, V value, const Site& at, Join join) {
  static_assert(std::is_same_v<V, uint32_t> || std::is_same_v<V, int32_t>);
  return Together<V, V>({name, mask, std::is_signed_v<V>}, at, value, [&](uint32_t lanes, auto in, auto out) {
    V all = in(static_cast<uint32_t>(std::countr_zero(lanes)));
    ForLanes(lanes & (lanes - 1), [&](uint32_t lane) { all = join(all, in(lane)); });
    ForLanes(lanes, [&](uint32_t lane) { out(lane) = all; });
  });
}
template <class V>
V ReduceAdd(uint32_t mask, V value, const Site& at = Here::current()) {
  return Reduce(__func__, mask, value, at,
                [](V a, V b) { return static_cast<V>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); });
}
template <class V>
V ReduceMin(uint32_t mask, V value, const Site& at = Here::current()) {
  return Reduce(__func__, mask, value, at, [](V a, V b) { return std::min(a, b); });
}
template <class V>
V ReduceMax(uint32_t mask, V value, const Site& at = Here::current()) {
  return Reduce(__func__, mask, value, at, [](V a, V b) { return std::max(a, b); });
}
inline uint32_t ReduceAnd(uint32_t mask, uint32_t value, const Site& at = Here::current()) {
  return Reduce(__func__, mask, value, at, [](uint32_t a, uint32_t b) { return a & b; });
}
inline uint32_t ReduceOr(uint32_t mask, uint32_t value, const Site& at = Here::current()) {
  return Reduce(__func__, mask, value, at, [](uint32_t a, uint32_t b) { return a | b; });
}
inline uint32_t ReduceXor(uint32_t mask, uint32_t value, const Site& at = Here::current()) {
  return Reduce(__func__, mask, value, at, [](uint32_t a, uint32_t b) { return a ^ b; });
}

inline void SyncThreads(const Site& at = Here::current()) {
  simt::Block::Current().Barrier("SyncThreads", 0, 0, true, false, at);
}
inline uint32_t SyncThreadsCount(bool predicate, const Site& at = Here::current()) {
  return simt::Block::Current().Barrier("SyncThreadsCount", 0, 0, true, predicate, at).ones;
}
inline bool SyncThreadsOr(bool predicate, const Site& at = Here::current()) {
  return simt::Block::Current().Barrier("SyncThreadsOr", 0, 0, true, predicate, at).ones != 0;
}
inline bool SyncThreadsAnd(bool predicate, const Site& at = Here::current()) {
  const simt::Block::Votes votes = simt::Block::Current().Barrier("SyncThreadsAnd", 0, 0, true, predicate, at);
  return votes.ones == votes.threads;
}
inline void BarSync(uint32_t id, uint32_t threads, const Site& at = Here::current()) {
  simt::Block::Current().Barrier("BarSync", id, threads, true, false, at);
}
inline void BarArrive(uint32_t id, uint32_t threads, const Site& at = Here::current()) {
  simt::Block::Current().Barrier("BarArrive", id, threads, false, false, at);
}

}  // namespace iha::kernels::ptx
