// generation_cache.h: generations by content (docs/contracts/commit.md, INV-CACHE-1). First write wins.
//
// A value carries its own checksum: a stored row that does not match it is a miss, raises an alarm (a divergence row)
// and is repaired by the next Put of the right value. Thread: that of the transaction passed in.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

struct CacheLookup {
  std::vector<Generation> found;
  std::vector<GenKey> corrupt;  // stored, but not matching their checksum
};
absl::StatusOr<CacheLookup> LookupGenerations(ReadTxn& txn, const std::vector<GenKey>& keys);

// Records the alarm for rows that LookupGenerations found corrupt.
absl::Status RecordCorrupt(WriteTxn& txn, const std::vector<GenKey>& keys, absl::Time now);

// Inserts or compares. Returns the keys whose stored value differs: recorded in `divergence`, the first value kept.
absl::StatusOr<std::vector<GenKey>> PutGenerations(WriteTxn& txn, const WorkerId& worker,
                                                   const std::vector<Generation>& generations, absl::Time now);

}  // namespace iha::coordinator
