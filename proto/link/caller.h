// caller.h: one channel to a coordinator and the policy of calling over it, shared by workers and clients.
//
// Call repeats an attempt with backoff while the coordinator is unreachable or busy, until `deadline` has passed since
// the call began; then Unavailable says address, time spent and the last reason. Every call of the service may be
// repeated, so a lost reply is no special case. `on_retry` hears of the first failed attempt of a call, so that a
// person knows why nothing happens. A certificate that is not trusted is FailedPrecondition at once. Blocking; thread:
// any. gRPC types stop here and in rpc/, link/, cli/.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"

namespace iha::link {

struct Endpoint {
  std::string address;   // "HOST:PORT", "unix:/path"
  std::string tls_ca;    // PEM file of the authority that signed the coordinator's certificate; not empty = TLS
  std::string tls_cert;  // client certificate and key, if the coordinator wants one
  std::string tls_key;
  std::string token;  // sent as "authorization: Bearer TOKEN"
};

struct CallPolicy {
  absl::Duration deadline = absl::Seconds(30);  // of a call with all its attempts
  absl::Duration attempt = absl::Seconds(20);   // of one attempt, never beyond the call's own deadline
  uint64_t jitter_key = 0;                      // differs between callers, so that a fleet does not come back in step
  std::function<void(const std::string& line)> on_retry = nullptr;
  std::function<bool()> stopped = nullptr;  // true: the program is ending, try no further (Unavailable); may be unset
};

class Caller {
 public:
  // `clock` must outlive the caller. Does not connect yet. InvalidArgument / NotFound: address, TLS files.
  static absl::StatusOr<std::unique_ptr<Caller>> Open(const Endpoint& endpoint, CallPolicy policy, Clock& clock);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  using Attempt = std::function<grpc::Status(grpc::ClientContext& context)>;
  absl::Status Call(const Attempt& attempt) { return CallFor(policy_.deadline, attempt); }
  // With another deadline.
  absl::Status CallFor(absl::Duration deadline, const Attempt& attempt);
  // One attempt of at most `limit`.
  absl::Status CallOnce(absl::Duration limit, const Attempt& attempt);

 private:
  Caller(const Endpoint& endpoint, CallPolicy policy, Clock& clock, std::shared_ptr<grpc::Channel> channel);

  const std::string address_;
  const std::string token_;
  const CallPolicy policy_;
  Clock& clock_;
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace iha::link
