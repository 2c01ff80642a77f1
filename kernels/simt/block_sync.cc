// Warp operations, block barriers, and what is said when they never complete.
#include <algorithm>
#include <bit>
#include <cstdio>

#include "kernels/simt/block.h"

namespace iha::kernels::simt {
namespace {

std::string Hex(uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

// "lane 3", "lanes 0-7 9 12-31".
std::string Lanes(uint32_t mask) {
  std::string text = std::popcount(mask) == 1 ? "lane" : "lanes";
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    uint32_t last = lane;
    while (last + 1 < kWarpSize && (mask >> (last + 1) & 1) != 0) ++last;
    text += " " + std::to_string(lane);
    if (last != lane) text += "-" + std::to_string(last);
    lane = last;
  }
  return text;
}

bool Same(const WarpOperation& a, const WarpOperation& b) {
  return std::string_view(a.name) == b.name && a.mask == b.mask && a.parameter == b.parameter;
}

}  // namespace

void Block::CheckJoin(const WarpOperation& operation, const Site& site, const Warp& w) {
  const uint32_t bit = 1u << lane();
  const std::string call = std::string(operation.name) + " with mask " + Hex(operation.mask);
  if ((operation.mask & bit) == 0) Fail(ErrorKind::kDiverged, site, call + ", which lacks the calling lane");
  if (const uint32_t missing = operation.mask & ~w.exists; missing != 0 && !operation.exited_lanes_may_miss) {
    Fail(ErrorKind::kDiverged, site, call + " names " + Lanes(missing) + ", which the block does not have");
  }
  if (const uint32_t gone = operation.mask & w.exited; gone != 0 && !operation.exited_lanes_may_miss) {
    Fail(ErrorKind::kDiverged, site, call + " names " + Lanes(gone) + ", which exited");
  }
}

// Lanes may wait in operations whose masks overlap, as long as one of the two can complete first: an error are two that
// wait for lanes of each other.
Block::Pending* Block::FindPending(const WarpOperation& operation, const Site& site, Warp& w) {
  Pending* mine = nullptr;
  const auto same_line = [&site](const Pending& p) {
    return p.site.line == site.line && std::string_view(p.site.file) == site.file;
  };
  for (Pending& p : w.pending) {
    if (Same(p.operation, operation) && (!operation.aligned || same_line(p))) mine = &p;
  }
  const uint32_t arrived = (mine == nullptr ? 0 : mine->arrived) | 1u << lane();
  for (const Pending& p : w.pending) {
    if (&p == mine || (p.arrived & operation.mask) == 0 || (arrived & p.operation.mask) == 0) continue;
    Fail(ErrorKind::kDiverged, site,
         std::string(operation.name) + " with mask " + Hex(operation.mask) + ", but " + Lanes(p.arrived) +
             " of the warp wait in " + p.operation.name + " with mask " + Hex(p.operation.mask) + " at " +
             ToString(p.site) + (Same(p.operation, operation) ? "" : " (operation, mask or operands differ)"));
  }
  if (mine != nullptr) return mine;
  w.pending.push_back({operation, site, 0, {}});
  return &w.pending.back();
}

bool Block::JoinWarp(const WarpOperation& operation, const Site& site, const void* in, void* out, WarpOperands* all) {
  const uint32_t warp_number = warp(), my_lane = lane();
  Warp& w = warps_[warp_number];
  if ((operation.mask & (1u << my_lane)) == 0 || (operation.mask & (~w.exists | w.exited)) != 0) {
    CheckJoin(operation, site, w);
  }
  Pending* p = FindPending(operation, site, w);
  p->arrived |= 1u << my_lane;
  p->operands.in[my_lane] = in;
  p->operands.out[my_lane] = out;
  const uint32_t missing = operation.mask & w.exists & ~w.exited & ~p->arrived;
  if (missing != 0) {
    WaitAs(State::kInWarp, operation.name, operation.mask, site);
    return false;
  }
  *all = p->operands;
  all->mask = p->arrived;
  return true;
}

void Block::FinishWarp(const WarpOperation& operation) {
  ++report_.counters.warp_operations;
  const uint32_t warp_number = warp();
  Warp& w = warps_[warp_number];
  for (size_t i = 0; i < w.pending.size(); ++i) {
    if (!Same(w.pending[i].operation, operation)) continue;
    const uint32_t waiting = w.pending[i].arrived & ~(1u << lane());
    w.pending.erase(w.pending.begin() + static_cast<ptrdiff_t>(i));
    Wake(warp_number, waiting);
    return;
  }
}

// After a lane exited: a SyncWarp that waited for nobody else.
void Block::FinishIfComplete(uint32_t warp_number) {
  Warp& w = warps_[warp_number];
  for (size_t i = 0; i < w.pending.size();) {
    const Pending& p = w.pending[i];
    if ((p.operation.mask & w.exists & ~w.exited & ~p.arrived) != 0) {
      ++i;
      continue;
    }
    const uint32_t waiting = p.arrived;
    order_.SyncLanes(warp_number, waiting);
    ++report_.counters.warp_operations;
    w.pending.erase(w.pending.begin() + static_cast<ptrdiff_t>(i));
    Wake(warp_number, waiting);
  }
}

Block::Votes Block::Barrier(const char* name, uint32_t id, uint32_t threads, bool wait, bool vote, const Site& site) {
  if (id >= kBarriers) Fail(ErrorKind::kBarrier, site, "barrier " + std::to_string(id) + ", a block has 0 to 15");
  if (threads % kWarpSize != 0 || threads > threads_n_ + kWarpSize - 1) {
    Fail(ErrorKind::kBarrier, site,
         "barrier " + std::to_string(id) + " for " + std::to_string(threads) +
             " threads: expected whole warps, at most the block's " + std::to_string(threads_n_));
  }
  Thread* self = thread_;
  Warp& w = warps_[self->who.warp];
  if (w.at_barrier == 0) {
    w.barrier = id;
    w.barrier_threads = threads;
    w.barrier_waits = wait;
    w.site = site;
    w.votes = 0;
  } else if (w.barrier != id || w.barrier_threads != threads || w.barrier_waits != wait || w.site.line != site.line ||
             std::string_view(w.site.file) != site.file) {
    Fail(ErrorKind::kBarrier, site,
         std::string(name) + ", but " + Lanes(w.at_barrier) + " of the warp are at another barrier at " +
             ToString(w.site) + ": a warp comes to a barrier as a whole");
  }
  w.at_barrier |= 1u << self->who.lane;
  w.votes += vote ? 1 : 0;
  const bool complete = w.at_barrier == (w.exists & ~w.exited);
  self->state = State::kAtBarrier;
  if (complete) WarpArrives(self->who.warp, site);
  if (self->state == State::kAtBarrier) WaitAs(State::kAtBarrier, name, id, site);
  return self->votes;
}

void Block::WarpArrives(uint32_t warp_number, const Site& site) {
  Warp& w = warps_[warp_number];
  NamedBarrier& b = barriers_[w.barrier];
  if (b.used && b.threads != w.barrier_threads) {
    const auto count = [](uint32_t n) { return n == 0 ? std::string("all") : std::to_string(n); };
    Fail(ErrorKind::kBarrier, site,
         "barrier " + std::to_string(w.barrier) + " for " + count(w.barrier_threads) +
             " threads, but others came to it for " + count(b.threads) + " at " + ToString(b.site));
  }
  b.used = true;
  b.threads = w.barrier_threads;
  b.site = site;
  ++b.arrived;
  b.lanes += static_cast<uint32_t>(std::popcount(w.at_barrier));
  b.ones += w.votes;
  order_.Tell(warp_number, w.barrier_waits, b.knowledge);
  const uint32_t lanes = w.at_barrier;
  w.at_barrier = 0;
  if (w.barrier_waits) {
    b.waiting |= 1u << warp_number;
  } else {
    Wake(warp_number, lanes);
  }
  ReleaseIfComplete(b);
}

void Block::ReleaseIfComplete(NamedBarrier& b) {
  const uint32_t expected = b.threads == 0 ? LiveWarps() : b.threads / kWarpSize;
  if (b.arrived < expected) return;
  ++report_.counters.barriers;
  if (b.threads == 0) {
    b.knowledge.resize(warps_.size(), 0);
    for (size_t i = 0; i < warps_.size(); ++i) b.knowledge[i] = std::max(b.knowledge[i], exited_knowledge_[i]);
  }
  for (uint32_t mask = b.waiting; mask != 0; mask &= mask - 1) {
    const uint32_t warp_number = static_cast<uint32_t>(std::countr_zero(mask));
    order_.Hear(warp_number, b.knowledge);
    const uint32_t lanes = warps_[warp_number].exists & ~warps_[warp_number].exited;
    for (uint32_t lane_mask = lanes; lane_mask != 0; lane_mask &= lane_mask - 1) {
      threads_[warp_number * kWarpSize + static_cast<uint32_t>(std::countr_zero(lane_mask))].votes = {b.lanes, b.ones};
    }
    Wake(warp_number, lanes);
  }
  b = {};
}

// One clause per set of lanes that wait in the same place, in the order of warps.
void Block::ReportDeadlock() {
  std::string text = "is stuck: ";
  for (uint32_t warp_number = 0; warp_number < warps_.size(); ++warp_number) {
    uint32_t left = warps_[warp_number].exists & ~warps_[warp_number].exited;
    while (left != 0) {
      const Thread& first = threads_[warp_number * kWarpSize + static_cast<uint32_t>(std::countr_zero(left))];
      uint32_t same = 0;
      for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
        if ((left >> lane & 1) == 0) continue;
        const Thread& t = threads_[warp_number * kWarpSize + lane];
        if (t.waits_in == first.waits_in && t.waits_for == first.waits_for && t.site.line == first.site.line) {
          same |= 1u << lane;
        }
      }
      left &= ~same;
      text += "warp " + std::to_string(warp_number) + " " + Lanes(same) + " in " + std::string(first.waits_in) +
              (first.state == State::kInWarp ? " with mask " + Hex(first.waits_for)
                                             : " (barrier " + std::to_string(first.waits_for) + ")") +
              " at " + ToString(first.site) + "; ";
    }
    if (warps_[warp_number].exited != 0) {
      text += "warp " + std::to_string(warp_number) + " " + Lanes(warps_[warp_number].exited) + " exited; ";
    }
  }
  text.resize(text.size() - 2);
  Note(ErrorKind::kDeadlock, text);
}

}  // namespace iha::kernels::simt
