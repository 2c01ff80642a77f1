#include "worker/runner/item_finisher.h"

#include <algorithm>

#include "common/status_macros.h"

namespace iha::worker {
namespace {

// The graded item; the lease may be gone by the time that it is regraded: it holds what it needs.
absl::StatusOr<OutboxItem> GradedItem(const std::shared_ptr<const LeaseGrant>& grant,
                                      const std::shared_ptr<const benchmarks::Benchmark>& benchmark, ItemWork& work,
                                      std::optional<JobTelemetry> telemetry) {
  OutboxItem item{.shard = grant->shard,
                  .fence = grant->fence,
                  .job = grant->job_id,
                  .generations = {},
                  .result = {},
                  .regrade = {},
                  .telemetry = std::move(telemetry)};
  IHA_ASSIGN_OR_RETURN(item.result, FinishItem(grant->job, *benchmark, work));
  std::vector<std::string> texts;
  for (size_t sample = 0; sample < work.samples.size(); sample++) {
    texts.push_back(work.samples[sample]->text);
    if (work.fresh[sample]) item.generations.push_back(*std::move(work.samples[sample]));
  }
  item.regrade = [grant, benchmark, texts = std::move(texts)](const std::vector<Generation>& stored,
                                                              ItemResult& result) {
    return RegradeFrom(grant->job, *benchmark, stored, texts, result);
  };
  return item;
}

}  // namespace

ItemFinisher::~ItemFinisher() {
  ending_.store(true);
  queue_.Close();
  for (std::thread& thread : threads_) thread.join();
}

void ItemFinisher::StartThreads() {
  for (int t = 0; t < std::max(1, parallel_); t++) {
    threads_.emplace_back([this] {
      while (std::optional<std::function<void()>> work = queue_.WaitPop()) {
        if (!ending_.load()) (*work)();
      }
    });
  }
}

absl::Status ItemFinisher::Finish(std::shared_ptr<const LeaseGrant> grant,
                                  std::shared_ptr<const benchmarks::Benchmark> benchmark, ItemWork work,
                                  std::optional<JobTelemetry> telemetry) {
  if (!benchmark->info().runs_code) {
    IHA_ASSIGN_OR_RETURN(OutboxItem item, GradedItem(grant, benchmark, work, std::move(telemetry)));
    outbox_.Push(std::move(item));
    return absl::OkStatus();
  }
  if (threads_.empty()) StartThreads();
  queue_.WaitPush([this, grant = std::move(grant), benchmark = std::move(benchmark),
                   work = std::make_shared<ItemWork>(std::move(work)), telemetry = std::move(telemetry)] {
    absl::StatusOr<OutboxItem> item = GradedItem(grant, benchmark, *work, telemetry);
    if (item.ok()) return outbox_.Push(*std::move(item));
    events_.WaitPush(ItemFailed{.shard = grant->shard, .fence = grant->fence, .status = item.status()});
  });
  return absl::OkStatus();
}

}  // namespace iha::worker
