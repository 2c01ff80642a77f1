#include "worker/runner/outbox.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.h"
#include "common/fault_point.h"
#include "common/retry.h"
#include "common/status_macros.h"

namespace iha::worker {
namespace {

constexpr size_t kHighItems = 256;
constexpr size_t kLowItems = 64;
constexpr size_t kBatchItems = 32;
// A call's generations stay well below the transport's message limit.
constexpr size_t kPutBytes = size_t{4} << 20;

size_t BytesOf(const Generation& generation) {
  return generation.text.size() + generation.tokens.size() * sizeof(int32_t) + 128;
}

}  // namespace

Outbox::Outbox(WorkerApi& api, WorkerId worker, int64_t incarnation, Clock& clock, EventQueue& events,
               std::function<bool()> stopped)
    : api_(api),
      worker_(std::move(worker)),
      incarnation_(incarnation),
      clock_(clock),
      events_(events),
      stopped_(std::move(stopped)),
      queue_(kHighItems, kLowItems),
      thread_([this] { Loop(); }) {}

Outbox::~Outbox() {
  queue_.Close();
  thread_.join();
}

void Outbox::Abandon() {
  const absl::MutexLock lock(&mu_);
  abandoned_ = true;
}

void Outbox::Loop() {
  for (;;) {
    std::vector<OutboxItem> batch = queue_.WaitPopBatch(kBatchItems);
    if (batch.empty()) return;
    Deliver(std::move(batch));
  }
}

void Outbox::Deliver(std::vector<OutboxItem> batch) {
  absl::Status put = Put(batch);
  if (!put.ok() && !IsRetryable(put) && batch.size() > 1) {
    // One of them is refused: alone, each hears of itself only.
    std::erase_if(batch, [this](OutboxItem& item) {
      const absl::Status alone = Put(std::span(&item, 1));
      if (!alone.ok()) Report(item, alone, false);
      return !alone.ok();
    });
    put = absl::OkStatus();
  }
  if (!put.ok()) {
    for (const OutboxItem& item : batch) Report(item, put, false);
    return;
  }
  IHA_FAULT_POINT("worker.outbox.between_put_and_commit");
  const auto same_lease = [](const OutboxItem& a, const OutboxItem& b) {
    return a.shard == b.shard && a.fence == b.fence;
  };
  for (auto begin = batch.begin(); begin != batch.end();) {
    const auto end = std::find_if_not(begin, batch.end(), [&](const OutboxItem& x) { return same_lease(*begin, x); });
    CommitShard(std::span(begin, end));
    begin = end;
  }
}

absl::Status Outbox::Put(std::span<OutboxItem> items) {
  IHA_ASSIGN_OR_RETURN(const std::vector<GenKey> divergent, PutGenerations(items));
  return divergent.empty() ? absl::OkStatus() : TakeStored(items, divergent);
}

absl::StatusOr<std::vector<GenKey>> Outbox::PutGenerations(std::span<const OutboxItem> items) {
  PutGenerationsRequest request{.request_id = NextRequestId(), .worker = worker_, .generations = {}};
  std::vector<GenKey> divergent;
  size_t bytes = 0;
  const auto send = [&]() -> absl::Status {
    if (request.generations.empty()) return absl::OkStatus();
    absl::StatusOr<PutGenerationsReply> reply = Internal("not sent");
    IHA_RETURN_IF_ERROR(WithRetries([&] {
      reply = api_.PutGenerations(request);
      return reply.status();
    }));
    divergent.insert(divergent.end(), reply->divergent.begin(), reply->divergent.end());
    request = {.request_id = NextRequestId(), .worker = worker_, .generations = {}};
    bytes = 0;
    return absl::OkStatus();
  };
  for (const OutboxItem& item : items) {
    for (const Generation& generation : item.generations) {
      request.generations.push_back(generation);
      bytes += BytesOf(generation);
      if (bytes >= kPutBytes) IHA_RETURN_IF_ERROR(send());
    }
  }
  IHA_RETURN_IF_ERROR(send());
  return divergent;
}

absl::Status Outbox::TakeStored(std::span<OutboxItem> items, const std::vector<GenKey>& divergent) {
  absl::StatusOr<LookupGenerationsReply> reply = Internal("not sent");
  IHA_RETURN_IF_ERROR(WithRetries([&] {
    reply = api_.LookupGenerations({.keys = divergent});
    return reply.status();
  }));
  for (OutboxItem& item : items) {
    std::vector<Generation> stored;
    for (const Generation& generation : reply->found) {
      const auto of_item = [&](const SampleResult& sample) { return sample.generation == generation.key; };
      if (std::any_of(item.result.samples.begin(), item.result.samples.end(), of_item)) stored.push_back(generation);
    }
    if (!stored.empty()) IHA_RETURN_IF_ERROR(item.regrade(stored, item.result));
  }
  return absl::OkStatus();
}

void Outbox::CommitShard(std::span<OutboxItem> items) {
  CommitItemsRequest request{.request_id = NextRequestId(),
                             .worker = worker_,
                             .shard = items.front().shard,
                             .fence = items.front().fence,
                             .job_id = items.front().job,
                             .items = {}};
  for (const OutboxItem& item : items) {
    request.items.push_back(item.result);
    if (!item.telemetry.has_value()) continue;
    // The latest: items that were graded side by side have overtaken each other.
    const bool later = !request.telemetry.has_value() || request.telemetry->sequence < item.telemetry->sequence;
    if (later) request.telemetry = item.telemetry;
  }
  absl::StatusOr<CommitItemsReply> reply = Internal("not sent");
  const absl::Status status = WithRetries([&] {
    reply = api_.CommitItems(request);
    return reply.status();
  });
  for (size_t i = 0; i < items.size(); i++) {
    if (!status.ok()) {
      Report(items[i], status, false);
      continue;
    }
    Report(items[i], i < reply->outcomes.size() ? reply->outcomes[i] : Internal("the coordinator left an item out"),
           reply->shard_done);
  }
}

void Outbox::Report(const OutboxItem& item, absl::Status outcome, bool shard_done) {
  events_.WaitPush(
      ItemCommitted{.shard = item.shard, .fence = item.fence, .outcome = std::move(outcome), .shard_done = shard_done});
}

template <class Call>
absl::Status Outbox::WithRetries(Call call) {
  for (int attempt = 1;; attempt++) {
    const absl::Status status = call();
    if (!IsRetryable(status) || stopped_()) return status;
    const absl::Duration pause = Backoff({.maximum = absl::Seconds(5)}, attempt, static_cast<uint64_t>(requests_));
    const absl::MutexLock lock(&mu_);
    const bool stop = clock_.AwaitUntil(
        &mu_, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return abandoned_; }, clock_.Elapsed() + pause);
    if (stop) return status;
  }
}

RequestId Outbox::NextRequestId() { return {fmt::format("{}.{}.out.{}", worker_.value, incarnation_, requests_++)}; }

}  // namespace iha::worker
