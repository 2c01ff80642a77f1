#include "coordinator/rpc/server.h"

#include <grpcpp/grpcpp.h>

#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/rpc/call_pool.h"
#include "proto/codec/codec.h"
#include "proto/eval/v1/service.grpc.pb.h"
#include "proto/link/grpc_status.h"
#include "proto/link/tls_files.h"

namespace iha::coordinator {
namespace {

namespace wire = codec::wire;
using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

// Compares in constant time: the token is a secret.
bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); i++) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

// What every handler does around the domain call.
class Dispatcher {
 public:
  Dispatcher(CallPool& pool, std::string token) : pool_(pool), token_(std::move(token)) {}

  // call: StatusOr<Reply>(const Request&), both domain types; the request is what FromWire makes of `in`.
  template <class WireRequest, class WireReply, class Call>
  Reactor* Run(Context* context, const WireRequest* in, WireReply* out, Call call) {
    return Enqueue(context, [in, out, call = std::move(call)]() -> absl::Status {
      auto request = codec::FromWire(*in);
      if (!request.ok()) return request.status();
      auto reply = call(*request);
      if (!reply.ok()) return reply.status();
      codec::ToWire(*reply, out);
      return absl::OkStatus();
    });
  }

  Reactor* Enqueue(Context* context, std::function<absl::Status()> body) {
    Reactor* reactor = context->DefaultReactor();
    if (const char* refused = Refused(*context); refused != nullptr) {
      reactor->Finish({grpc::StatusCode::UNAUTHENTICATED, refused});
      return reactor;
    }
    const bool queued = pool_.TryRun([reactor, body = std::move(body)] { reactor->Finish(link::ToGrpc(body())); });
    if (!queued) reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "the coordinator is busy; try again"});
    return reactor;
  }

 private:
  // nullptr: the caller may go on; else why not.
  const char* Refused(const Context& context) const {
    if (token_.empty()) return nullptr;
    const auto at = context.client_metadata().find("authorization");
    if (at == context.client_metadata().end()) return "this coordinator needs a token; pass --token-file";
    if (SameSecret({at->second.data(), at->second.size()}, "Bearer " + token_)) return nullptr;
    return "token refused: it is not this coordinator's; pass its own with --token-file";
  }

  CallPool& pool_;
  const std::string token_;
};

class WorkerHandlers final : public wire::WorkerService::CallbackService {
 public:
  WorkerHandlers(Dispatcher& dispatcher, WorkerApi& api) : dispatcher_(dispatcher), api_(api) {}

  Reactor* RegisterWorker(Context* c, const wire::RegisterWorkerRequest* in, wire::RegisterWorkerReply* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& r) { return api_.RegisterWorker(r); });
  }
  Reactor* OfferModels(Context* c, const wire::OfferModelsRequest* in, wire::OfferModelsReply* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& r) { return api_.OfferModels(r); });
  }
  Reactor* AcquireLease(Context* c, const wire::AcquireLeaseRequest* in, wire::AcquireLeaseReply* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& r) { return api_.AcquireLease(r); });
  }
  Reactor* Heartbeat(Context* c, const wire::HeartbeatRequest* in, wire::HeartbeatReply* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& r) { return api_.Heartbeat(r); });
  }
  Reactor* LookupGenerations(Context* c, const wire::LookupGenerationsRequest* in,
                             wire::LookupGenerationsReply* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& r) { return api_.LookupGenerations(r); });
  }
  Reactor* PutGenerations(Context* c, const wire::PutGenerationsRequest* in, wire::PutGenerationsReply* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& r) { return api_.PutGenerations(r); });
  }
  Reactor* CommitItems(Context* c, const wire::CommitItemsRequest* in, wire::CommitItemsReply* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& r) { return api_.CommitItems(r); });
  }
  Reactor* ReleaseLease(Context* c, const wire::ReleaseLeaseRequest* in, wire::ReleaseLeaseReply*) override {
    return dispatcher_.Enqueue(c, [this, in]() -> absl::Status {
      const auto request = codec::FromWire(*in);
      return request.ok() ? api_.ReleaseLease(*request) : request.status();
    });
  }

 private:
  Dispatcher& dispatcher_;
  WorkerApi& api_;
};

class ClientHandlers final : public wire::ClientService::CallbackService {
 public:
  ClientHandlers(Dispatcher& dispatcher, ClientApi& api) : dispatcher_(dispatcher), api_(api) {}

  Reactor* Submit(Context* c, const wire::SubmitRequest* in, wire::SubmitReply* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& spec) { return api_.Submit(spec); });
  }
  Reactor* Status(Context* c, const wire::StatusRequest* in, wire::SweepProgress* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& sweep) { return api_.Status(sweep); });
  }
  Reactor* List(Context* c, const wire::ListRequest*, wire::ListReply* out) override {
    return dispatcher_.Enqueue(c, [this, out]() -> absl::Status {
      const auto sweeps = api_.List();
      if (sweeps.ok()) codec::ToWire(*sweeps, out);
      return sweeps.status();
    });
  }
  Reactor* Cancel(Context* c, const wire::CancelRequest* in, wire::CancelReply*) override {
    return dispatcher_.Enqueue(c, [this, in]() -> absl::Status {
      const auto sweep = codec::FromWire(*in);
      return sweep.ok() ? api_.Cancel(*sweep) : sweep.status();
    });
  }
  Reactor* Table(Context* c, const wire::TableRequest* in, wire::TableReply* out) override {
    return dispatcher_.Run(c, in, out, [this](const auto& query) {
      return api_.Table(query.sweep, query.layout, query.baseline, query.format);
    });
  }

 private:
  Dispatcher& dispatcher_;
  ClientApi& api_;
};

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(const ServerOptions& options) {
  const bool tls = !options.tls_cert.empty() || !options.tls_key.empty() || !options.tls_client_ca.empty();
  if (!tls) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions ssl;
  IHA_ASSIGN_OR_RETURN(link::KeyPair pair, link::ReadKeyPair(options.tls_cert, options.tls_key));
  ssl.pem_key_cert_pairs.push_back({std::move(pair.key), std::move(pair.certificate)});
  if (!options.tls_client_ca.empty()) {
    IHA_ASSIGN_OR_RETURN(ssl.pem_root_certs, link::ReadCertificates("--tls-client-ca", options.tls_client_ca));
    ssl.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return grpc::SslServerCredentials(ssl);
}

}  // namespace

struct RpcServer::Impl {
  Impl(WorkerApi& workers, ClientApi& clients, const ServerOptions& options)
      : pool(options.threads),
        dispatcher(pool, options.token),
        worker_handlers(dispatcher, workers),
        client_handlers(dispatcher, clients) {}

  CallPool pool;
  Dispatcher dispatcher;
  WorkerHandlers worker_handlers;
  ClientHandlers client_handlers;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

RpcServer::RpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RpcServer::~RpcServer() { Shutdown(absl::Seconds(1)); }

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(WorkerApi& workers, ClientApi& clients,
                                                            const ServerOptions& options) {
  IHA_ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(options));
  auto impl = std::make_unique<Impl>(workers, clients, options);
  grpc::ServerBuilder builder;
  // Two coordinators on one port would each get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(codec::kMaxMessageBytes);
  builder.SetMaxSendMessageSize(codec::kMaxMessageBytes);
  builder.AddListeningPort(options.address, credentials, &impl->port);
  builder.RegisterService(&impl->worker_handlers);
  builder.RegisterService(&impl->client_handlers);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || impl->port == 0) {
    return Unavailable("cannot listen on {}: the port is taken or the address is not of this machine; choose another",
                       options.address);
  }
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(impl)));
}

int RpcServer::port() const { return impl_->port; }

void RpcServer::Shutdown(absl::Duration grace) {
  impl_->server->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  impl_->server->Wait();
}

}  // namespace iha::coordinator
