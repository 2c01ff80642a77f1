// shared_shadow.h: who wrote and who read each part of a block's shared memory, to find races and unwritten bytes.
//
// Per granule of two bytes: the last write, and per warp the lanes that have read it since (and, apart, those that
// changed it by atomics). An access is refused if one that it conflicts with does not come before it (order.h). A
// cp.async is a write from its issue until its thread has waited for it: meanwhile nobody may touch the bytes, its own
// thread included; from then on it is an ordinary write of that thread. Accesses are whole granules: device code has no
// one-byte types. Of reads of one granule by one warp the newest are kept, as older ones come before them; if a
// SyncWarp of a part of the warp leaves them unordered they count as the newer ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/simt/order.h"
#include "kernels/simt/report.h"

namespace iha::kernels::simt {

class SharedShadow {
 public:
  struct Who {
    uint32_t warp = 0;
    uint32_t lane = 0;
  };
  // What stands against an access: of which kind, where, and whose access.
  struct Conflict {
    ErrorKind kind = ErrorKind::kRace;
    uint32_t offset = 0;
    const char* other = "";  // "write", "read", "atomic", "cp.async"
    Who who;
    Site site;
  };
  using Result = std::optional<Conflict>;

  // All bytes unwritten. `order` outlives the shadow's use.
  void Reset(uint32_t bytes, uint32_t warps, const Order* order);

  Result Read(uint32_t offset, uint32_t bytes, Who who, const Site& site);
  Result Write(uint32_t offset, uint32_t bytes, Who who, const Site& site);
  Result Atomic(uint32_t offset, uint32_t bytes, Who who, const Site& site);
  Result IssueCopy(uint32_t offset, uint32_t bytes, Who who, const Site& site);
  void LandCopy(uint32_t offset, uint32_t bytes, Who who);

 private:
  enum class State : uint8_t { kUnwritten, kWritten, kCopying };
  struct Granule {
    uint32_t clock = 0;
    uint32_t site = 0;
    uint8_t warp = 0;
    uint8_t lane = 0;
    State state = State::kUnwritten;
  };
  struct Lanes {
    uint32_t clock = 0;
    uint32_t mask = 0;
    uint32_t site = 0;
  };

  uint32_t Number(const Site& site);
  [[nodiscard]] Site SiteOf(uint32_t number) const;
  [[nodiscard]] Result Unordered(const char* other, uint32_t granule, uint32_t warp, const Lanes& lanes, Who who) const;
  [[nodiscard]] Result AgainstWrite(uint32_t granule, Who who) const;
  [[nodiscard]] Result AgainstLanes(const char* other, const std::vector<Lanes>& all, uint32_t granule, Who who) const;
  void Note(Lanes& lanes, Who who, uint32_t site) const;
  Result Take(uint32_t offset, uint32_t bytes, Who who, const Site& site, State state);

  const Order* order_ = nullptr;
  uint32_t warps_ = 0;
  std::vector<Granule> granules_;
  std::vector<Lanes> reads_;    // [granule][warp]
  std::vector<Lanes> atomics_;  // the same; empty until the block's first atomic
  std::vector<const char*> files_;
};

}  // namespace iha::kernels::simt
