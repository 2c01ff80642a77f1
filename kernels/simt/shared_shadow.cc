#include "kernels/simt/shared_shadow.h"

#include <algorithm>
#include <bit>

namespace iha::kernels::simt {
namespace {
constexpr uint32_t kGranule = 2;
constexpr uint32_t kLineBits = 20;  // a site's number: index of its file, then its line
}  // namespace

void SharedShadow::Reset(uint32_t bytes, uint32_t warps, const Order* order) {
  order_ = order;
  warps_ = warps;
  const size_t granules = (bytes + kGranule - 1) / kGranule;
  granules_.assign(granules, {});
  reads_.assign(granules * warps, {});
  atomics_.clear();
}

uint32_t SharedShadow::Number(const Site& site) {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (files_[i] == site.file) return static_cast<uint32_t>(i << kLineBits) | site.line;
  }
  files_.push_back(site.file);
  return static_cast<uint32_t>((files_.size() - 1) << kLineBits) | site.line;
}

Site SharedShadow::SiteOf(uint32_t number) const {
  Site site;
  site.file = files_[number >> kLineBits];
  site.line = number & ((1u << kLineBits) - 1);
  return site;
}

// The first lane, other than `who`, whose access does not come before `who` now.
SharedShadow::Result SharedShadow::Unordered(const char* other, uint32_t granule, uint32_t warp, const Lanes& lanes,
                                             Who who) const {
  for (uint32_t mask = lanes.mask; mask != 0; mask &= mask - 1) {
    const uint32_t lane = static_cast<uint32_t>(std::countr_zero(mask));
    if (!order_->Before(warp, lane, lanes.clock, who.warp, who.lane)) {
      return Conflict{ErrorKind::kRace, granule * kGranule, other, {warp, lane}, SiteOf(lanes.site)};
    }
    if (warp != who.warp) break;  // another warp's lanes are known together
  }
  return std::nullopt;
}

SharedShadow::Result SharedShadow::AgainstWrite(uint32_t granule, Who who) const {
  const Granule& g = granules_[granule];
  if (g.state == State::kUnwritten) return std::nullopt;
  const Who writer{g.warp, g.lane};
  if (g.state == State::kCopying) {
    return Conflict{ErrorKind::kAsyncCopy, granule * kGranule, "cp.async", writer, SiteOf(g.site)};
  }
  if (order_->Before(g.warp, g.lane, g.clock, who.warp, who.lane)) return std::nullopt;
  return Conflict{ErrorKind::kRace, granule * kGranule, "write", writer, SiteOf(g.site)};
}

SharedShadow::Result SharedShadow::AgainstLanes(const char* other, const std::vector<Lanes>& all, uint32_t granule,
                                                Who who) const {
  for (uint32_t warp = 0; warp < warps_; ++warp) {
    const Lanes& lanes = all[size_t{granule} * warps_ + warp];
    if (lanes.mask == 0) continue;
    if (Result found = Unordered(other, granule, warp, lanes, who)) return found;
  }
  return std::nullopt;
}

void SharedShadow::Note(Lanes& lanes, Who who, uint32_t site) const {
  const uint32_t clock = order_->clock(who.warp), bit = 1u << who.lane;
  bool keep = lanes.clock == clock;
  if (!keep && lanes.mask != 0 && lanes.mask != bit) keep = Unordered("", 0, who.warp, lanes, who).has_value();
  lanes.mask = keep ? lanes.mask | bit : bit;
  lanes.clock = clock;
  lanes.site = site;
}

SharedShadow::Result SharedShadow::Read(uint32_t offset, uint32_t bytes, Who who, const Site& site) {
  const uint32_t number = Number(site);
  for (uint32_t i = offset / kGranule; i < (offset + bytes) / kGranule; ++i) {
    if (Result found = AgainstWrite(i, who)) return found;
    bool written = granules_[i].state != State::kUnwritten;
    if (!atomics_.empty()) {
      if (Result found = AgainstLanes("atomic", atomics_, i, who)) return found;
    }
    if (!written) return Conflict{ErrorKind::kUninitialised, i * kGranule, "", {}, {}};
    Note(reads_[size_t{i} * warps_ + who.warp], who, number);
  }
  return std::nullopt;
}

SharedShadow::Result SharedShadow::Take(uint32_t offset, uint32_t bytes, Who who, const Site& site, State state) {
  const uint32_t number = Number(site), clock = order_->clock(who.warp);
  for (uint32_t i = offset / kGranule; i < (offset + bytes) / kGranule; ++i) {
    if (Result found = AgainstWrite(i, who)) return found;
    if (Result found = AgainstLanes("read", reads_, i, who)) return found;
    if (!atomics_.empty()) {
      if (Result found = AgainstLanes("atomic", atomics_, i, who)) return found;
      std::fill_n(atomics_.begin() + static_cast<ptrdiff_t>(size_t{i} * warps_), warps_, Lanes{});
    }
    std::fill_n(reads_.begin() + static_cast<ptrdiff_t>(size_t{i} * warps_), warps_, Lanes{});
    granules_[i] = {clock, number, static_cast<uint8_t>(who.warp), static_cast<uint8_t>(who.lane), state};
  }
  return std::nullopt;
}

SharedShadow::Result SharedShadow::Write(uint32_t offset, uint32_t bytes, Who who, const Site& site) {
  return Take(offset, bytes, who, site, State::kWritten);
}

SharedShadow::Result SharedShadow::IssueCopy(uint32_t offset, uint32_t bytes, Who who, const Site& site) {
  return Take(offset, bytes, who, site, State::kCopying);
}

void SharedShadow::LandCopy(uint32_t offset, uint32_t bytes, Who who) {
  for (uint32_t i = offset / kGranule; i < (offset + bytes) / kGranule; ++i) {
    granules_[i].state = State::kWritten;
    granules_[i].clock = order_->clock(who.warp);
  }
}

SharedShadow::Result SharedShadow::Atomic(uint32_t offset, uint32_t bytes, Who who, const Site& site) {
  if (atomics_.empty()) atomics_.assign(reads_.size(), {});
  const uint32_t number = Number(site);
  for (uint32_t i = offset / kGranule; i < (offset + bytes) / kGranule; ++i) {
    if (Result found = AgainstWrite(i, who)) return found;
    if (Result found = AgainstLanes("read", reads_, i, who)) return found;
    if (granules_[i].state == State::kUnwritten) return Conflict{ErrorKind::kUninitialised, i * kGranule, "", {}, {}};
    Note(atomics_[size_t{i} * warps_ + who.warp], who, number);
  }
  return std::nullopt;
}

}  // namespace iha::kernels::simt
