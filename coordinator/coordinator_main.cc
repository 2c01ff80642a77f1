// iha-coordinator: the service: one database, many workers and clients.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "benchmarks/graders/math_guard.h"
#include "common/clock.h"
#include "common/data_root.h"
#include "common/errors.h"
#include "common/fault_point.h"
#include "common/file.h"
#include "common/shutdown.h"
#include "common/text.h"
#include "common/usage_error.h"
#include "common/version.h"
#include "coordinator/rpc/server.h"
#include "coordinator/service/service.h"
#include "proto/link/address.h"
#include "proto/link/grpc_log.h"

namespace iha::coordinator {
namespace {

struct Flags {
  ServerOptions server;
  std::string db;
  std::string data_root;
  std::string token_file;
  std::string faults;
};

void Print(const std::string& line) { std::cerr << "iha-coordinator: " << TerminalSafe(line) << std::endl; }

int Fail(const absl::Status& status) {
  Print(std::string(status.message()));
  return ExitCodeFor(status);
}

int Run(Flags flags) {
  if (flags.db.empty()) {
    Print("--db \"\": expected a file");
    return kExitUsage;
  }
  if (const absl::Status address = link::CheckAddress("--listen", flags.server.address); !address.ok()) {
    Print(std::string(address.message()));
    return kExitUsage;
  }
  absl::Mutex mu;
  bool stop = false;        // guarded by mu
  ShutdownSignals signals;  // outlives all that may take its time to end, so that a second signal acts then, too
  if (const absl::Status armed = ArmFaultPoints(flags.faults); !armed.ok()) return Fail(armed);
  if (!flags.token_file.empty()) {
    const auto token = ReadSecret(flags.token_file);
    if (!token.ok()) return Fail(Annotate(token.status(), "--token-file"));
    flags.server.token = *token;
  }
  link::SilenceGrpcLog();
  RealClock clock;
  const auto guard = benchmarks::FindMathGuard();
  if (!guard.ok()) return Fail(guard.status());
  auto service = Service::Open(
      {.db = flags.db, .data_root = flags.data_root, .guard = *guard, .log = Print, .events = Print}, clock);
  if (!service.ok()) return Fail(service.status());
  auto server = RpcServer::Start((*service)->api(), (*service)->api(), flags.server);
  if (!server.ok()) return Fail(server.status());
  // Scripts wait for this line; with port 0 it tells them the port.
  const bool unix_socket = flags.server.address.starts_with("unix:");
  const std::string bound =
      unix_socket
          ? flags.server.address
          : fmt::format("{}:{}", flags.server.address.substr(0, flags.server.address.rfind(':')), (*server)->port());
  Print(fmt::format("listening on {}, database {}", bound, flags.db));

  signals.Watch([&] {
    const absl::MutexLock lock(&mu);
    stop = true;
  });
  {
    const absl::MutexLock lock(&mu);
    mu.Await(absl::Condition(&stop));
  }
  Print("stopping (again: at once)");
  (*server)->Shutdown(absl::Seconds(5));
  return kExitOk;
}

int Main(int argc, char** argv) {
  Flags flags;
  flags.data_root = DefaultDataRoot(std::getenv("IHA_EVAL_DATA"), std::getenv("HOME"));
  CLI::App app("The evaluation service: plans sweeps, leases shards to workers, keeps results.", "iha-coordinator");
  app.set_version_flag("--version", std::string("iha-coordinator ") + kVersion);
  app.add_option("--listen", flags.server.address, "HOST:PORT (port 0 = any free) or unix:/path")->required();
  app.add_option("--db", flags.db, "SQLite file; created if absent")->required();
  app.add_option("--data-root", flags.data_root, "benchmark data");
  app.add_option("--token-file", flags.token_file, "file with a secret that every call must carry");
  CLI::Option* cert = app.add_option("--tls-cert", flags.server.tls_cert, "PEM certificate; turns TLS on");
  CLI::Option* key = app.add_option("--tls-key", flags.server.tls_key, "PEM key")->needs(cert);
  cert->needs(key);
  app.add_option("--tls-client-ca", flags.server.tls_client_ca, "PEM: clients must have a certificate it signed")
      ->needs(cert);
  app.add_option("--fault", flags.faults, "arm fault points NAME:ACTION[:NTH], for crash tests")->group("");
  app.footer("Example:\n  iha-coordinator --listen 127.0.0.1:7000 --db sweeps.db");
  if (const std::optional<int> code = ParseCommandLine(app, argc, argv)) return *code;
  return Run(std::move(flags));
}

}  // namespace
}  // namespace iha::coordinator

int main(int argc, char** argv) { return iha::coordinator::Main(argc, argv); }
