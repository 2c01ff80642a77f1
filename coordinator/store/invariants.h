// invariants.h: what a database must always satisfy (docs/contracts/): run after every simulated step and by fsck.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

// Recomputes an item's values from its grades (benchmarks::EntryValues); unset: INV-RES-3 is not checked, nor
// that votes are settled.
using ItemValuesFn = std::function<absl::StatusOr<std::vector<ItemValue>>(
    const SweepEntry& entry, const std::vector<std::vector<SampleGrade>>& grades)>;

// One line for each violation, "INV-SHARD-1: ..."; empty = sound. A non-OK status means that it could not be read.
// One read transaction; reads every row. Thread: any.
absl::StatusOr<std::vector<std::string>> CheckInvariants(Store& store, const ItemValuesFn& item_values);

}  // namespace iha::coordinator
