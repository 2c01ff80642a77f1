#include "coordinator/store/snapshot_reader.h"

#include <algorithm>

#include "common/errors.h"
#include "common/nearest.h"
#include "common/status_macros.h"

namespace iha::coordinator {
namespace {

absl::StatusOr<SweepRecord> RequireSweep(ReadTxn& txn, const SweepId& id) {
  IHA_ASSIGN_OR_RETURN(std::optional<SweepRecord> sweep, txn.FindSweep(id));
  if (!sweep.has_value())
    return NotFound("sweep {}: not in this database; `iha-eval list` shows those that are", id.Hex());
  return *std::move(sweep);
}

absl::StatusOr<reports::JobRows> ReadJobRows(ReadTxn& txn, const JobRecord& job,
                                             const std::vector<ModelBinding>& bindings) {
  reports::JobRows rows;
  rows.spec = job.spec;
  rows.id = job.id;
  rows.cancelled = job.cancel_requested;
  for (const ModelBinding& binding : bindings) {
    if (binding.model != job.spec.model.name) continue;
    rows.weights = binding.weights;
    rows.tokenizer = binding.tokenizer;
    rows.context_tokens = binding.context_tokens;
  }
  IHA_ASSIGN_OR_RETURN(rows.items, txn.ItemRows(job));
  return rows;
}

// Puts `grader` in the place of the jobs' own version where they have rows of it.
absl::Status ChooseGrading(ReadTxn& txn, const std::string& grader, std::vector<JobRecord>& jobs) {
  std::vector<std::string> known;
  bool found = false;
  for (JobRecord& job : jobs) {
    IHA_ASSIGN_OR_RETURN(const std::vector<std::string> versions, txn.GraderVersions(job.id));
    for (const std::string& version : versions) {
      if (std::find(known.begin(), known.end(), version) == known.end()) known.push_back(version);
      if (version != grader) continue;
      job.spec.grader_version = grader;
      found = true;
    }
  }
  return found ? absl::OkStatus() : UnknownName("grader version", grader, known);
}

}  // namespace

absl::StatusOr<std::vector<Generation>> LoadGenerations(ReadTxn& txn, const ItemResult& item) {
  std::vector<Generation> generations;
  for (const SampleResult& sample : item.samples) {
    IHA_ASSIGN_OR_RETURN(std::optional<ReadTxn::StoredGeneration> stored, txn.FindGeneration(sample.generation));
    if (!stored.has_value() || stored->generation.Checksum() != stored->checksum) {
      return DataLoss("generation {}: missing or damaged; restore a backup", sample.generation.Hex());
    }
    generations.push_back(std::move(stored->generation));
  }
  return generations;
}

absl::StatusOr<reports::Snapshot> ReadSnapshot(Store& store, const SweepId& sweep, const std::string& version,
                                               const std::string& grader) {
  reports::Snapshot snapshot;
  IHA_RETURN_IF_ERROR(store.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const SweepRecord record, RequireSweep(txn, sweep));
    snapshot = {.sweep = sweep, .spec = record.spec, .jobs = {}, .iha_eval_version = version};
    IHA_ASSIGN_OR_RETURN(const std::vector<ModelBinding> bindings, txn.Bindings(sweep));
    IHA_ASSIGN_OR_RETURN(std::vector<JobRecord> jobs, txn.Jobs(sweep));
    if (!grader.empty()) IHA_RETURN_IF_ERROR(ChooseGrading(txn, grader, jobs));
    for (const JobRecord& job : jobs) {
      IHA_ASSIGN_OR_RETURN(reports::JobRows rows, ReadJobRows(txn, job, bindings));
      rows.sequential = record.spec.item_order.has_value();
      std::erase_if(rows.items, [](const reports::ItemRow& row) { return row.values.empty(); });  // not graded so
      snapshot.jobs.push_back(std::move(rows));
    }
    return absl::OkStatus();
  }));
  return snapshot;
}

absl::StatusOr<SweepId> FindSweepByPrefix(Store& store, const std::string& prefix) {
  std::vector<SweepId> found;
  IHA_RETURN_IF_ERROR(store.Read([&](ReadTxn& txn) -> absl::Status {
    found.clear();
    IHA_ASSIGN_OR_RETURN(const std::vector<SweepRecord> sweeps, txn.Sweeps());
    for (const SweepRecord& sweep : sweeps) {
      if (sweep.id.Hex().starts_with(prefix)) found.push_back(sweep.id);
    }
    return absl::OkStatus();
  }));
  if (found.empty()) return NotFound("sweep {}: not in this database; `iha-eval list` shows those that are", prefix);
  if (found.size() > 1)
    return InvalidArgument("sweep {}: {} ids start like that; give more of it", prefix, found.size());
  return found.front();
}

absl::Status ReadSamples(Store& store, const SweepId& sweep, const std::function<absl::Status(const SampleRow&)>& fn) {
  return store.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_RETURN_IF_ERROR(RequireSweep(txn, sweep).status());
    IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep));
    for (const JobRecord& job : jobs) {
      IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> items, txn.StoredItems(job.id));
      for (const int64_t index : items) {
        IHA_ASSIGN_OR_RETURN(const std::optional<ItemResult> item, txn.LoadItem(job.id, index));
        if (!item.has_value()) return Internal("job {}: item {} vanished", job.id.Hex(), index);
        IHA_ASSIGN_OR_RETURN(const std::vector<Generation> generations, LoadGenerations(txn, *item));
        IHA_RETURN_IF_ERROR(fn({.job = job, .item = *item, .generations = generations}));
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace iha::coordinator
