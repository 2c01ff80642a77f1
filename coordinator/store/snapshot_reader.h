// snapshot_reader.h: a stored sweep as reports::Snapshot and as samples with their texts. Thread: any.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"
#include "reports/snapshot.h"

namespace iha::coordinator {

// One read transaction. NotFound: no such sweep in this database.
absl::StatusOr<reports::Snapshot> ReadSnapshot(Store& store, const SweepId& sweep, const std::string& version);

// The sweep whose id starts with `prefix` (hex). NotFound / InvalidArgument (several) name what there is.
absl::StatusOr<SweepId> FindSweepByPrefix(Store& store, const std::string& prefix);

struct SampleRow {
  const JobRecord& job;
  const ItemResult& item;
  const std::vector<Generation>& generations;  // of item.samples, in order
};
// Calls `fn` for each committed item, jobs in table order, items increasing, all in one read transaction; a non-OK
// result ends it. DataLoss: a stored generation does not match its checksum. `fn` must not use the store.
absl::Status ReadSamples(Store& store, const SweepId& sweep, const std::function<absl::Status(const SampleRow&)>& fn);

}  // namespace iha::coordinator
