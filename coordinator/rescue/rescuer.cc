#include "coordinator/rescue/rescuer.h"

#include <set>

#include "common/canonical.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/lease/transition.h"

namespace iha::coordinator {
namespace {

// The worker's failed attempts since it last finished a shard, refunded ones and failures of the data left out: the
// splits of one bad shard fail one after another, on whatever worker they are.
std::vector<AttemptRecord> FailuresSinceSuccess(const std::vector<AttemptRecord>& of_worker) {
  std::vector<AttemptRecord> tail;
  for (const AttemptRecord& row : of_worker) {
    if (row.event == AttemptEvent::kDone) tail.clear();
    tail.push_back(row);
  }
  std::vector<AttemptRecord> failures = Charged(tail);
  std::erase_if(failures, [](const AttemptRecord& row) { return row.event != AttemptEvent::kFailed || row.permanent; });
  return failures;
}

int Refunds(const std::vector<AttemptRecord>& attempts) {
  return static_cast<int>(std::count_if(attempts.begin(), attempts.end(),
                                        [](const AttemptRecord& row) { return row.event == AttemptEvent::kRefunded; }));
}

uint64_t Jitter(const ShardRecord& shard) {
  CanonicalWriter w("iha.backoff", 1);
  w.Int(static_cast<int64_t>(shard.id)).Int(shard.fence.epoch);
  return w.Hash().Prefix64();
}

AttemptEvent EventOf(AttemptEnd end, RescueAction action) {
  if (action == RescueAction::kCancel) return AttemptEvent::kCancelled;
  switch (end) {
    case AttemptEnd::kLost:
      return AttemptEvent::kLost;
    case AttemptEnd::kFailed:
      return AttemptEvent::kFailed;
    case AttemptEnd::kDrained:
      return AttemptEvent::kDrained;
  }
  return AttemptEvent::kLost;
}

absl::StatusOr<RescueFacts> GatherFacts(WriteTxn& txn, const EndedAttempt& attempt, const JobRecord& job,
                                        int64_t missing_items) {
  const ShardRecord& shard = attempt.shard;
  RescueFacts facts{.end = attempt.end,
                    .permanent = attempt.permanent,
                    .job_cancelled = job.cancel_requested,
                    .missing_items = missing_items,
                    .jitter = Jitter(shard)};
  IHA_ASSIGN_OR_RETURN(const std::optional<SweepRecord> sweep, txn.FindSweep(job.spec.sweep));
  if (sweep.has_value()) facts.max_attempts = sweep->spec.max_attempts;
  IHA_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> attempts, txn.Attempts(shard.id));
  facts.refunds = Refunds(attempts);
  std::set<WorkerId> losers;
  if (attempt.end == AttemptEnd::kLost) losers.insert(shard.owner);
  for (const AttemptRecord& row : Charged(attempts)) {
    ++facts.charged;
    if (row.worker != shard.owner) ++facts.charged_elsewhere;
    if (row.event == AttemptEvent::kLost) losers.insert(row.worker);
  }
  facts.losing_workers = static_cast<int>(losers.size());
  IHA_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> of_worker, txn.AttemptsOf(shard.owner));
  std::set<ShardId> failed;
  for (const AttemptRecord& row : FailuresSinceSuccess(of_worker)) failed.insert(row.shard);
  if (attempt.end == AttemptEnd::kFailed && !attempt.permanent) failed.insert(shard.id);
  facts.worker_failed_shards = static_cast<int>(failed.size());
  return facts;
}

// Refunds the worker's failures since its last success, at most max_attempts times a shard.
absl::Status Blame(WriteTxn& txn, const EndedAttempt& attempt, int max_attempts) {
  const WorkerId& worker = attempt.shard.owner;
  IHA_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> of_worker, txn.AttemptsOf(worker));
  const std::vector<AttemptRecord> failures = FailuresSinceSuccess(of_worker);
  const std::string reason =
      fmt::format("worker {} failed several shards in a row; last error: {}", worker.value, attempt.reason);
  for (const AttemptRecord& row : failures) {
    IHA_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> of_shard, txn.Attempts(row.shard));
    if (Refunds(of_shard) >= max_attempts) continue;
    IHA_RETURN_IF_ERROR(txn.AppendAttempt({.shard = row.shard,
                                           .fence = row.fence,
                                           .worker = worker,
                                           .event = AttemptEvent::kRefunded,
                                           .request = {},
                                           .reason = reason,
                                           .at = attempt.at}));
  }
  return txn.BlameWorker(worker, reason);
}

absl::Status Split(WriteTxn& txn, const ShardRecord& shard, const std::vector<int64_t>& missing) {
  // Halves by missing items, not by index: each child has work, together they partition the range (INV-SHARD-1).
  const int64_t cut = missing[missing.size() / 2];
  const int64_t first_tokens = shard.estimated_tokens * (cut - shard.range.begin) / shard.range.size();
  IHA_RETURN_IF_ERROR(
      txn.InsertChild(shard, {.range = {.begin = shard.range.begin, .end = cut}, .estimated_tokens = first_tokens}));
  IHA_RETURN_IF_ERROR(txn.InsertChild(shard, {.range = {.begin = cut, .end = shard.range.end},
                                              .estimated_tokens = shard.estimated_tokens - first_tokens}));
  return Transition(txn, shard, ShardEvent::kSplit);
}

absl::Status Quarantine(WriteTxn& txn, const EndedAttempt& attempt, const JobRecord& job,
                        const std::vector<int64_t>& missing, const benchmarks::Benchmark& benchmark) {
  for (const int64_t item : missing) {
    IHA_RETURN_IF_ERROR(txn.InsertItem(job.id, job.spec.grader_version,
                                       UnscoredItem(job.spec, item, benchmark.ItemId(item), Unscored::kQuarantined)));
  }
  IHA_RETURN_IF_ERROR(txn.AddNote(
      job.spec.sweep, fmt::format("{}, {}: {} item(s) from {} quarantined: {}; prompts {}", job.spec.model.name,
                                  benchmarks::ToString(job.spec.entry.benchmark), missing.size(), missing.front(),
                                  attempt.reason, job.spec.prompt_digest.Hex())));
  return Transition(txn, attempt.shard, ShardEvent::kQuarantine);
}

}  // namespace

ItemResult UnscoredItem(const JobSpec& job, int64_t index, const std::string& item_id, Unscored reason) {
  ItemResult item;
  item.index = index;
  item.item_id = item_id;
  item.unscored = reason;
  for (const std::string& metric : job.entry.metrics) {
    ItemValue& value = item.values.emplace_back();
    value.metric = metric;
    value.unscored = reason;
  }
  return item;
}

absl::StatusOr<RescueDecision> Rescue(WriteTxn& txn, const EndedAttempt& attempt, const RescueConfig& config,
                                      BenchmarkPool* pool, bool* wrote) {
  const ShardRecord& shard = attempt.shard;
  IHA_ASSIGN_OR_RETURN(const std::optional<JobRecord> job, txn.FindJob(shard.job));
  if (!job.has_value()) return Internal("shard {}: its job is missing", static_cast<int64_t>(shard.id));
  IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> missing, txn.MissingItems(shard.job, shard.range));
  IHA_ASSIGN_OR_RETURN(const RescueFacts facts, GatherFacts(txn, attempt, *job, static_cast<int64_t>(missing.size())));
  const RescueDecision decision = Decide(facts, config);
  const AttemptEvent event = EventOf(attempt.end, decision.action);
  std::shared_ptr<const benchmarks::Benchmark> benchmark;
  if (decision.action == RescueAction::kQuarantine) {
    IHA_ASSIGN_OR_RETURN(benchmark, pool->Get(job->spec));
  }
  if (wrote != nullptr) *wrote = true;
  IHA_RETURN_IF_ERROR(txn.AppendAttempt({.shard = shard.id,
                                         .fence = shard.fence,
                                         .worker = shard.owner,
                                         .event = event,
                                         .request = {},
                                         .reason = attempt.reason,
                                         .at = attempt.at,
                                         .permanent = attempt.permanent && event == AttemptEvent::kFailed}));
  if (decision.blame_worker) IHA_RETURN_IF_ERROR(Blame(txn, attempt, facts.max_attempts));
  switch (decision.action) {
    case RescueAction::kRetry:
      IHA_RETURN_IF_ERROR(Transition(txn, shard, ShardEvent::kRetry, attempt.at + decision.backoff));
      break;
    case RescueAction::kSplit:
      IHA_RETURN_IF_ERROR(Split(txn, shard, missing));
      break;
    case RescueAction::kQuarantine:
      IHA_RETURN_IF_ERROR(Quarantine(txn, attempt, *job, missing, *benchmark));
      break;
    case RescueAction::kCancel:
      IHA_RETURN_IF_ERROR(Transition(txn, shard, ShardEvent::kCancel));
      break;
  }
  return decision;
}

}  // namespace iha::coordinator
