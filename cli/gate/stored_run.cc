#include "cli/gate/stored_run.h"

#include <algorithm>

#include "common/canonical.h"
#include "common/errors.h"
#include "common/nearest.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "common/version.h"
#include "coordinator/store/snapshot_reader.h"
#include "reports/aggregate.h"

namespace iha::cli {
namespace {

using coordinator::JobRecord;
using coordinator::ReadTxn;

// The model's jobs, in entry order.
absl::StatusOr<std::vector<JobRecord>> JobsOf(ReadTxn& txn, const SweepId& sweep, const std::string& model) {
  IHA_ASSIGN_OR_RETURN(std::vector<JobRecord> jobs, txn.Jobs(sweep));
  std::vector<std::string> known;
  for (const JobRecord& job : jobs) {
    if (std::find(known.begin(), known.end(), job.spec.model.name) == known.end()) known.push_back(job.spec.model.name);
  }
  std::erase_if(jobs, [&](const JobRecord& job) { return job.spec.model.name != model; });
  if (jobs.empty()) return UnknownName("model", model, known);
  return jobs;
}

// Without the generations' keys, which name the weights: two checkpoints that say the same have equal digests.
Digest OutputsOf(const std::vector<Generation>& generations) {
  CanonicalWriter writer("iha.outputs", 1);
  writer.List(generations.size());
  for (const Generation& generation : generations) {
    writer.Tokens(generation.tokens).String(generation.text).String(NameOf(generation.finish));
  }
  return writer.Hash();
}

// The variance between one item's samples in a base metric; absent where it has fewer than two grades.
std::optional<double> VarianceWithin(const ItemResult& item, const std::string& metric) {
  double n = 0.0, sum = 0.0, squares = 0.0;
  for (const SampleResult& sample : item.samples) {
    for (const SampleGrade& grade : sample.grades) {
      if (grade.metric != metric) continue;
      const double score = static_cast<double>(grade.score.num) / static_cast<double>(grade.score.den);
      n += 1.0;
      sum += score;
      squares += score * score;
    }
  }
  if (n < 2) return std::nullopt;
  return std::max(0.0, (squares - sum * sum / n) / (n - 1.0));
}

reports::GateEntry EntryOf(const JobSpec& job) {
  reports::GateEntry entry{.benchmark = job.entry.benchmark,
                           .sampling = job.entry.sampling,
                           .benchmark_version = job.benchmark_version,
                           .grader_version = job.grader_version,
                           .data_digest = job.data_digest,
                           .prompt_digest = job.prompt_digest,
                           .planned = job.items,
                           .stop_settled_votes = job.entry.stop_settled_votes,
                           .metrics = {},
                           .items = {}};
  for (const std::string& metric : job.entry.metrics) entry.metrics.push_back({.name = metric});
  return entry;
}

// Means of what AddItem has gathered, one for each metric.
struct Variances {
  double sum = 0.0;
  int64_t items = 0;
};

void AddItem(const StoredItem& stored, std::vector<Variances>& variances, reports::GateEntry& entry) {
  reports::GateItem item{.index = stored.item.index,
                         .id = stored.item.item_id,
                         .outputs = OutputsOf(stored.generations),
                         .samples = static_cast<int64_t>(stored.item.samples.size()),
                         .values = {}};
  for (size_t m = 0; m < entry.metrics.size(); m++) {
    item.values.push_back(reports::Contributed(stored.item.unscored, stored.item.values.at(m)));
    if (const auto variance = VarianceWithin(stored.item, entry.metrics[m].name); variance.has_value()) {
      variances[m].sum += *variance;
      variances[m].items++;
    }
  }
  entry.items.push_back(std::move(item));
}

absl::Status ReadJobItems(ReadTxn& txn, const JobRecord& job,
                          const std::function<absl::Status(const StoredItem&)>& fn) {
  IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, txn.StoredItems(job.id));
  for (const int64_t index : indices) {
    IHA_ASSIGN_OR_RETURN(const std::optional<ItemResult> item, txn.LoadItem(job.id, index));
    if (!item.has_value()) return Internal("job {}: item {} vanished", job.id.Hex(), index);
    IHA_ASSIGN_OR_RETURN(const std::vector<Generation> generations, coordinator::LoadGenerations(txn, *item));
    IHA_RETURN_IF_ERROR(fn({.job = job, .item = *item, .generations = generations}));
  }
  return absl::OkStatus();
}

absl::StatusOr<reports::GateEntry> ReadEntry(ReadTxn& txn, const JobRecord& job) {
  reports::GateEntry entry = EntryOf(job.spec);
  std::vector<Variances> variances(entry.metrics.size());
  IHA_RETURN_IF_ERROR(ReadJobItems(txn, job, [&](const StoredItem& item) {
    AddItem(item, variances, entry);
    return absl::OkStatus();
  }));
  const bool random = entry.sampling.draws() && entry.sampling.temperature > 0;
  for (size_t m = 0; m < entry.metrics.size(); m++) {
    if (random && variances[m].items > 0) {
      entry.metrics[m].within_variance = variances[m].sum / static_cast<double>(variances[m].items);
    }
  }
  return entry;
}

}  // namespace

absl::StatusOr<RunName> ParseRunName(const std::string& text, const std::string& flag) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) {
    return InvalidArgument(
        "{}: found \"{}\", expected SWEEP/MODEL (a sweep's id or the start of it, and a model as "
        "tables name it)",
        flag, TerminalSafe(text, 200));
  }
  return RunName{text.substr(0, slash), text.substr(slash + 1)};
}

reports::GateRun PlannedRun(const coordinator::SweepPlan& plan) {
  reports::GateRun run{.sweep = plan.id.Hex(),
                       .model = plan.spec.models.front().name,
                       .weights = {},
                       .tokenizer = {},
                       .numerics_id = plan.spec.numerics.Id(),
                       .iha_eval_version = kVersion,
                       .item_order = plan.spec.item_order,
                       .entries = {}};
  for (const coordinator::NewJob& job : plan.jobs) {
    if (job.spec.model_index == 0) run.entries.push_back(EntryOf(job.spec));
  }
  return run;
}

absl::StatusOr<reports::GateRun> ReadStoredRun(coordinator::Store& store, const RunName& name) {
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, coordinator::FindSweepByPrefix(store, name.sweep));
  reports::GateRun run{.sweep = sweep.Hex(),
                       .model = name.model,
                       .weights = {},
                       .tokenizer = {},
                       .numerics_id = "",
                       .iha_eval_version = kVersion,
                       .item_order = {},
                       .entries = {}};
  IHA_RETURN_IF_ERROR(store.Read([&](ReadTxn& txn) -> absl::Status {
    run.entries.clear();
    IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, JobsOf(txn, sweep, name.model));
    IHA_ASSIGN_OR_RETURN(const auto record, txn.FindSweep(sweep));
    if (record.has_value()) run.item_order = record->spec.item_order;
    IHA_ASSIGN_OR_RETURN(const auto bindings, txn.Bindings(sweep));
    for (const auto& binding : bindings) {
      if (binding.model != name.model) continue;
      run.weights = binding.weights;
      run.tokenizer = binding.tokenizer;
    }
    for (const JobRecord& job : jobs) {
      run.numerics_id = job.spec.numerics_id;
      IHA_ASSIGN_OR_RETURN(reports::GateEntry entry, ReadEntry(txn, job));
      run.entries.push_back(std::move(entry));
    }
    return absl::OkStatus();
  }));
  return run;
}

absl::StatusOr<SweepSpec> ReadStoredSpec(coordinator::Store& store, const SweepId& sweep) {
  SweepSpec spec;
  IHA_RETURN_IF_ERROR(store.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const auto record, txn.FindSweep(sweep));
    if (!record.has_value()) return NotFound("sweep {}: not in this database", sweep.Hex());
    spec = record->spec;
    return absl::OkStatus();
  }));
  return spec;
}

absl::Status ReadStoredItems(coordinator::Store& store, const RunName& name,
                             const std::function<absl::Status(const StoredItem&)>& fn) {
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, coordinator::FindSweepByPrefix(store, name.sweep));
  return store.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, JobsOf(txn, sweep, name.model));
    for (const JobRecord& job : jobs) IHA_RETURN_IF_ERROR(ReadJobItems(txn, job, fn));
    return absl::OkStatus();
  });
}

}  // namespace iha::cli
