#include "kernels/simt/block.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace iha::kernels::simt {
namespace {
constexpr size_t kSharedAlignment = 1024;

unsigned char* AllocateShared(size_t bytes) {
  return static_cast<unsigned char*>(::operator new (std::max<size_t>(bytes, 1), std::align_val_t{kSharedAlignment}));
}
void FreeShared(unsigned char* p) { ::operator delete (p, std::align_val_t{kSharedAlignment}); }

struct Stopped {};  // thrown by Fail, caught where the thread began
}  // namespace

thread_local Block* Block::current_ = nullptr;

Block::Block(const LaunchConfig& config, const std::function<void()>& thread, Device& device, FiberPool& fibers,
             uint32_t first_serial, Report& report)
    : config_(config),
      body_(thread),
      device_(device),
      fibers_(fibers),
      first_serial_(first_serial),
      report_(report),
      threads_n_(static_cast<uint32_t>(config.block.count())),
      shared_(AllocateShared(config.shared_bytes), &FreeShared),
      threads_(threads_n_),
      warps_((threads_n_ + kWarpSize - 1) / kWarpSize),
      random_(device.options().seed) {}

uint32_t Block::Random(uint32_t below) {  // SplitMix64
  uint64_t z = (random_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>((z ^ (z >> 31)) % below);
}

void Block::RunThread(void* block) { static_cast<Block*>(block)->ThreadMain(); }

void Block::ThreadMain() {
  try {
    body_();
    Exit();
  } catch (const Stopped&) {
  }
}

void Block::Start(Dim3 index) {
  index_ = index;
  alive_ = threads_n_;
  std::memset(shared_.get(), 0xFF, config_.shared_bytes);
  const uint32_t warps = static_cast<uint32_t>(warps_.size());
  order_.Reset(warps);
  if (device_.options().check_shared) shadow_.Reset(static_cast<uint32_t>(config_.shared_bytes), warps, &order_);
  for (NamedBarrier& b : barriers_) b = {};
  exited_knowledge_.assign(warps, 0);
  for (uint32_t w = 0; w < warps; ++w) {
    const uint32_t lanes = std::min(kWarpSize, threads_n_ - w * kWarpSize);
    warps_[w] = {};
    warps_[w].exists = warps_[w].ready = lanes == kWarpSize ? ~uint32_t{0} : (1u << lanes) - 1;
  }
  const Dim3& size = config_.block;
  for (uint32_t i = 0; i < threads_n_; ++i) {
    threads_[i] = {};
    threads_[i].who = {i / kWarpSize, i % kWarpSize};
    threads_[i].index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
    fibers_[i].Prepare(&RunThread, this);
  }
}

void Block::Run(Dim3 index, uint32_t serial) {
  Block* const outer = current_;
  current_ = this;
  serial_ = serial;
  ++report_.counters.blocks;
  Start(index);
  std::vector<uint32_t> ready;
  while (alive_ > 0 && report_.ok()) {
    ready.clear();
    for (uint32_t w = 0; w < warps_.size(); ++w) {
      if (warps_[w].ready != 0) ready.push_back(w);
    }
    if (ready.empty()) {
      ReportDeadlock();
      break;
    }
    RunWarp(ready[Random(static_cast<uint32_t>(ready.size()))]);
  }
  current_ = outer;
}

// Until no lane of the warp can go on.
void Block::RunWarp(uint32_t warp) {
  const uint32_t rotate = Random(kWarpSize), step = Random(kWarpSize / 2) * 2 + 1;
  while (warps_[warp].ready != 0) {
    for (uint32_t i = 0; i < kWarpSize; ++i) {
      const uint32_t lane = (rotate + i * step) % kWarpSize;
      if ((warps_[warp].ready >> lane & 1) == 0) continue;
      const uint32_t number = warp * kWarpSize + lane;
      thread_ = &threads_[number];
      fiber_ = &fibers_[number];
      fiber_->Resume();
      if (!report_.ok()) return;
    }
  }
}

void Block::WaitAs(State state, std::string_view name, uint32_t detail, const Site& site) {
  Thread* self = thread_;
  Fiber* fiber = fiber_;
  self->state = state;
  self->waits_in = name;
  self->waits_for = detail;
  self->site = site;
  warps_[self->who.warp].ready &= ~(1u << self->who.lane);
  fiber->Suspend();
}

void Block::Wake(uint32_t warp, uint32_t lanes) {
  warps_[warp].ready |= lanes;
  for (uint32_t mask = lanes; mask != 0; mask &= mask - 1) {
    threads_[warp * kWarpSize + static_cast<uint32_t>(std::countr_zero(mask))].state = State::kReady;
  }
}

std::string Block::Describe(SharedShadow::Who who) const {
  return "thread " + std::to_string(who.warp * kWarpSize + who.lane) + " (warp " + std::to_string(who.warp) + " lane " +
         std::to_string(who.lane) + ")";
}

void Block::Note(ErrorKind kind, const std::string& message) {
  report_.error = kind;
  report_.message = std::string(config_.name) + ": block (" + std::to_string(index_.x) + "," +
                    std::to_string(index_.y) + "," + std::to_string(index_.z) + ") " + message;
}

void Block::FailLane(uint32_t lane, ErrorKind kind, const Site& site, std::string_view what) {
  Note(kind, Describe({thread_->who.warp, lane}) + " at " + ToString(site) + ": " + std::string(what));
  throw Stopped();
}

void Block::Fail(ErrorKind kind, const Site& site, std::string_view what) {
  FailLane(thread_->who.lane, kind, site, what);
}

void Block::Exit() {
  Thread* self = thread_;
  const uint32_t warp = self->who.warp, bit = 1u << self->who.lane;
  if (!self->copies.empty()) {
    Fail(ErrorKind::kAsyncCopy, self->copies.front().site, "nobody waits for this cp.async before the thread exits");
  }
  Warp& w = warps_[warp];
  self->state = State::kExited;
  w.ready &= ~bit;
  w.exited |= bit;
  --alive_;
  for (const Pending& p : w.pending) {
    if ((p.operation.mask & bit) != 0 && !p.operation.exited_lanes_may_miss) {
      Fail(ErrorKind::kDiverged, p.site,
           "exits while other lanes of its warp wait for it here in " + std::string(p.operation.name));
    }
  }
  FinishIfComplete(warp);
  if (w.exited == w.exists) {
    order_.Tell(warp, false, exited_knowledge_);
  } else if (w.at_barrier != 0 && w.at_barrier == (w.exists & ~w.exited)) {
    WarpArrives(warp, w.site);
  }
  for (NamedBarrier& b : barriers_) {
    if (b.used && b.threads == 0) ReleaseIfComplete(b);
  }
}

uint32_t Block::LiveWarps() const {
  return static_cast<uint32_t>(
      std::count_if(warps_.begin(), warps_.end(), [](const Warp& w) { return w.exited != w.exists; }));
}

}  // namespace iha::kernels::simt
