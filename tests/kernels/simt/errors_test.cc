// What is refused, and that the message names the thread, the line and the other party.
#include <gmock/gmock.h>

#include <string>

#include "kernels/simt/device.h"
#include "kernels/simt/ptx.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

using simt::Buffer;
using simt::Device;
using simt::ErrorKind;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kNext = 1;  // __LINE__ + kNext: the line below

simt::Report Launched(uint32_t threads, size_t shared_bytes, const std::function<void()>& body, uint32_t blocks = 1,
                      simt::Options options = {}) {
  Device device(options);
  return device.Launch({"errors", {blocks, 1, 1}, {threads, 1, 1}, shared_bytes}, body);
}

std::string Line(int line) { return "errors_test.cc:" + std::to_string(line); }

TEST(SimtErrors, LaunchesThatNoDeviceAccepts) {
  const auto refused = [](simt::LaunchConfig config, const simt::Options& options = {}) {
    Device device(options);
    const simt::Report report = device.Launch(config, [] { FAIL() << "ran"; });
    EXPECT_EQ(report.error, ErrorKind::kLaunch);
    return report.message;
  };
  EXPECT_THAT(refused({"k", {1, 1, 1}, {1025, 1, 1}, 0}), HasSubstr("k: block (1025,1,1) has more than 1024 threads"));
  EXPECT_THAT(refused({"k", {0, 1, 1}, {32, 1, 1}, 0}), HasSubstr("grid (0,1,1) block (32,1,1) has no threads"));
  EXPECT_THAT(refused({"k", {1, 65536, 1}, {32, 1, 1}, 0}), HasSubstr("y or z above 65535"));
  EXPECT_THAT(refused({"k", {0x80000000u, 1, 1}, {32, 1, 1}, 0}), HasSubstr("has x above 2^31 - 1"));
  EXPECT_THAT(refused({"k", {1, 1, 1}, {32, 1, 1}, 232449}),
              HasSubstr("232449 bytes of shared memory, at most 232448"));
  EXPECT_THAT(refused({"k", {1, 1, 1}, {32, 1, 1}, 101377}, {.max_shared_bytes = 101376}),
              HasSubstr("101377 bytes of shared memory, at most 101376"));
}

TEST(SimtErrors, DeadlockSaysWhoWaitsWhere) {
  int barrier = 0, warp = 0;
  const auto report = Launched(96, 0, [&] {
    const uint32_t t = ptx::ThreadX();
    if (t >= 90) return;
    if (t < 32 || t >= 64) {
      barrier = __LINE__ + kNext;
      ptx::SyncThreads();
    } else if (t != 40) {
      warp = __LINE__ + kNext;
      ptx::SyncWarp();
    } else {
      ptx::BarSync(5, 96);
    }
  });
  EXPECT_EQ(report.error, ErrorKind::kDeadlock);
  EXPECT_THAT(report.message,
              AllOf(StartsWith("errors: block (0,0,0) is stuck: warp 0 lanes 0-31 in SyncThreads (barrier 0) at " +
                               Line(barrier) + "; "),
                    HasSubstr("warp 1 lanes 0-7 9-31 in SyncWarp with mask 0xffffffff at " + Line(warp)),
                    HasSubstr("warp 1 lane 8 in BarSync (barrier 5) at "), HasSubstr("warp 2 lanes 26-31 exited")));
}

TEST(SimtErrors, LaneOutsideOfItsMask) {
  int line = 0;
  const auto report = Launched(32, 0, [&] {
    line = __LINE__ + kNext;
    ptx::Ballot(0xFFFFFFF7u, true);
  });
  EXPECT_EQ(report.error, ErrorKind::kDiverged);
  EXPECT_EQ(report.message, "errors: block (0,0,0) thread 3 (warp 0 lane 3) at " + Line(line) +
                                ": Ballot with mask 0xfffffff7, which lacks the calling lane");
}

TEST(SimtErrors, MaskWithLanesThatDoNotExistOrExited) {
  auto report = Launched(20, 0, [] { ptx::ShflXor(ptx::kAllLanes, 1, 1); });
  EXPECT_THAT(report.message,
              HasSubstr("ShflXor with mask 0xffffffff names lanes 20-31, which the block does not have"));
  report = Launched(32, 0, [] {
    if (ptx::Lane() == 9) return;
    ptx::ReduceAdd(ptx::kAllLanes, 1u);
  });
  EXPECT_EQ(report.error, ErrorKind::kDiverged);
  EXPECT_THAT(report.message, testing::AnyOf(HasSubstr("names lane 9, which exited"),
                                             HasSubstr("thread 9 (warp 0 lane 9) at"), HasSubstr("exits while")));
  EXPECT_TRUE(Launched(20, 0, [] { ptx::SyncWarp(); }).ok());  // SyncWarp is for the lanes that are left
}

TEST(SimtErrors, ShuffleFromOutsideOfTheMask) {
  const auto report = Launched(32, 0, [] {
    if (ptx::Lane() < 16) ptx::ShflDown(0x0000FFFFu, 1.0f, 1);
  });
  EXPECT_EQ(report.error, ErrorKind::kDiverged);
  EXPECT_THAT(report.message, AllOf(HasSubstr("lane 15)"), HasSubstr("ShflDown reads lane 16, which the mask lacks")));
}

TEST(SimtErrors, LanesOfAWarpInDifferentOperations) {
  int vote = 0, shuffle = 0;
  const auto report = Launched(32, 0, [&] {
    if (ptx::Lane() % 2 == 0) {
      vote = __LINE__ + kNext;
      ptx::Any(ptx::kAllLanes, true);
    } else {
      shuffle = __LINE__ + kNext;
      ptx::ShflXor(ptx::kAllLanes, 1, 1);
    }
  });
  EXPECT_EQ(report.error, ErrorKind::kDiverged);
  EXPECT_THAT(report.message, AllOf(HasSubstr(Line(vote)), HasSubstr(Line(shuffle)), HasSubstr("of the warp wait in")));
}

TEST(SimtErrors, AlignedOperationOnTwoLines) {
  const auto report = Launched(32, 0, [] {
    float c[4] = {};
    const uint32_t a[4] = {}, b[2] = {};
    if (ptx::Lane() < 16) {
      ptx::MmaBF16(c, a, b);
    } else {
      ptx::MmaBF16(c, a, b);
    }
  });
  EXPECT_EQ(report.error, ErrorKind::kDiverged);
}

TEST(SimtErrors, RaceNamesBothLines) {
  int write = 0, read = 0;
  const auto report = Launched(64, 256, [&] {
    const auto s = ptx::DynamicShared<float>();
    write = __LINE__ + kNext;
    ptx::Store(s + ptx::ThreadX(), 1.0f);
    if (ptx::ThreadX() / 32 == 0) ptx::SyncWarp();
    ptx::BarSync(ptx::ThreadX() / 32, 32);  // each warp by itself
    read = __LINE__ + kNext;
    ptx::Load(s + ptx::ThreadX() % 32);
  });
  EXPECT_THAT(report.error, testing::AnyOf(ErrorKind::kRace, ErrorKind::kUninitialised));
  if (report.error == ErrorKind::kRace) {
    EXPECT_THAT(report.message, AllOf(HasSubstr("reads shared bytes"), HasSubstr(Line(read)), HasSubstr(Line(write)),
                                      HasSubstr("no barrier lies between")));
  }
}

// Write after read, read after write, write after write; each with and without a barrier; atomics among themselves.
TEST(SimtErrors, RacesOfEveryPair) {
  enum Access { kRead, kWrite, kAtomic };
  const auto touch = [](Access access) {
    const auto s = ptx::DynamicShared<uint32_t>();
    if (access == kRead) ptx::Load(s);
    if (access == kWrite) ptx::Store(s, 1u);
    if (access == kAtomic) ptx::AtomicAdd(s, 1u);
  };
  for (const Access first : {kRead, kWrite, kAtomic}) {
    for (const Access second : {kRead, kWrite, kAtomic}) {
      for (const bool same_warp : {false, true}) {
        for (const int ordered : {0, 1}) {
          for (const uint64_t seed : {1, 2, 3}) {
            const auto report = Launched(64, 4,
                                         [&] {
                                           const uint32_t t = ptx::ThreadX(), other = same_warp ? 5 : 40;
                                           if (t == 63) ptx::Store(ptx::DynamicShared<uint32_t>(), 0u);
                                           ptx::SyncThreads();
                                           if (t == 3) touch(first);
                                           if (ordered == 1) {
                                             if (same_warp) {
                                               ptx::SyncWarp();
                                             } else {
                                               ptx::SyncThreads();
                                             }
                                           }
                                           if (t == other) touch(second);
                                         },
                                         1, {.seed = seed});
            const bool race =
                ordered == 0 && !(first == kRead && second == kRead) && !(first == kAtomic && second == kAtomic);
            EXPECT_EQ(report.error, race ? ErrorKind::kRace : ErrorKind::kNone)
                << first << second << same_warp << ordered << " seed " << seed << " " << report.message;
          }
        }
      }
    }
  }
}

// What one warp told another at a barrier, the other hands on.
TEST(SimtErrors, OrderIsTransitive) {
  for (const bool handed_on : {true, false}) {
    for (const uint64_t seed : {1, 2, 3, 4}) {
      const auto report = Launched(96, 4,
                                   [&] {
                                     const uint32_t warp = ptx::WarpIndex();
                                     const auto s = ptx::DynamicShared<uint32_t>();
                                     if (warp == 0) {
                                       if (ptx::Lane() == 7) ptx::Store(s, 1u);
                                       ptx::BarSync(1, 64);
                                     } else if (warp == 1) {
                                       if (handed_on) ptx::BarSync(1, 64);
                                       ptx::BarSync(2, 64);
                                       if (!handed_on) ptx::BarSync(1, 64);
                                     } else {
                                       ptx::BarSync(2, 64);
                                       if (ptx::Lane() == 3) ptx::Store(s, 2u);
                                     }
                                   },
                                   1, {.seed = seed});
      EXPECT_EQ(report.error, handed_on ? ErrorKind::kNone : ErrorKind::kRace) << report.message;
    }
  }
}

// SyncWarp of a part of a warp: its lanes know what each of them did and knew, the others nothing. The shuffle makes
// sure that the read comes later; it orders no memory.
TEST(SimtErrors, PartOfAWarpOrdersItsLanesOnly) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const bool handed_on : {false, true}) {
      for (uint32_t reader = 1; reader < 4; ++reader) {
        const auto report = Launched(32, 4,
                                     [&] {
                                       const uint32_t lane = ptx::Lane();
                                       const auto s = ptx::DynamicShared<uint32_t>();
                                       if (lane == 0) ptx::Store(s, 1u);
                                       if (lane < 2) ptx::SyncWarp(0x3);
                                       if (handed_on && (lane == 1 || lane == 2)) ptx::SyncWarp(0x6);
                                       ptx::ShflXor(ptx::kAllLanes, lane, 1);
                                       if (lane == reader) ptx::Load(s);
                                     },
                                     1, {.seed = seed});
        const bool knows = reader == 1 || (handed_on && reader == 2);
        EXPECT_EQ(report.error, knows ? ErrorKind::kNone : ErrorKind::kRace) << reader << report.message;
      }
    }
  }
}

TEST(SimtErrors, ArrivingHearsNothing) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const auto report = Launched(64, 4,
                                 [] {
                                   const auto s = ptx::DynamicShared<uint32_t>();
                                   if (ptx::WarpIndex() == 0) {
                                     if (ptx::Lane() == 0) ptx::Store(s, 1u);
                                     ptx::BarSync(1, 64);
                                   } else {
                                     ptx::BarArrive(1, 64);
                                     if (ptx::Lane() == 0) ptx::Store(s, 2u);
                                   }
                                 },
                                 1, {.seed = seed});
    EXPECT_EQ(report.error, ErrorKind::kRace) << report.message;
  }
}

TEST(SimtErrors, CopyInFlight) {
  const std::vector<uint32_t> values(64, 7);
  for (const simt::CopyMode mode : {simt::CopyMode::kEager, simt::CopyMode::kLazy}) {
    Device device({.copies = mode});
    Buffer<uint32_t> in(device, values);
    uint32_t* p = in.data();
    int copy = 0;
    const auto run = [&](const std::function<void(ptx::Shared<uint32_t>)>& after, size_t n = 4) {
      return device.Launch({"errors", {1, 1, 1}, {1, 1, 1}, 64}, [&] {
        const auto s = ptx::DynamicShared<uint32_t>();
        copy = __LINE__ + kNext;
        ptx::CpAsync<16>(s, ptx::Global<const uint32_t>(p) + n);
        after(s);
      });
    };
    auto report = run([](auto s) { ptx::Load(s + 3); });
    EXPECT_EQ(report.error, ErrorKind::kAsyncCopy);
    EXPECT_THAT(report.message, AllOf(HasSubstr("while the cp.async of thread 0 (warp 0 lane 0) at " + Line(copy)),
                                      HasSubstr("has not been waited for")));
    EXPECT_EQ(run([](auto s) { ptx::Store(s + 1, 0u); }).error, ErrorKind::kAsyncCopy);
    EXPECT_EQ(run([&](auto s) { ptx::CpAsync<8>(s, ptx::Global<const uint32_t>(p)); }).error, ErrorKind::kAsyncCopy);
    report = run([](auto) {});
    EXPECT_EQ(report.error, ErrorKind::kAsyncCopy);
    EXPECT_THAT(report.message, HasSubstr("nobody waits for this cp.async before the thread exits"));
    EXPECT_EQ(run([](auto) {}, 1).error, ErrorKind::kMisaligned);
    EXPECT_EQ(run([](auto) {}, 64).error, ErrorKind::kOutOfBounds);
    EXPECT_TRUE(run([](auto s) { (ptx::CpWaitAll(), ptx::Load(s + 3)); }).ok());
  }
}

TEST(SimtErrors, SharedMemory) {
  EXPECT_THAT(Launched(1, 8, [] { ptx::Store(ptx::DynamicShared<uint32_t>() + 2, 1u); }).message,
              HasSubstr("writes shared bytes 8..11, the block has 8"));
  EXPECT_THAT(Launched(1, 8, [] { ptx::Load(ptx::DynamicShared<uint32_t>() + -1); }).message,
              HasSubstr("reads shared bytes -4..-1, the block has 8"));
  EXPECT_THAT(Launched(1, 8, [] { ptx::Store(ptx::DynamicShared<uint32_t>(2), 1u); }).message,
              HasSubstr("writes shared bytes 2..5, expected a multiple of 4"));
  EXPECT_THAT(Launched(1, 8, [] { ptx::Load(ptx::DynamicShared<uint16_t>() + 3); }).message,
              HasSubstr("reads shared bytes 6..7, of which byte 6 was never written"));
}

TEST(SimtErrors, GlobalMemory) {
  Device device;
  const std::vector<float> ones(6, 1.0f);
  Buffer<float> in(device, ones, "in"), out(device, 6, "out");
  float host = 0;
  const auto run = [&](const std::function<void()>& body, uint32_t blocks = 1) {
    return device.Launch({"errors", {blocks, 1, 1}, {1, 1, 1}, 0}, body);
  };
  float *i = in.data(), *o = out.data();
  EXPECT_THAT(run([&] { ptx::Load(ptx::Global<float>(i) + 6); }).message,
              HasSubstr("reads bytes 24..27 of in, which has 24"));
  EXPECT_THAT(run([&] { ptx::Load(ptx::Global<float>(i) + -1); }).message, HasSubstr("reads bytes -4..-1 of in"));
  EXPECT_THAT(run([&] { ptx::Store(ptx::Global<float>(i), 1.0f); }).message,
              HasSubstr("writes in, which is read-only"));
  EXPECT_THAT(run([&] { ptx::Load(ptx::Global<float>(&host)); }).message,
              HasSubstr("a pointer to no memory of the device"));
  EXPECT_THAT(run([&] { ptx::Load(ptx::Global<float>(nullptr)); }).message, HasSubstr("through a null pointer"));
  EXPECT_THAT(run([&] { ptx::Load(ptx::Global<float>(o)); }).message,
              HasSubstr("of out, of which byte 0 was never written"));
  EXPECT_EQ(run([&] { ptx::LoadAs<ptx::Pack<float, 2>>(ptx::Global<float>(i) + 1); }).error, ErrorKind::kMisaligned);
  // Two blocks of one launch may not meet; two launches may.
  EXPECT_THAT(run([&] { ptx::Store(ptx::Global<float>(o), 1.0f); }, 2).message,
              HasSubstr("which block number 0 of this launch wrote: blocks have no order"));
  EXPECT_TRUE(run([&] { ptx::Store(ptx::Global<float>(o), ptx::Load(ptx::Global<float>(o))); }).ok());
  EXPECT_TRUE(run([&] { ptx::Load(ptx::Global<float>(o)); }, 3).ok());
  EXPECT_EQ(run(
                [&] {
                  (ptx::BlockX() == 2) ? ptx::Store(ptx::Global<float>(o), 1.0f)
                                       : void(ptx::Load(ptx::Global<float>(o)));
                },
                3)
                .error,
            ErrorKind::kBlockConflict);
}

TEST(SimtErrors, Barriers) {
  EXPECT_THAT(Launched(64, 0, [] { ptx::BarSync(16, 64); }).message, HasSubstr("barrier 16, a block has 0 to 15"));
  EXPECT_THAT(Launched(64, 0, [] { ptx::BarSync(1, 40); }).message,
              HasSubstr("barrier 1 for 40 threads: expected whole warps"));
  EXPECT_THAT(Launched(96, 0, [] { ptx::BarSync(1, ptx::WarpIndex() != 1 ? 96 : 64); }).message,
              HasSubstr("threads, but others came to it for"));
  EXPECT_THAT(Launched(32, 0,
                       [] {
                         if (ptx::Lane() < 3) {
                           ptx::BarSync(1, 32);
                         } else {
                           ptx::BarSync(2, 32);
                         }
                       })
                  .message,
              HasSubstr("a warp comes to a barrier as a whole"));
}

}  // namespace
}  // namespace iha::kernels
