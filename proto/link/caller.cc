#include "proto/link/caller.h"

#include "common/errors.h"
#include "common/file.h"
#include "common/retry.h"
#include "common/status_macros.h"
#include "proto/codec/limits.h"
#include "proto/link/grpc_status.h"

namespace iha::link {
namespace {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(const Endpoint& endpoint) {
  if (endpoint.tls_ca.empty()) {
    if (!endpoint.tls_cert.empty()) return InvalidArgument("--tls-cert needs --tls-ca");
    return grpc::InsecureChannelCredentials();
  }
  grpc::SslCredentialsOptions ssl;
  IHA_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadFile(endpoint.tls_ca));
  if (!endpoint.tls_cert.empty()) {
    IHA_ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadFile(endpoint.tls_cert));
    IHA_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadFile(endpoint.tls_key));
  }
  return grpc::SslCredentials(ssl);
}

}  // namespace

Caller::Caller(const Endpoint& endpoint, CallPolicy policy, Clock& clock, std::shared_ptr<grpc::Channel> channel)
    : address_(endpoint.address),
      token_(endpoint.token),
      policy_(std::move(policy)),
      clock_(clock),
      channel_(std::move(channel)) {}

absl::StatusOr<std::unique_ptr<Caller>> Caller::Open(const Endpoint& endpoint, CallPolicy policy, Clock& clock) {
  if (endpoint.address.find(':') == std::string::npos) {
    return InvalidArgument("--coordinator \"{}\": expected HOST:PORT or unix:/path", endpoint.address);
  }
  IHA_ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(endpoint));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(codec::kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(codec::kMaxMessageBytes);
  // A coordinator that was restarted should be found again within a second or two.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  auto channel = grpc::CreateCustomChannel(endpoint.address, credentials, arguments);
  return std::unique_ptr<Caller>(new Caller(endpoint, std::move(policy), clock, std::move(channel)));
}

absl::Status Caller::CallOnce(absl::Duration limit, const Attempt& attempt) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
  if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
  return FromGrpc(attempt(context));
}

absl::Status Caller::CallFor(absl::Duration deadline, const Attempt& attempt) {
  const absl::Duration start = clock_.Elapsed();
  for (int number = 1;; number++) {
    const absl::Duration left = deadline - (clock_.Elapsed() - start);
    const absl::Status status = CallOnce(std::min(policy_.attempt, left), attempt);
    if (!IsRetryable(status)) return status;
    const absl::Duration pause = Backoff({.maximum = absl::Seconds(2)}, number, policy_.jitter_key);
    if (clock_.Elapsed() - start + pause >= deadline) {
      return Unavailable("coordinator {} did not answer within {} ({} attempts): {}", address_,
                         absl::FormatDuration(deadline), number, std::string(status.message()));
    }
    if (policy_.stopped && policy_.stopped()) {
      return Unavailable("coordinator {}: {}; not tried again, the program is stopping", address_,
                         std::string(status.message()));
    }
    if (number == 1 && policy_.on_retry) {
      policy_.on_retry(fmt::format("coordinator {}: {}; trying again for up to {}", address_,
                                   std::string(status.message()), absl::FormatDuration(deadline)));
    }
    clock_.SleepUntil(clock_.Elapsed() + pause);
  }
}

}  // namespace iha::link
