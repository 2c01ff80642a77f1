// stored_run.h: one model of a stored sweep as gate, compare and baseline bundles need it. Read-only, beside a
// coordinator that may be writing. Blocking; thread: any.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/planner/planner.h"
#include "coordinator/store/store.h"
#include "reports/gate_run.h"

namespace iha::cli {

// "3f2a/runs/alpha": a sweep by a prefix of its id that is unique, and one of its models.
struct RunName {
  std::string sweep;
  std::string model;
};
// InvalidArgument: no "/" or an empty side; `flag` begins the message.
absl::StatusOr<RunName> ParseRunName(const std::string& text, const std::string& flag);

// Of the first model of a plan, before anything of it is stored: settings and digests without items.
reports::GateRun PlannedRun(const coordinator::SweepPlan& plan);

// Everything that is committed of that model, margins unset. NotFound: no such sweep or model (names those there are).
// DataLoss: a stored text is missing or damaged.
absl::StatusOr<reports::GateRun> ReadStoredRun(coordinator::Store& store, const RunName& name);

// The spec of a stored sweep. NotFound.
absl::StatusOr<SweepSpec> ReadStoredSpec(coordinator::Store& store, const SweepId& sweep);

// Calls `fn` for each committed item of that model with its texts, entries in order, items increasing, in one read
// transaction; a non-OK result ends it. Errors as above.
struct StoredItem {
  const coordinator::JobRecord& job;
  const ItemResult& item;
  const std::vector<Generation>& generations;  // of item.samples, in order
};
absl::Status ReadStoredItems(coordinator::Store& store, const RunName& name,
                             const std::function<absl::Status(const StoredItem&)>& fn);

}  // namespace iha::cli
