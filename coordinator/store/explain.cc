#include "coordinator/store/explain.h"

#include <algorithm>

#include "common/errors.h"
#include "common/nearest.h"
#include "common/status_macros.h"
#include "coordinator/store/snapshot_reader.h"

namespace iha::coordinator {
namespace {

absl::StatusOr<JobRecord> FindJobOf(ReadTxn& txn, const SweepId& sweep, const std::string& model, int64_t entry) {
  IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep));
  std::vector<std::string> models;
  int64_t entries = 0;
  for (const JobRecord& job : jobs) {
    if (job.spec.model.name == model && job.spec.entry_index == entry) return job;
    if (std::find(models.begin(), models.end(), job.spec.model.name) == models.end())
      models.push_back(job.spec.model.name);
    entries = std::max<int64_t>(entries, job.spec.entry_index + 1);
  }
  if (models.empty()) return NotFound("sweep {}: not in this database", sweep.Hex());
  if (std::find(models.begin(), models.end(), model) == models.end()) return UnknownName("model", model, models);
  return NotFound("entry {}: the sweep has {}, counted from 0", entry, entries);
}

absl::Status ReadResult(ReadTxn& txn, int64_t item, const std::string& grader, ItemStory& story) {
  IHA_ASSIGN_OR_RETURN(story.gradings, txn.GraderVersions(story.job.id));
  const std::string version = grader.empty() ? story.job.spec.grader_version : grader;
  if (!grader.empty() && std::find(story.gradings.begin(), story.gradings.end(), grader) == story.gradings.end()) {
    return UnknownName("grader version", grader, story.gradings);
  }
  IHA_ASSIGN_OR_RETURN(const std::optional<Digest> hash, txn.ItemHash(story.job.id, item));
  story.item_hash = hash.value_or(Digest());
  IHA_ASSIGN_OR_RETURN(story.item, txn.LoadItemGraded(story.job.id, item, version));
  if (!story.item.has_value()) return absl::OkStatus();
  IHA_ASSIGN_OR_RETURN(story.generations, LoadGenerations(txn, *story.item));
  return absl::OkStatus();
}

absl::Status Read(ReadTxn& txn, const SweepId& sweep, int64_t item, const std::string& grader, ItemStory& story) {
  if (item < 0 || item >= story.job.spec.items) {
    return InvalidArgument("item {}: the job has {} items, counted from 0", item, story.job.spec.items);
  }
  IHA_ASSIGN_OR_RETURN(const std::vector<ModelBinding> bindings, txn.Bindings(sweep));
  for (const ModelBinding& binding : bindings) {
    if (binding.model != story.job.spec.model.name) continue;
    story.weights = binding.weights;
    story.tokenizer = binding.tokenizer;
  }
  IHA_RETURN_IF_ERROR(ReadResult(txn, item, grader, story));
  IHA_ASSIGN_OR_RETURN(const std::vector<ShardRecord> shards, txn.Shards(story.job.id));
  for (const ShardRecord& shard : shards) {
    if (item < shard.range.begin || item >= shard.range.end) continue;
    IHA_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> attempts, txn.Attempts(shard.id));
    story.attempts.insert(story.attempts.end(), attempts.begin(), attempts.end());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobRecord> FindJob(Store& store, const SweepId& sweep, const std::string& model, int64_t entry) {
  JobRecord job;
  IHA_RETURN_IF_ERROR(store.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(job, FindJobOf(txn, sweep, model, entry));
    return absl::OkStatus();
  }));
  return job;
}

absl::StatusOr<ItemStory> ReadItemStory(Store& store, const SweepId& sweep, const std::string& model, int64_t entry,
                                        int64_t item, const std::string& grader) {
  ItemStory story;
  IHA_RETURN_IF_ERROR(store.Read([&](ReadTxn& txn) -> absl::Status {
    story = {};
    IHA_ASSIGN_OR_RETURN(story.job, FindJobOf(txn, sweep, model, entry));
    return Read(txn, sweep, item, grader, story);
  }));
  return story;
}

}  // namespace iha::coordinator
