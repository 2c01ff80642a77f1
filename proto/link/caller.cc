#include "proto/link/caller.h"

#include "common/errors.h"
#include "common/retry.h"
#include "common/status_macros.h"
#include "proto/codec/limits.h"
#include "proto/link/address.h"
#include "proto/link/grpc_status.h"
#include "proto/link/tls_files.h"

namespace iha::link {
namespace {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(const Endpoint& endpoint) {
  if (endpoint.tls_ca.empty()) {
    if (!endpoint.tls_cert.empty() || !endpoint.tls_key.empty()) {
      return InvalidArgument("--tls-cert and --tls-key need --tls-ca");
    }
    return grpc::InsecureChannelCredentials();
  }
  grpc::SslCredentialsOptions ssl;
  IHA_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadCertificates("--tls-ca", endpoint.tls_ca));
  if (!endpoint.tls_cert.empty() || !endpoint.tls_key.empty()) {
    IHA_ASSIGN_OR_RETURN(KeyPair pair, ReadKeyPair(endpoint.tls_cert, endpoint.tls_key));
    ssl.pem_cert_chain = std::move(pair.certificate);
    ssl.pem_private_key = std::move(pair.key);
  }
  return grpc::SslCredentials(ssl);
}

// gRPC tells a certificate that it does not trust as Unavailable, like a coordinator that is away. No retry cures it.
bool IsUntrusted(const absl::Status& status) {
  const std::string_view text(status.message().data(), status.message().size());
  return status.code() == absl::StatusCode::kUnavailable &&
         (text.find("certificate verify failed") != std::string_view::npos ||
          text.find("is not in peer certificate") != std::string_view::npos);
}

// What gRPC says when there is no connection names its own classes and repeats the address. This is the part of it that
// a person can use; anything else, above all what a coordinator answered, stays as it is.
absl::Status Plain(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kUnavailable) return status;
  const std::string_view text(status.message().data(), status.message().size());
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (has("DNS resolution failed")) return Unavailable("the host name is not known here");
  if (has("Socket closed") || has("Connection reset")) return Unavailable("the connection was lost");
  if (!has("failed to connect to all addresses")) return status;
  if (has("Connection refused")) return Unavailable("connection refused");
  if (has("No such file or directory")) return Unavailable("no such socket");
  if (has("Ssl handshake") || has("SSL_ERROR")) {
    return Unavailable("the TLS handshake failed; is TLS on at the coordinator?");
  }
  return Unavailable("cannot connect; is the coordinator running there?");
}

}  // namespace

Caller::Caller(const Endpoint& endpoint, CallPolicy policy, Clock& clock, std::shared_ptr<grpc::Channel> channel)
    : address_(endpoint.address),
      token_(endpoint.token),
      policy_(std::move(policy)),
      clock_(clock),
      channel_(std::move(channel)) {}

absl::StatusOr<std::unique_ptr<Caller>> Caller::Open(const Endpoint& endpoint, CallPolicy policy, Clock& clock) {
  IHA_RETURN_IF_ERROR(CheckAddress("--coordinator", endpoint.address));
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
  const absl::Status status = FromGrpc(attempt(context));
  if (!IsUntrusted(status)) return Plain(status);
  return FailedPrecondition(
      "coordinator {}: its TLS certificate is not trusted: expired, for another host name, or not signed by the "
      "authority of --tls-ca; check both",
      address_);
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
