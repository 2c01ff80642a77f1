// block.h: one thread block of a launch: its threads as fibers, its barriers, its shared memory. Internal to the
// emulator: device code uses ptx.h, hosts use device.h.
//
// Run resumes warps in a seeded random order, each until all its lanes wait at a block barrier or have exited (running
// warps far ahead of each other shows missing barriers), its lanes in a seeded order. Everything else is called from
// device code on the current thread's fiber. An error is noted in the report once and ends the block: Fail throws to
// the end of its thread (ThreadMain, so that the frames between are destroyed), and no fiber of the block runs again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/simt/device.h"
#include "kernels/simt/order.h"
#include "kernels/simt/report.h"
#include "kernels/simt/shared_shadow.h"

namespace iha::kernels::simt {

// A warp operation as every lane must name it. Two of one name, mask and parameter are the same operation; `aligned`
// ones (mma, ldmatrix) must also stand on one line.
struct WarpOperation {
  const char* name = "";
  uint32_t mask = ~uint32_t{0};
  uint64_t parameter = 0;
  bool aligned = false;
  bool exited_lanes_may_miss = false;  // SyncWarp
};

// The lanes' operands when the last of them has come. Lanes outside of `mask` have none.
struct WarpOperands {
  uint32_t mask = 0;
  std::array<const void*, kWarpSize> in = {};
  std::array<void*, kWarpSize> out = {};
};

class Block {
 public:
  Block(const LaunchConfig& config, const std::function<void()>& thread, Device& device, FiberPool& fibers,
        uint32_t first_serial, Report& report);
  void Run(Dim3 index, uint32_t serial);

  // The block whose thread runs now on this OS thread.
  static Block& Current() { return *current_; }

  // Of the current thread.
  [[nodiscard]] Dim3 thread_index() const { return thread_->index; }
  [[nodiscard]] uint32_t lane() const { return thread_->who.lane; }
  [[nodiscard]] uint32_t warp() const { return thread_->who.warp; }
  [[nodiscard]] Dim3 block_index() const { return index_; }
  [[nodiscard]] const LaunchConfig& config() const { return config_; }
  [[nodiscard]] Counters& counters() { return report_.counters; }
  [[nodiscard]] Device& device() { return device_; }

  [[noreturn]] void Fail(ErrorKind kind, const Site& site, std::string_view what);
  // The same about another lane of the current warp.
  [[noreturn]] void FailLane(uint32_t lane, ErrorKind kind, const Site& site, std::string_view what);

  // Waits for the other lanes of the mask. True for one lane, the last, which computes for all and then calls
  // FinishWarp; it finds the operands in `all`.
  [[nodiscard]] bool JoinWarp(const WarpOperation& operation, const Site& site, const void* in, void* out,
                              WarpOperands* all);
  void FinishWarp(const WarpOperation& operation);
  void OrderLanes(uint32_t mask) { order_.SyncLanes(warp(), mask); }

  struct Votes {
    uint32_t threads = 0;
    uint32_t ones = 0;
  };
  // bar.sync (wait) or bar.arrive; threads = 0: all of the block that have not exited. `vote` counts into the result.
  Votes Barrier(const char* name, uint32_t id, uint32_t threads, bool wait, bool vote, const Site& site);

  // Checks, notes and counts an access to shared memory; then the caller copies from or to data(). `lane`: of the
  // current warp, who accesses.
  enum class Access { kRead, kWrite, kAtomic };
  unsigned char* Shared(Access access, int64_t offset, uint32_t bytes, uint32_t alignment, const Site& site,
                        uint32_t lane);
  // The same for global memory; `from`: what the pointer was made of.
  void Global(Access access, Allocation* from, const void* address, uint32_t bytes, uint32_t alignment,
              const Site& site);

  // cp.async of `bytes` to shared memory, the first `valid` of them from `source`, the rest zeros.
  void Copy(int64_t offset, Allocation* from, const void* source, uint32_t bytes, uint32_t valid, const Site& site);
  void CommitCopies() { ++thread_->copy_group; }
  void WaitCopies(uint32_t pending_groups);

 private:
  struct AsyncCopy {
    uint32_t group = 0;
    uint32_t offset = 0;
    uint32_t bytes = 0;
    uint32_t valid = 0;
    const unsigned char* source = nullptr;
    Site site;
  };
  enum class State : uint8_t { kReady, kInWarp, kAtBarrier, kExited };
  struct Thread {
    SharedShadow::Who who;
    Dim3 index;
    State state = State::kReady;
    std::string_view waits_in;
    uint32_t waits_for = 0;  // mask, or number of the barrier
    Site site;               // where it waits
    Votes votes;
    uint32_t copy_group = 0;
    std::vector<AsyncCopy> copies;  // issued, not waited for; in order
  };
  struct Pending {  // a warp operation for which lanes wait
    WarpOperation operation;
    Site site;
    uint32_t arrived = 0;
    WarpOperands operands;
  };
  struct Warp {
    uint32_t exists = 0;
    uint32_t exited = 0;
    uint32_t ready = 0;
    std::vector<Pending> pending;
    uint32_t at_barrier = 0;  // lanes that came to the barrier below
    uint32_t barrier = 0;
    uint32_t barrier_threads = 0;
    bool barrier_waits = false;
    uint32_t votes = 0;
    Site site;
  };
  struct NamedBarrier {
    uint32_t threads = 0;  // 0: all
    bool used = false;     // in this round
    uint32_t arrived = 0;  // warps
    uint32_t waiting = 0;  // mask of warps
    uint32_t lanes = 0;
    uint32_t ones = 0;
    Order::Knowledge knowledge;
    Site site;
  };
  static constexpr uint32_t kBarriers = 16;

  static void RunThread(void* block);
  void ThreadMain();
  void Start(Dim3 index);
  void RunWarp(uint32_t warp);
  void WaitAs(State state, std::string_view name, uint32_t detail, const Site& site);
  void Wake(uint32_t warp, uint32_t lanes);
  void Exit();
  void CheckJoin(const WarpOperation& operation, const Site& site, const Warp& w);
  Pending* FindPending(const WarpOperation& operation, const Site& site, Warp& w);
  void FinishIfComplete(uint32_t warp);
  void WarpArrives(uint32_t warp, const Site& site);
  void ReleaseIfComplete(NamedBarrier& barrier);
  [[nodiscard]] uint32_t LiveWarps() const;
  void ReportDeadlock();
  void Note(ErrorKind kind, const std::string& message);
  [[nodiscard]] std::string Describe(SharedShadow::Who who) const;
  uint32_t Random(uint32_t below);

  static thread_local Block* current_;

  const LaunchConfig config_;
  const std::function<void()>& body_;
  Device& device_;
  FiberPool& fibers_;
  const uint32_t first_serial_;
  Report& report_;
  const uint32_t threads_n_;
  std::unique_ptr<unsigned char[], void (*)(unsigned char*)> shared_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::array<NamedBarrier, kBarriers> barriers_;
  Order::Knowledge exited_knowledge_;
  Order order_;
  SharedShadow shadow_;
  Dim3 index_;
  uint32_t serial_ = 0;
  uint32_t alive_ = 0;
  uint64_t random_;
  Thread* thread_ = nullptr;
  Fiber* fiber_ = nullptr;
};

}  // namespace iha::kernels::simt
