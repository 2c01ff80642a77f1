// server.h: the coordinator's calls over gRPC (callback API): wire -> codec -> WorkerApi / ClientApi -> codec -> wire.
//
// Handlers of the Api may block on the store's writer thread, so each call is handed to a small pool of our own and
// gRPC's threads never wait. Messages up to codec::kMaxMessageBytes both ways. A call past its deadline is still
// carried out (every call can be repeated). Without TLS files the server is plain text: bind it to loopback, a Unix
// socket or a trusted network; with `token` every call must carry "authorization: Bearer TOKEN", else Unauthenticated.
// Thread: any. Start blocks until the address is bound; Shutdown until the calls in progress are done.
// Errors: Unavailable (address taken or not ours: choose another), InvalidArgument (TLS files).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/coordinator_api.h"

namespace iha::coordinator {

struct ServerOptions {
  std::string address;   // "HOST:PORT" (port 0 = any), "unix:/path"
  std::string tls_cert;  // PEM files; all empty = plain text
  std::string tls_key;
  std::string tls_client_ca;  // not empty: clients must present a certificate that it signed
  std::string token;
  int threads = 4;
};

class RpcServer {
 public:
  // Both must outlive the server.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(WorkerApi& workers, ClientApi& clients,
                                                          const ServerOptions& options);
  ~RpcServer();

  // The bound TCP port; 1 for a Unix socket.
  int port() const;
  // Refuses new calls, gives those in progress `grace`, then ends them. Idempotent.
  void Shutdown(absl::Duration grace);

 private:
  struct Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace iha::coordinator
