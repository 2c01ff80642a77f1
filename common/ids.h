// ids.h: strong ids. Content ids (SweepId, JobId, GenKey) are digests of canonical encodings; the others are counters
// or names. Values, hashable, ordered; no implicit conversions between kinds.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "common/digest.h"

namespace iha {

template <class Tag>
struct DigestId {
  Digest digest;
  auto operator<=>(const DigestId&) const = default;
  std::string Hex() const { return digest.Hex(); }
  template <class H>
  friend H AbslHashValue(H h, const DigestId& id) {
    return H::combine(std::move(h), id.digest.bytes);
  }
};
using SweepId = DigestId<struct SweepTag>;  // digest of the SweepSpec, all defaults filled in
using JobId = DigestId<struct JobTag>;      // digest of the JobSpec within its sweep: one table cell's worth of work
using GenKey = DigestId<struct GenTag>;     // identity of one generation (docs/contracts/commit.md)

// Row number of a shard in the store, from 1. Never reused.
enum class ShardId : int64_t {};

// Names chosen by the peer; at most 128 bytes of [A-Za-z0-9._:-] (checked by the codec).
struct WorkerId {
  std::string value;
  auto operator<=>(const WorkerId&) const = default;
};
struct RequestId {
  std::string value;
  auto operator<=>(const RequestId&) const = default;
};

// Fencing token of a lease (style.md 3.4): a commit is accepted only with the row's current fence.
// `incarnation` is +1 and fsynced once at each coordinator start, `epoch` +1 in the UPDATE that grants.
struct Fence {
  int64_t incarnation = 0;
  int64_t epoch = 0;
  auto operator<=>(const Fence&) const = default;
};

}  // namespace iha
