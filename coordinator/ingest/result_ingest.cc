#include "coordinator/ingest/result_ingest.h"

#include "common/errors.h"
#include "common/fault_point.h"
#include "common/status_macros.h"
#include "coordinator/cache/generation_cache.h"
#include "coordinator/lease/transition.h"

namespace iha::coordinator {

struct ResultIngest::Context {
  const CommitItemsRequest& request;
  JobRecord job;
  ShardRecord shard;
  std::shared_ptr<const benchmarks::Benchmark> benchmark;
  std::map<GenKey, std::string> texts;  // of the generations that are stored and sound
  absl::Time now;
};

namespace {

int64_t Raw(ShardId id) { return static_cast<int64_t>(id); }

// Reasons that a worker may give; the others are the coordinator's to say.
bool WorkerMaySay(Unscored reason) {
  return reason == Unscored::kScored || reason == Unscored::kPromptTooLong || reason == Unscored::kGraderError ||
         reason == Unscored::kGraderUnavailable || reason == Unscored::kGeneratorDeadEnd ||
         reason == Unscored::kDataExhausted;
}

absl::Status CheckUnscoredItem(const ItemResult& item) {
  if (!item.samples.empty()) return InvalidArgument("item {}: unscored, but has samples", item.index);
  for (const ItemValue& value : item.values) {
    if (value.unscored == item.unscored) continue;
    return InvalidArgument("item {}: {} of an item that is {}; its values must say the same", item.index,
                           NameOf(value.unscored), NameOf(item.unscored));
  }
  return absl::OkStatus();
}

std::vector<std::vector<SampleGrade>> GradesOf(const ItemResult& item) {
  std::vector<std::vector<SampleGrade>> grades;
  for (const SampleResult& sample : item.samples) grades.push_back(sample.grades);
  return grades;
}

// All samples of an item land together, so that no vote is ever taken over a part of them: k, or exactly those that its
// grades settle, which are checked themselves.
absl::Status CheckSamples(const SweepEntry& entry, const ItemResult& item) {
  IHA_ASSIGN_OR_RETURN(const int64_t wanted, benchmarks::SamplesWanted(entry, GradesOf(item)));
  if (static_cast<int64_t>(item.samples.size()) == wanted) return absl::OkStatus();
  return InvalidArgument("item {}: {} samples; expected {}", item.index, item.samples.size(), wanted);
}

// Internal: this attempt is spoilt, but the data are sound; another worker may well get it right. InvalidArgument would
// tell the worker that no retry helps.
absl::Status Differs(const ItemResult& item, const std::string& what) {
  return Internal(
      "item {} ({}): {} differs from what the coordinator computes from the stored text; worker and "
      "coordinator must be the same version of iha-eval",
      item.index, item.item_id, what);
}

// The grades of one sample: one for each of `metrics`, the pure ones among them (`ours`) bit for bit ours. What cannot
// be made anew here has to be possible for the text; another process' verdict is taken on the worker's word.
absl::Status CheckGrades(const benchmarks::Benchmark& benchmark, const ItemResult& item, size_t sample,
                         const std::vector<benchmarks::MetricInfo>& metrics, const std::string& text,
                         const std::vector<SampleGrade>& ours) {
  const std::vector<SampleGrade>& theirs = item.samples[sample].grades;
  size_t next = 0;
  for (size_t m = 0; m < metrics.size(); ++m) {
    const bool there = m < theirs.size() && theirs[m].metric == metrics[m].name;
    if (!there || (metrics[m].pure ? theirs[m] != ours[next++] : !benchmark.CanBeGrade(text, theirs[m]))) {
      return Differs(item, fmt::format("the grade of sample {}", sample));
    }
  }
  return theirs.size() == metrics.size() ? absl::OkStatus()
                                         : Differs(item, fmt::format("the grade of sample {}", sample));
}

}  // namespace

absl::Status ResultIngest::CheckItem(const Context& context, const ItemResult& item) const {
  const JobSpec& job = context.job.spec;
  const ItemRange& range = context.shard.range;
  if (item.index < range.begin || item.index >= range.end) {
    return InvalidArgument("item {}: outside shard {}, which holds items {} to {}", item.index, Raw(context.shard.id),
                           range.begin, range.end - 1);
  }
  const std::string expected_id = context.benchmark->ItemId(item.index);
  if (item.item_id != expected_id) {
    return InvalidArgument("item {}: item_id \"{}\"; expected \"{}\"", item.index, item.item_id, expected_id);
  }
  if (!WorkerMaySay(item.unscored)) {
    return InvalidArgument("item {}: a worker cannot say that an item is {}", item.index, NameOf(item.unscored));
  }
  if (item.values.size() != job.entry.metrics.size()) {
    return InvalidArgument("item {}: {} values; expected one for each of {} metrics", item.index, item.values.size(),
                           job.entry.metrics.size());
  }
  for (size_t m = 0; m < item.values.size(); ++m) {
    if (item.values[m].metric == job.entry.metrics[m]) continue;
    return InvalidArgument("item {}: value {} is of metric \"{}\"; expected \"{}\"", item.index, m,
                           item.values[m].metric, job.entry.metrics[m]);
  }
  if (item.unscored != Unscored::kScored) return CheckUnscoredItem(item);
  IHA_RETURN_IF_ERROR(CheckSamples(job.entry, item));
  return Regrade(context, item);
}

absl::Status ResultIngest::Regrade(const Context& context, const ItemResult& item) const {
  if (regrade_ == RegradeMode::kNone) return absl::OkStatus();
  if (regrade_ == RegradeMode::kOnePercent && item.Hash().Prefix64() % 100 != 0) return absl::OkStatus();
  std::vector<std::string> texts;
  for (const SampleResult& sample : item.samples) {
    const auto text = context.texts.find(sample.generation);
    if (text == context.texts.end()) return absl::OkStatus();  // refused below, inside the transaction
    texts.push_back(text->second);
  }
  const std::vector<benchmarks::MetricInfo> metrics =
      benchmarks::BaseMetrics(context.benchmark->info(), context.job.spec.entry.metrics);
  std::vector<benchmarks::MetricInfo> pure;
  std::copy_if(metrics.begin(), metrics.end(), std::back_inserter(pure), [](const auto& m) { return m.pure; });
  const std::vector<std::vector<SampleGrade>> ours = context.benchmark->Grade(item.index, texts, pure);
  for (size_t s = 0; s < item.samples.size(); ++s) {
    IHA_RETURN_IF_ERROR(CheckGrades(*context.benchmark, item, s, metrics, texts[s], ours[s]));
  }
  IHA_ASSIGN_OR_RETURN(const std::vector<ItemValue> values,
                       benchmarks::EntryValues(context.job.spec.entry, GradesOf(item)));
  for (size_t m = 0; m < values.size(); ++m) {
    if (values[m] != item.values[m]) return Differs(item, "the value of " + values[m].metric);  // INV-RES-3
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Status> ResultIngest::Land(WriteTxn& txn, const Context& context, const ItemResult& item,
                                                const absl::Status& checked) const {
  const JobId& job = context.job.id;
  // (a)
  IHA_ASSIGN_OR_RETURN(const std::optional<Digest> stored, txn.ItemHash(job, item.index));
  if (stored.has_value()) {
    const Digest offered = item.Hash();
    if (*stored == offered) return absl::OkStatus();
    IHA_RETURN_IF_ERROR(txn.AddDivergence({.kind = DivergenceKind::kItem,
                                           .subject = fmt::format("{}/{}", job.Hex(), item.index),
                                           .worker = context.request.worker,
                                           .stored = *stored,
                                           .offered = offered,
                                           .at = context.now}));
    return AlreadyExists("item {}: another result is stored already; the first one stays", item.index);
  }
  if (!checked.ok()) return checked;
  // (b)
  if (IsFinal(context.shard.state)) {
    return FailedPrecondition("shard {}: {}, it takes no more results", Raw(context.shard.id),
                              NameOf(context.shard.state));
  }
  if (context.job.cancel_requested) {
    return FailedPrecondition("shard {}: its sweep was cancelled", Raw(context.shard.id));
  }
  // (c)
  if (context.request.fence != context.shard.fence) {
    return Aborted("shard {}: lease lost (fence {}.{}, now {}.{}); acquire a new one", Raw(context.shard.id),
                   context.request.fence.incarnation, context.request.fence.epoch, context.shard.fence.incarnation,
                   context.shard.fence.epoch);
  }
  for (const SampleResult& sample : item.samples) {
    IHA_ASSIGN_OR_RETURN(const auto generation, txn.FindGeneration(sample.generation));
    if (generation.has_value()) continue;
    return FailedPrecondition("item {}: generation {} is not stored; put it before the commit", item.index,
                              sample.generation.Hex());
  }
  // (d)
  IHA_RETURN_IF_ERROR(txn.InsertItem(job, context.job.spec.grader_version, item));
  IHA_FAULT_POINT("store.commit.after_insert");
  return absl::OkStatus();
}

absl::Status ResultIngest::FinishIfComplete(WriteTxn& txn, const Context& context, CommitItemsReply* reply) const {
  const ShardRecord& shard = context.shard;
  IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> missing, txn.MissingItems(shard.job, shard.range));
  if (!missing.empty()) return absl::OkStatus();
  // (e)
  IHA_RETURN_IF_ERROR(Transition(txn, shard, ShardEvent::kFinish));
  reply->shard_done = true;
  return txn.AppendAttempt({.shard = shard.id,
                            .fence = shard.fence,
                            .worker = context.request.worker,
                            .event = AttemptEvent::kDone,
                            .request = {},
                            .reason = "",
                            .at = context.now});
}

absl::Status ResultIngest::CommitAll(WriteTxn& txn, const std::vector<absl::Status>& checked, Context* context,
                                     CommitItemsReply* reply) const {
  *reply = {};
  // Read again inside the transaction: the fence that counts is the one that stands here.
  IHA_ASSIGN_OR_RETURN(const std::optional<ShardRecord> shard, txn.FindShard(context->shard.id));
  IHA_ASSIGN_OR_RETURN(const std::optional<JobRecord> job, txn.FindJob(context->job.id));
  if (!shard.has_value() || !job.has_value()) return Internal("shard {}: gone", Raw(context->shard.id));
  context->shard = *shard;
  context->job = *job;
  bool landed = false;
  for (size_t i = 0; i < context->request.items.size(); ++i) {
    IHA_ASSIGN_OR_RETURN(absl::Status outcome, Land(txn, *context, context->request.items[i], checked[i]));
    landed = landed || outcome.ok();
    reply->outcomes.push_back(std::move(outcome));
  }
  if (const auto& telemetry = context->request.telemetry; telemetry.has_value()) {
    IHA_RETURN_IF_ERROR(txn.PutTelemetry({.job = job->id, .worker = context->request.worker, .telemetry = *telemetry}));
  }
  reply->shard_done = shard->state == ShardState::kDone;
  if (!landed || IsFinal(shard->state) || context->request.fence != shard->fence) return absl::OkStatus();
  return FinishIfComplete(txn, *context, reply);
}

absl::StatusOr<CommitItemsReply> ResultIngest::Commit(const CommitItemsRequest& request) {
  Context context{.request = request, .job = {}, .shard = {}, .benchmark = nullptr, .texts = {}, .now = clock_.Now()};
  std::vector<GenKey> keys;
  for (const ItemResult& item : request.items) {
    for (const SampleResult& sample : item.samples) keys.push_back(sample.generation);
  }
  IHA_RETURN_IF_ERROR(store_.Read([&](ReadTxn& txn) -> absl::Status {
    context.texts.clear();
    IHA_ASSIGN_OR_RETURN(const std::optional<JobRecord> job, txn.FindJob(request.job_id));
    if (!job.has_value()) return NotFound("job {}: not in this database", request.job_id.Hex());
    IHA_ASSIGN_OR_RETURN(const std::optional<ShardRecord> shard, txn.FindShard(request.shard));
    if (!shard.has_value() || shard->job != request.job_id) {
      return NotFound("shard {}: not a shard of job {}", Raw(request.shard), request.job_id.Hex());
    }
    context.job = *job;
    context.shard = *shard;
    if (regrade_ == RegradeMode::kNone) return absl::OkStatus();
    IHA_ASSIGN_OR_RETURN(CacheLookup lookup, LookupGenerations(txn, keys));
    for (Generation& generation : lookup.found) context.texts[generation.key] = std::move(generation.text);
    return absl::OkStatus();
  }));
  IHA_ASSIGN_OR_RETURN(context.benchmark, benchmarks_.Get(context.job.spec));
  std::vector<absl::Status> checked;
  for (const ItemResult& item : request.items) checked.push_back(CheckItem(context, item));
  CommitItemsReply reply;
  IHA_RETURN_IF_ERROR(
      store_.TryWrite([&](WriteTxn& txn) -> absl::Status { return CommitAll(txn, checked, &context, &reply); }));
  return reply;
}

}  // namespace iha::coordinator
