// explain.h: everything that the store holds about one item of one job. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

struct ItemStory {
  JobRecord job;
  Digest weights;                       // empty until a worker has offered the model
  Digest tokenizer;                     // the same
  std::optional<ItemResult> item;       // as the chosen grading sees it; absent: not committed yet
  Digest item_hash;                     // of the rows that were committed
  std::vector<std::string> gradings;    // grader versions that the job has rows of, sorted
  std::vector<Generation> generations;  // of item->samples, in order
  std::vector<AttemptRecord> attempts;  // of every shard that ever covered the item, by shard, oldest first
};

// NotFound: no such sweep, model or entry (the models are named).
absl::StatusOr<JobRecord> FindJob(Store& store, const SweepId& sweep, const std::string& model, int64_t entry);

// One read transaction. `grader`: the version of a later grading; "" = that of the committed rows. NotFound: as
// FindJob; InvalidArgument: an item or a grading that the job does not have; DataLoss: a stored generation is missing
// or does not match its checksum.
absl::StatusOr<ItemStory> ReadItemStory(Store& store, const SweepId& sweep, const std::string& model, int64_t entry,
                                        int64_t item, const std::string& grader);

}  // namespace iha::coordinator
