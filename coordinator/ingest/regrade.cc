#include "coordinator/ingest/regrade.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "common/errors.h"
#include "common/parallel.h"
#include "common/status_macros.h"
#include "coordinator/store/snapshot_reader.h"

namespace iha::coordinator {
namespace {

using benchmarks::Benchmark;

struct StoredItem {
  ItemResult item;  // as the latest grading sees it
  std::vector<std::string> texts;
};

// "gsm8k/1", "gsm8k/1#2", ...: the name of the N-th grading by one version.
std::string NthName(const std::string& version, int n) { return n == 1 ? version : fmt::format("{}#{}", version, n); }

// How often `version` has graded: its names are given in order, without gaps.
int GradingsBy(const std::string& version, const std::set<std::string>& names) {
  int n = 0;
  while (names.contains(NthName(version, n + 1))) ++n;
  return n;
}

absl::StatusOr<std::vector<StoredItem>> LoadItems(ReadTxn& txn, const JobId& job, const std::string& version) {
  std::vector<StoredItem> items;
  IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, txn.StoredItems(job));
  for (const int64_t index : indices) {
    StoredItem& stored = items.emplace_back();
    IHA_ASSIGN_OR_RETURN(std::optional<ItemResult> item, txn.LoadItemGraded(job, index, version));
    if (!item.has_value()) return Internal("job {}: item {} vanished", job.Hex(), index);
    stored.item = *std::move(item);
    IHA_ASSIGN_OR_RETURN(std::vector<Generation> generations, LoadGenerations(txn, stored.item));
    for (Generation& generation : generations) stored.texts.push_back(std::move(generation.text));
  }
  return items;
}

absl::Status CheckSame(const Benchmark& benchmark, const JobSpec& job) {
  if (benchmark.info().version == job.benchmark_version && benchmark.data_digest() == job.data_digest) {
    return absl::OkStatus();
  }
  return FailedPrecondition(
      "{}: the sweep is of {} with data {}, this program has {} with data {}; grading needs the same questions",
      job.entry.benchmark.name, job.benchmark_version, job.data_digest.Hex().substr(0, 12), benchmark.info().version,
      benchmark.data_digest().Hex().substr(0, 12));
}

// The item as this program's graders see it; one that was never graded stays as it is.
absl::StatusOr<ItemResult> Graded(const Benchmark& benchmark, const JobSpec& job, const StoredItem& stored) {
  ItemResult item = stored.item;
  if (item.unscored != Unscored::kScored) return item;
  const auto grades =
      benchmark.Grade(item.index, stored.texts, benchmarks::BaseMetrics(benchmark.info(), job.entry.metrics));
  for (size_t s = 0; s < item.samples.size(); ++s) item.samples[s].grades = grades[s];
  IHA_ASSIGN_OR_RETURN(item.values, benchmarks::EntryValues(job.entry, grades));
  return item;
}

void Count(const ItemResult& before, const ItemResult& after, RegradedJob& job) {
  ++job.items;
  if (before != after) ++job.changed;
  for (size_t m = 0; m < job.metrics.size(); ++m) {
    RegradedMetric& metric = job.metrics[m];
    if (m < before.values.size() && before.values[m].unscored == Unscored::kScored) {
      ++metric.scored_before;
      metric.sum_before += scoring::Rational(before.values[m].score);
    }
    if (after.values[m].unscored == Unscored::kScored) {
      ++metric.scored_after;
      metric.sum_after += scoring::Rational(after.values[m].score);
    }
  }
}

// Items wait for programs, which run side by side; what only looks at texts takes turns anyway.
size_t WidthOf(const Benchmark& benchmark, const RegradeOptions& options) {
  constexpr int kWaiting = 4;  // items for each place: while a long program runs, others end
  if (!benchmark.info().runs_code || options.judge == nullptr) return 1;
  return static_cast<size_t>(kWaiting) * static_cast<size_t>(std::max(1, options.judge->parallel()));
}

absl::StatusOr<std::vector<ItemResult>> GradedAll(const Benchmark& benchmark, const JobSpec& job,
                                                  const std::vector<StoredItem>& stored,
                                                  const RegradeOptions& options) {
  std::vector<absl::StatusOr<ItemResult>> graded(stored.size(), ItemResult());
  std::mutex mutex;
  int64_t done = 0;
  InParallel(stored.size(), WidthOf(benchmark, options), [&](size_t i) {
    graded[i] = Graded(benchmark, job, stored[i]);
    const std::lock_guard lock(mutex);
    if (options.progress) options.progress(job, ++done, static_cast<int64_t>(stored.size()));
  });
  std::vector<ItemResult> items;
  for (absl::StatusOr<ItemResult>& item : graded) {
    IHA_RETURN_IF_ERROR(item.status());
    items.push_back(*std::move(item));
  }
  if (benchmark.info().runs_code) IHA_RETURN_IF_ERROR(options.judge->Ready());
  return items;
}

absl::StatusOr<RegradedJob> RegradeJob(Store& store, const JobRecord& record, const Benchmark& benchmark,
                                       const RegradeOptions& options) {
  RegradedJob job{.job = record.spec, .before = record.spec.grader_version, .after = "", .metrics = {}};
  job.runs_code = benchmark.info().runs_code;
  for (const std::string& metric : record.spec.entry.metrics) job.metrics.emplace_back().metric = metric;
  const std::string& version = benchmark.info().grader_version;
  int gradings = 0;
  std::vector<StoredItem> stored;
  IHA_RETURN_IF_ERROR(store.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::vector<std::string> names, txn.GraderVersions(record.id));
    gradings = GradingsBy(version, {names.begin(), names.end()});
    if (gradings > 0) job.before = NthName(version, gradings);
    IHA_ASSIGN_OR_RETURN(stored, LoadItems(txn, record.id, job.before));
    return absl::OkStatus();
  }));
  IHA_ASSIGN_OR_RETURN(const std::vector<ItemResult> graded, GradedAll(benchmark, record.spec, stored, options));
  for (size_t i = 0; i < stored.size(); ++i) Count(stored[i].item, graded[i], job);
  if (job.items == 0 || (job.changed == 0 && gradings > 0)) return job;
  job.after = NthName(version, gradings + 1);
  IHA_RETURN_IF_ERROR(store.Write([&](WriteTxn& txn) -> absl::Status {
    for (const ItemResult& item : graded) IHA_RETURN_IF_ERROR(txn.InsertGrades(record.id, job.after, item));
    return absl::OkStatus();
  }));
  return job;
}

}  // namespace

absl::StatusOr<std::vector<RegradedJob>> RegradeSweep(Store& store, const SweepId& sweep, const BenchmarkOpener& open,
                                                      const RegradeOptions& options) {
  std::vector<JobRecord> jobs;
  IHA_RETURN_IF_ERROR(store.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(jobs, txn.Jobs(sweep));
    return absl::OkStatus();
  }));
  std::vector<std::unique_ptr<const Benchmark>> opened;
  for (const JobRecord& job : jobs) {
    IHA_ASSIGN_OR_RETURN(opened.emplace_back(), open(job.spec.entry.benchmark));
    IHA_RETURN_IF_ERROR(CheckSame(*opened.back(), job.spec));
    if (opened.back()->info().runs_code && options.judge != nullptr) IHA_RETURN_IF_ERROR(options.judge->Ready());
  }
  std::vector<RegradedJob> regraded;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const JobRecord& job = jobs[i];
    const benchmarks::BenchmarkInfo& info = opened[i]->info();
    if (info.item_tokens > 0 || (info.runs_code && options.judge == nullptr)) {
      RegradedJob left{.job = job.spec, .before = job.spec.grader_version, .after = "", .metrics = {}};
      left.runs_code = info.runs_code;
      left.of_checkpoint = info.item_tokens > 0;
      regraded.push_back(std::move(left));
      continue;
    }
    IHA_ASSIGN_OR_RETURN(RegradedJob done, RegradeJob(store, job, *opened[i], options));
    regraded.push_back(std::move(done));
  }
  return regraded;
}

}  // namespace iha::coordinator
