#include "cli/grpc_client_api.h"

#include "common/status_macros.h"
#include "proto/codec/codec.h"
#include "proto/eval/v1/service.grpc.pb.h"
#include "proto/link/unary.h"

namespace iha::cli {
namespace {

namespace wire = codec::wire;
using Stub = wire::ClientService::Stub;

class GrpcClientApi final : public ClientApi {
 public:
  explicit GrpcClientApi(std::unique_ptr<link::Caller> caller)
      : caller_(std::move(caller)), stub_(wire::ClientService::NewStub(caller_->channel())) {}

  absl::StatusOr<SweepId> Submit(const SweepSpec& spec) override {
    return link::Unary(*caller_, *stub_, &Stub::Submit, spec);
  }
  absl::StatusOr<SweepProgress> Status(const SweepId& sweep) override {
    return link::Unary(*caller_, *stub_, &Stub::Status, sweep);
  }
  absl::StatusOr<std::vector<SweepSummary>> List() override {
    wire::ListReply reply;
    IHA_RETURN_IF_ERROR(caller_->Call([&](grpc::ClientContext& context) { return stub_->List(&context, {}, &reply); }));
    return codec::FromWire(reply);
  }
  absl::Status Cancel(const SweepId& sweep) override {
    wire::CancelRequest request;
    codec::ToWire(sweep, &request);
    wire::CancelReply reply;
    return caller_->Call([&](grpc::ClientContext& context) { return stub_->Cancel(&context, request, &reply); });
  }
  absl::StatusOr<std::string> Table(const SweepId& sweep, const std::string& layout, const std::string& baseline,
                                    const std::string& format) override {
    const codec::TableQuery query{.sweep = sweep, .layout = layout, .baseline = baseline, .format = format};
    return link::Unary(*caller_, *stub_, &Stub::Table, query);
  }

 private:
  const std::unique_ptr<link::Caller> caller_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace

std::unique_ptr<ClientApi> MakeGrpcClientApi(std::unique_ptr<link::Caller> caller) {
  return std::make_unique<GrpcClientApi>(std::move(caller));
}

}  // namespace iha::cli
