// Each primitive against its definition, written plainly and apart from the emulator: PTX ISA 8.x, sections of shfl,
// vote, match, redux, cp.async, atom, bar, and the CUDA C++ Programming Guide for the __*_sync built-ins.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <tuple>
#include <vector>

#include "kernels/simt/device.h"
#include "kernels/simt/ptx.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

using simt::Buffer;
using simt::CopyMode;
using simt::Device;

constexpr uint32_t kWarp = 32;

// Runs one warp, each lane gives one value back.
template <class T>
std::vector<T> RunWarp(const std::function<T()>& lane) {
  Device device({.seed = 7});
  Buffer<T> out(device, kWarp);
  T* p = out.data();
  const simt::Report report = device.Launch({.name = "warp", .block = {kWarp, 1, 1}}, [&] {
    const ptx::Global<T> y(p);
    ptx::Store(y + ptx::Lane(), lane());
  });
  EXPECT_TRUE(report.ok()) << report.message;
  return out.ToHost();
}

TEST(SimtPrimitives, IndicesCoverTheGridOnce) {
  Device device;
  Buffer<uint32_t> out(device, 2 * 3 * 2 * 4 * 3 * 5);
  uint32_t* p = out.data();
  const auto report = device.Launch({.name = "indices", .grid = {2, 3, 2}, .block = {4, 3, 5}}, [&] {
    const uint32_t block = (ptx::BlockZ() * ptx::GridY() + ptx::BlockY()) * ptx::GridX() + ptx::BlockX();
    const uint32_t thread = (ptx::ThreadZ() * ptx::BlockDimY() + ptx::ThreadY()) * ptx::BlockDimX() + ptx::ThreadX();
    const ptx::Global<uint32_t> y(p);
    ptx::Store(y + (block * 60 + thread), block * 1000 + thread + (thread % 32 == ptx::Lane() ? 0 : 500));
  });
  ASSERT_TRUE(report.ok()) << report.message;
  EXPECT_EQ(report.counters.blocks, 12u);
  EXPECT_EQ(report.counters.global_written_bytes, out.size() * 4);
  for (uint32_t i = 0; i < out.size(); ++i) EXPECT_EQ(out.data()[i], i / 60 * 1000 + i % 60);
}

enum class Shuffle { kUp, kDown, kXor, kIdx };

// PTX ISA, shfl.sync, pseudo-code: c holds the clamp (bits 0-4) and the segment mask (bits 8-12), as __shfl_*_sync set
// them from the width.
uint32_t ShuffleSource(Shuffle mode, uint32_t lane, uint32_t b, uint32_t width) {
  const int bval = static_cast<int>(b & 31), seg = static_cast<int>((32 - width) & 31);
  const int cval = mode == Shuffle::kUp ? 0 : 31, l = static_cast<int>(lane);
  const int max_lane = (l & seg) | (cval & ~seg), min_lane = l & seg;
  int j = 0;
  bool p = false;
  switch (mode) {
    case Shuffle::kUp:
      j = l - bval;
      p = j >= max_lane;
      break;
    case Shuffle::kDown:
      j = l + bval;
      p = j <= max_lane;
      break;
    case Shuffle::kXor:
      j = l ^ bval;
      p = j <= max_lane;
      break;
    case Shuffle::kIdx:
      j = min_lane | (bval & ~seg);
      p = j <= max_lane;
      break;
  }
  return p ? static_cast<uint32_t>(j) : lane;
}

TEST(SimtPrimitives, ShufflesFollowTheIsa) {
  for (const uint32_t width : {1u, 2u, 4u, 8u, 16u, 32u}) {
    for (uint32_t n = 0; n < 40; ++n) {
      const auto check = [&](Shuffle mode, const std::function<uint64_t(uint64_t)>& f) {
        const auto got = RunWarp<uint64_t>([&] { return f(uint64_t{ptx::Lane()} << 40 | 5); });
        for (uint32_t lane = 0; lane < kWarp; ++lane) {
          ASSERT_EQ(got[lane], uint64_t{ShuffleSource(mode, lane, n, width)} << 40 | 5)
              << "mode " << static_cast<int>(mode) << " lane " << lane << " n " << n << " width " << width;
        }
      };
      check(Shuffle::kUp, [&](uint64_t v) { return ptx::ShflUp(ptx::kAllLanes, v, n, width); });
      check(Shuffle::kDown, [&](uint64_t v) { return ptx::ShflDown(ptx::kAllLanes, v, n, width); });
      check(Shuffle::kXor, [&](uint64_t v) { return ptx::ShflXor(ptx::kAllLanes, v, n, width); });
      check(Shuffle::kIdx, [&](uint64_t v) { return ptx::ShflIdx(ptx::kAllLanes, v, n, width); });
    }
  }
}

TEST(SimtPrimitives, ShuffleSourceMayDifferByLane) {
  const auto got =
      RunWarp<uint32_t>([] { return ptx::ShflIdx(ptx::kAllLanes, ptx::Lane() * 3, (ptx::Lane() * 7 + 1) % 32); });
  for (uint32_t lane = 0; lane < kWarp; ++lane) EXPECT_EQ(got[lane], (lane * 7 + 1) % 32 * 3);
}

TEST(SimtPrimitives, VotesMatchesAndReductionsOverDisjointMasks) {
  std::mt19937 bits(11);
  for (int round = 0; round < 20; ++round) {
    const uint32_t split = round == 0 ? ptx::kAllLanes : static_cast<uint32_t>(bits());  // these lanes, and the others
    std::vector<uint32_t> value(kWarp);
    for (uint32_t& v : value) v = static_cast<uint32_t>(bits()) % (round % 2 == 0 ? 3 : 1);
    struct Got {
      uint32_t ballot = 0, any = 0, all = 0, match = 0, match_all = 0, sum = 0, smallest = 0, largest = 0;
      uint32_t conjunction = 0, disjunction = 0, parity = 0;
      int32_t least = 0;
    };
    Device device({.seed = static_cast<uint64_t>(round)});
    std::vector<Got> out(kWarp);  // memory of the test, not the device's
    const auto report = device.Launch({.name = "votes", .block = {kWarp, 1, 1}}, [&] {
      const uint32_t lane = ptx::Lane(), mask = (split >> lane & 1) != 0 ? split : ~split, v = value[lane];
      Got g{};
      g.ballot = ptx::Ballot(mask, v == 1);
      g.any = ptx::Any(mask, v == 1);
      g.all = ptx::All(mask, v != 1);
      g.match = ptx::MatchAny(mask, v);
      g.match_all = ptx::MatchAll(mask, v);
      g.sum = ptx::ReduceAdd(mask, v);
      g.smallest = ptx::ReduceMin(mask, v);
      g.largest = ptx::ReduceMax(mask, v);
      g.conjunction = ptx::ReduceAnd(mask, v);
      g.disjunction = ptx::ReduceOr(mask, v);
      g.parity = ptx::ReduceXor(mask, v);
      g.least = ptx::ReduceMin(mask, -static_cast<int32_t>(v));
      out[lane] = g;
    });
    ASSERT_TRUE(report.ok()) << report.message;
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      const bool in = (split >> lane & 1) != 0;
      Got want{.smallest = ~0u, .conjunction = ~0u, .least = 0};
      uint32_t members = 0;
      for (uint32_t other = 0; other < kWarp; ++other) {
        if (((split >> other & 1) != 0) != in) continue;
        const uint32_t v = value[other], bit = 1u << other;
        members |= bit;
        if (v == 1) want.ballot |= bit;
        if (v == value[lane]) want.match |= bit;
        want.sum += v;
        want.smallest = std::min(want.smallest, v);
        want.largest = std::max(want.largest, v);
        want.conjunction &= v;
        want.disjunction |= v;
        want.parity ^= v;
        want.least = std::min(want.least, -static_cast<int32_t>(v));
      }
      want.any = want.ballot != 0;
      want.all = want.ballot == 0;
      want.match_all = want.match == members ? members : 0;
      const Got& g = out[lane];
      EXPECT_EQ(std::tie(g.ballot, g.any, g.all, g.match, g.match_all, g.sum, g.smallest, g.largest, g.conjunction,
                         g.disjunction, g.parity, g.least),
                std::tie(want.ballot, want.any, want.all, want.match, want.match_all, want.sum, want.smallest,
                         want.largest, want.conjunction, want.disjunction, want.parity, want.least))
          << "lane " << lane << " round " << round;
    }
  }
}

TEST(SimtPrimitives, BlockVotes) {
  Device device;
  Buffer<uint32_t> out(device, 3 * 70);
  uint32_t* p = out.data();
  const auto report = device.Launch({.name = "votes", .block = {70, 1, 1}}, [&] {
    const ptx::Global<uint32_t> y(p);
    const uint32_t t = ptx::ThreadX();
    ptx::Store(y + t, ptx::SyncThreadsCount(t % 3 == 0));
    ptx::Store(y + (70 + t), ptx::SyncThreadsOr(t == 69));
    ptx::Store(y + (140 + t), ptx::SyncThreadsAnd(t != 33) * 2 + ptx::SyncThreadsAnd(t < 70));
  });
  ASSERT_TRUE(report.ok()) << report.message;
  EXPECT_EQ(report.counters.barriers, 4u);
  for (uint32_t t = 0; t < 70; ++t) {
    EXPECT_EQ(out.data()[t], 24u);
    EXPECT_EQ(out.data()[70 + t], 1u);
    EXPECT_EQ(out.data()[140 + t], 1u);
  }
}

// A thread that has exited no longer counts for SyncThreads.
TEST(SimtPrimitives, BarrierWithoutExitedThreads) {
  Device device;
  Buffer<uint32_t> out(device, 128);
  uint32_t* p = out.data();
  const auto report = device.Launch({.name = "exit", .block = {128, 1, 1}, .shared_bytes = 512}, [&] {
    const uint32_t t = ptx::ThreadX();
    const auto s = ptx::DynamicShared<uint32_t>();
    ptx::Store(s + t, t);
    if (t >= 40) return;
    ptx::SyncThreads();
    const ptx::Global<uint32_t> y(p);
    ptx::Store(y + t, ptx::Load(s + (127 - t)));  // written by threads that exited before the barrier
  });
  ASSERT_TRUE(report.ok()) << report.message;
  for (uint32_t t = 0; t < 40; ++t) EXPECT_EQ(out.data()[t], 127 - t);
}

TEST(SimtPrimitives, AtomicsReturnTheOldValue) {
  Device device;
  const std::vector<uint32_t> zeros(4, 0);
  Buffer<uint32_t> cells(device, 4), old(device, 3 * 64);
  device.Find(cells.data())->MarkWritten();
  std::copy(zeros.begin(), zeros.end(), cells.data());
  cells.data()[2] = 1000;
  uint32_t *c = cells.data(), *o = old.data();
  const auto report = device.Launch({.name = "atomics", .grid = {3, 1, 1}, .block = {64, 1, 1}}, [&] {
    const uint32_t i = ptx::BlockX() * 64 + ptx::ThreadX();
    const ptx::Global<uint32_t> cell(c), y(o);
    ptx::Store(y + i, ptx::AtomicAdd(cell + 0, 1));
    ptx::AtomicMax(cell + 1, i * 7 % 192);
    ptx::AtomicMin(cell + 2, i * 5 % 192 + 3);
    ptx::AtomicCas(cell + 3, i == 100 ? 0 : 12345, 77);
  });
  ASSERT_TRUE(report.ok()) << report.message;
  EXPECT_EQ(cells.ToHost(), (std::vector<uint32_t>{192, 191, 3, 77}));
  EXPECT_EQ(report.counters.global_atomics, 4u * 192);
  std::vector<uint32_t> seen = old.ToHost();
  std::sort(seen.begin(), seen.end());
  for (uint32_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i);  // every old value once
}

TEST(SimtPrimitives, CopiesLandInGroups) {
  std::vector<uint32_t> x(64 * 4);
  for (uint32_t i = 0; i < x.size(); ++i) x[i] = i + 1;
  for (const CopyMode mode : {CopyMode::kEager, CopyMode::kLazy}) {
    Device device({.copies = mode});
    Buffer<uint32_t> in(device, x), out(device, x.size());
    uint32_t *from = in.data(), *to = out.data();
    const auto report = device.Launch({.name = "copies", .block = {32, 1, 1}, .shared_bytes = 64 * 16}, [&] {
      const ptx::Global<const uint32_t> a(from);
      const ptx::Global<uint32_t> y(to);
      const uint32_t t = ptx::ThreadX();
      const auto s = ptx::DynamicShared<uint32_t>();
      ptx::CpAsync<16>(s + t * 4, a + t * 4);
      ptx::CpCommit();
      ptx::CpAsyncFill<16>(s + (32 + t) * 4, a + (32 + t) * 4, t % 5 * 4 > 16 ? 16 : t % 5 * 4);
      ptx::CpCommit();
      ptx::CpWait<1>();
      ptx::StoreAs(y + t * 4, ptx::LoadAs<ptx::Pack<uint32_t, 4>>(s + t * 4));
      ptx::CpWait<0>();
      ptx::StoreAs(y + (32 + t) * 4, ptx::LoadAs<ptx::Pack<uint32_t, 4>>(s + (32 + t) * 4));
      ptx::CpAsync<4>(s + t * 4, a + t);  // overwrites; never committed, but CpWaitAll waits for it
      ptx::CpAsync<8>(s + (t * 4 + 2), a + t * 2);
      ptx::CpWaitAll();
      if (ptx::Load(s + t * 4) != ptx::Load(a + t) || ptx::Load(s + (t * 4 + 3)) != ptx::Load(a + (t * 2 + 1))) {
        ptx::Store(y + t * 4, 0u);
      }
    });
    ASSERT_TRUE(report.ok()) << report.message;
    for (uint32_t i = 0; i < x.size(); ++i) {
      const uint32_t t = i / 4;
      EXPECT_EQ(out.data()[i], t < 32 || i % 4 < (t - 32) % 5 ? i + 1 : 0) << i;
    }
    // 16 a thread, then 0, 4, 8, 12, 16 of it, then 4 + 8 copied and 8 loaded: what is zero-filled is not read.
    uint64_t partly = 0;
    for (uint32_t t = 0; t < 32; ++t) partly += t % 5 * 4;
    EXPECT_EQ(report.counters.global_read_bytes, 32 * (16 + 12 + 8) + partly);
    EXPECT_EQ(report.counters.shared_written_bytes, 32u * (16 + 16 + 12));
  }
}

// Lanes of one warp in different branches, each with the mask of its branch.
TEST(SimtPrimitives, DivergedLanesUseTheirOwnMasks) {
  const auto got = RunWarp<uint32_t>([] {
    const uint32_t lane = ptx::Lane();
    if (lane < 8) return ptx::ReduceAdd(0x000000FFu, lane);
    if (lane % 2 == 0) return ptx::ReduceAdd(0x55555500u, lane);
    return ptx::ShflXor(0xAAAAAA00u, lane, 2);
  });
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    EXPECT_EQ(got[lane], lane < 8 ? 28u : lane % 2 == 0 ? 228u : lane ^ 2);
  }
}

TEST(SimtPrimitives, LaunchesKeepTheirOrderAndFibers) {
  Device device;
  Buffer<float> x(device, 64);
  float* p = x.data();
  for (int launch = 0; launch < 50; ++launch) {
    const auto report = device.Launch({.name = "again", .block = {64, 1, 1}}, [&] {
      const ptx::Global<float> y(p);
      const uint32_t t = ptx::ThreadX();
      ptx::Store(y + t, launch == 0 ? 1.0f : ptx::Load(y + t) + 1.0f);
    });
    ASSERT_TRUE(report.ok()) << report.message;
  }
  EXPECT_EQ(x.data()[63], 50.0f);
  EXPECT_EQ(device.total().blocks, 50u);
}

}  // namespace
}  // namespace iha::kernels
