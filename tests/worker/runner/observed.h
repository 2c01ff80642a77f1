// observed.h: calls of a worker on their way to the coordinator, which a test watches and changes.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/coordinator_api.h"

namespace iha::worker {

// Passes calls on; tells of each grant, and can refuse commits.
class Observed final : public WorkerApi {
 public:
  Observed(WorkerApi& api, std::function<void(int grants)> on_grant) : api_(api), on_grant_(std::move(on_grant)) {}
  absl::StatusOr<RegisterWorkerReply> RegisterWorker(const RegisterWorkerRequest& r) override {
    return api_.RegisterWorker(r);
  }
  absl::StatusOr<OfferModelsReply> OfferModels(const OfferModelsRequest& r) override { return api_.OfferModels(r); }
  absl::StatusOr<AcquireLeaseReply> AcquireLease(const AcquireLeaseRequest& r) override {
    auto reply = api_.AcquireLease(r);
    if (reply.ok() && reply->grant.has_value()) on_grant_(++grants_);
    return reply;
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& r) override { return api_.Heartbeat(r); }
  absl::StatusOr<LookupGenerationsReply> LookupGenerations(const LookupGenerationsRequest& r) override {
    return api_.LookupGenerations(r);
  }
  absl::StatusOr<PutGenerationsReply> PutGenerations(const PutGenerationsRequest& r) override {
    put += static_cast<int64_t>(r.generations.size());
    if (earlier_text) {
      // Another worker was faster, and drew something else.
      PutGenerationsRequest other = r;
      other.worker = {"other"};
      for (Generation& generation : other.generations) generation.text = earlier_text(generation);
      EXPECT_TRUE(api_.PutGenerations(other).ok());
    }
    return api_.PutGenerations(r);
  }
  absl::StatusOr<CommitItemsReply> CommitItems(const CommitItemsRequest& r) override {
    if (refuse_commits.load()) return absl::UnavailableError("no commits now");
    return api_.CommitItems(r);
  }
  absl::Status ReleaseLease(const ReleaseLeaseRequest& r) override {
    releases.push_back(r.reason);
    return api_.ReleaseLease(r);
  }

  // Set: each generation is stored with this text before the worker's own arrives.
  std::function<std::string(const Generation&)> earlier_text;
  std::vector<ReleaseReason> releases;
  std::atomic<int64_t> put{0};  // generations
  std::atomic<bool> refuse_commits{false};

 private:
  WorkerApi& api_;
  const std::function<void(int grants)> on_grant_;
  int grants_ = 0;
};

}  // namespace iha::worker
