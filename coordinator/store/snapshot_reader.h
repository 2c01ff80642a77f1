// snapshot_reader.h: a stored sweep as reports::Snapshot and as samples with their texts. Thread: any.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"
#include "reports/snapshot.h"

namespace iha::coordinator {

// One read transaction. `grader`: a later grading's version (coordinator/ingest/regrade.h), shown where a job has it:
// what landed after it is not there yet; "" = the rows that each job was stored with. NotFound: no such sweep in this
// database. InvalidArgument: no job has that grading (names those that there are).
absl::StatusOr<reports::Snapshot> ReadSnapshot(Store& store, const SweepId& sweep, const std::string& version,
                                               const std::string& grader = "");

// The sweep whose id starts with `prefix` (hex). NotFound / InvalidArgument (several) name what there is.
absl::StatusOr<SweepId> FindSweepByPrefix(Store& store, const std::string& prefix);

// The stored texts of an item's samples, in order. DataLoss: one is missing or does not match its checksum.
absl::StatusOr<std::vector<Generation>> LoadGenerations(ReadTxn& txn, const ItemResult& item);

struct SampleRow {
  const JobRecord& job;
  const ItemResult& item;
  const std::vector<Generation>& generations;  // of item.samples, in order
};
// Calls `fn` for each committed item, jobs in table order, items increasing, all in one read transaction; a non-OK
// result ends it. DataLoss: a stored generation does not match its checksum. `fn` must not use the store.
absl::Status ReadSamples(Store& store, const SweepId& sweep, const std::function<absl::Status(const SampleRow&)>& fn);

}  // namespace iha::coordinator
