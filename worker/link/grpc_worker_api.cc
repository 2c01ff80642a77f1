#include "worker/link/grpc_worker_api.h"

#include <fmt/format.h>

#include "common/status_macros.h"
#include "proto/codec/codec.h"
#include "proto/eval/v1/service.grpc.pb.h"
#include "proto/link/unary.h"

namespace iha::worker {
namespace {

namespace wire = codec::wire;
using Stub = wire::WorkerService::Stub;

// A heartbeat that hangs must not eat the lease's whole time to live: the next one is due in a fraction of it.
constexpr absl::Duration kHeartbeatLimit = absl::Seconds(5);

class GrpcWorkerApi final : public WorkerApi {
 public:
  explicit GrpcWorkerApi(std::unique_ptr<link::Caller> caller)
      : caller_(std::move(caller)), stub_(wire::WorkerService::NewStub(caller_->channel())) {}

  absl::StatusOr<RegisterWorkerReply> RegisterWorker(const RegisterWorkerRequest& request) override {
    return link::Unary(*caller_, *stub_, &Stub::RegisterWorker, request);
  }
  absl::StatusOr<OfferModelsReply> OfferModels(const OfferModelsRequest& request) override {
    return link::Unary(*caller_, *stub_, &Stub::OfferModels, request);
  }
  absl::StatusOr<AcquireLeaseReply> AcquireLease(const AcquireLeaseRequest& request) override {
    return link::Unary(*caller_, *stub_, &Stub::AcquireLease, request);
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override {
    wire::HeartbeatRequest out;
    codec::ToWire(request, &out);
    wire::HeartbeatReply in;
    IHA_RETURN_IF_ERROR(caller_->CallOnce(
        kHeartbeatLimit, [&](grpc::ClientContext& context) { return stub_->Heartbeat(&context, out, &in); }));
    return codec::FromWire(in);
  }
  absl::StatusOr<LookupGenerationsReply> LookupGenerations(const LookupGenerationsRequest& request) override;
  absl::StatusOr<PutGenerationsReply> PutGenerations(const PutGenerationsRequest& request) override;
  absl::StatusOr<CommitItemsReply> CommitItems(const CommitItemsRequest& request) override;
  absl::Status ReleaseLease(const ReleaseLeaseRequest& request) override {
    wire::ReleaseLeaseRequest out;
    codec::ToWire(request, &out);
    wire::ReleaseLeaseReply in;
    return caller_->Call([&](grpc::ClientContext& context) { return stub_->ReleaseLease(&context, out, &in); });
  }

 private:
  const std::unique_ptr<link::Caller> caller_;
  const std::unique_ptr<Stub> stub_;
};

absl::StatusOr<LookupGenerationsReply> GrpcWorkerApi::LookupGenerations(const LookupGenerationsRequest& request) {
  LookupGenerationsReply all;
  LookupGenerationsRequest next = request;
  while (!next.keys.empty()) {
    IHA_ASSIGN_OR_RETURN(codec::LookupPage page, link::Unary(*caller_, *stub_, &Stub::LookupGenerations, next));
    std::move(page.reply.found.begin(), page.reply.found.end(), std::back_inserter(all.found));
    // A server that makes no progress would keep us here for ever.
    if (page.not_sent.size() >= next.keys.size()) break;
    next.keys = std::move(page.not_sent);
  }
  return all;
}

absl::StatusOr<PutGenerationsReply> GrpcWorkerApi::PutGenerations(const PutGenerationsRequest& request) {
  PutGenerationsReply all;
  int part = 0;
  for (const auto run : codec::SplitBySize(std::span<const Generation>(request.generations))) {
    const PutGenerationsRequest piece{.request_id = {fmt::format("{}.{}", request.request_id.value, part++)},
                                      .worker = request.worker,
                                      .generations = {run.begin(), run.end()}};
    IHA_ASSIGN_OR_RETURN(const PutGenerationsReply reply, link::Unary(*caller_, *stub_, &Stub::PutGenerations, piece));
    all.divergent.insert(all.divergent.end(), reply.divergent.begin(), reply.divergent.end());
  }
  return all;
}

absl::StatusOr<CommitItemsReply> GrpcWorkerApi::CommitItems(const CommitItemsRequest& request) {
  CommitItemsReply all;
  int part = 0;
  for (const auto run : codec::SplitBySize(std::span<const ItemResult>(request.items))) {
    CommitItemsRequest piece = request;
    piece.request_id.value = fmt::format("{}.{}", request.request_id.value, part++);
    piece.items.assign(run.begin(), run.end());
    IHA_ASSIGN_OR_RETURN(const CommitItemsReply reply, link::Unary(*caller_, *stub_, &Stub::CommitItems, piece));
    all.outcomes.insert(all.outcomes.end(), reply.outcomes.begin(), reply.outcomes.end());
    all.shard_done = reply.shard_done;
  }
  return all;
}

}  // namespace

std::unique_ptr<WorkerApi> MakeGrpcWorkerApi(std::unique_ptr<link::Caller> caller) {
  return std::make_unique<GrpcWorkerApi>(std::move(caller));
}

}  // namespace iha::worker
