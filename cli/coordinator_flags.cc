#include "cli/coordinator_flags.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/grpc_client_api.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::cli {

void AddCoordinatorFlags(CLI::App& app, CoordinatorFlags& flags) {
  app.add_option("--coordinator", flags.endpoint.address, "HOST:PORT or unix:/path");
  app.add_option("--deadline", flags.deadline_s, "seconds to keep trying an unreachable coordinator; default 30")
      ->check(RealNumber(0, 1e9));
  app.add_option("--token-file", flags.token_file, "file with the coordinator's token");
  CLI::Option* ca = app.add_option("--tls-ca", flags.endpoint.tls_ca, "PEM: trust this authority; turns TLS on");
  CLI::Option* cert = app.add_option("--tls-cert", flags.endpoint.tls_cert, "PEM client certificate")->needs(ca);
  cert->needs(app.add_option("--tls-key", flags.endpoint.tls_key, "PEM client key")->needs(cert));
}

absl::StatusOr<std::unique_ptr<Connection>> Connect(const CoordinatorFlags& flags) {
  auto connection = std::make_unique<Connection>();
  link::Endpoint endpoint = flags.endpoint;
  if (!flags.token_file.empty()) {
    absl::StatusOr<std::string> token = ReadSecret(flags.token_file);
    if (!token.ok()) return Annotate(token.status(), "--token-file");
    endpoint.token = *std::move(token);
  }
  const link::CallPolicy policy{
      .deadline = absl::Seconds(flags.deadline_s),
      .attempt = absl::Seconds(20),
      .on_retry = [](const std::string& line) { std::cerr << "iha-eval: " << TerminalSafe(line) << std::endl; }};
  IHA_ASSIGN_OR_RETURN(auto caller, link::Caller::Open(endpoint, policy, connection->clock));
  connection->api = MakeGrpcClientApi(std::move(caller));
  return connection;
}

}  // namespace iha::cli
