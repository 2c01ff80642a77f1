// coordinator_flags.h: the flags by which a command reaches a running coordinator. Blocking where it connects; thread:
// main.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/coordinator_api.h"
#include "proto/link/caller.h"

namespace CLI {
class App;
}

namespace iha::cli {

struct CoordinatorFlags {
  link::Endpoint endpoint;  // endpoint.address empty: none was given
  std::string token_file;
  double deadline_s = 30;
};

// Declares --coordinator, --deadline, --token-file and the --tls flags.
void AddCoordinatorFlags(CLI::App& app, CoordinatorFlags& flags);

// A connection for the length of one command.
struct Connection {
  RealClock clock;
  std::unique_ptr<ClientApi> api;
};

// Errors: those of the token's and certificates' files; the calls' own are ClientApi's (grpc_client_api.h).
absl::StatusOr<std::unique_ptr<Connection>> Connect(const CoordinatorFlags& flags);

}  // namespace iha::cli
