// iha-worker: one worker process.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "benchmarks/graders/graders.h"
#include "common/bus_error.h"
#include "common/clock.h"
#include "common/data_root.h"
#include "common/errors.h"
#include "common/fault_point.h"
#include "common/file.h"
#include "common/flag_checks.h"
#include "common/shutdown.h"
#include "common/text.h"
#include "common/usage_error.h"
#include "common/version.h"
#include "model/backend_module.h"
#include "proto/codec/check.h"
#include "proto/link/address.h"
#include "proto/link/grpc_log.h"
#include "worker/engine/kv_budget.h"
#include "worker/link/grpc_worker_api.h"
#include "worker/runner/checkpoint_source.h"
#include "worker/runner/worker.h"
#include "worker/sandbox/judge.h"

namespace iha::worker {
namespace {

constexpr int kMaxSlots = 16;  // programs at a time

struct Flags {
  link::Endpoint endpoint;
  std::string token_file;
  std::string device = "cpu";
  int threads = 0;
  int64_t kv_memory_mib = 0;
  int64_t local_workers = 1;
  int32_t max_batch = 0;
  int32_t max_leases = 0;
  int32_t step_tokens = 0;
  bool no_prefix_cache = false;
  bool profile = false;
  std::string models_root;
  std::vector<std::pair<std::string, std::string>> models;  // name, folder
  std::string data_root;
  std::string cache_dir;
  std::string graders;
  std::string id;
  bool exit_when_done = false;
  int deadline_s = 600;
  int drain_s = 20;
  std::string faults;
};

void Print(const std::string& line) { std::cerr << "iha-worker: " << TerminalSafe(line) << std::endl; }

int Fail(const absl::Status& status) {
  Print(std::string(status.message()));
  return ExitCodeFor(status);
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "host";
}

// What would otherwise only be found when the first lease needs it.
absl::Status CheckFlags(const Flags& flags) {
  std::error_code error;
  if (!flags.models_root.empty() && !std::filesystem::is_directory(flags.models_root, error)) {
    return NotFound("--models-root {}: no such folder; expected the one that the sweeps' models lie in",
                    flags.models_root);
  }
  for (const auto& [name, folder] : flags.models) {
    if (std::filesystem::is_directory(folder, error)) continue;
    return NotFound("--model {} {}: no such folder; expected a name and a checkpoint directory", name, folder);
  }
  return model::NumericsOn(flags.device).status();
}

int Run(Flags flags) {
  if (const absl::Status address = link::CheckAddress("--coordinator", flags.endpoint.address); !address.ok()) {
    Print(std::string(address.message()));
    return kExitUsage;
  }
  ShutdownSignals signals;
  std::atomic<bool> stopping{false};
  if (const absl::Status armed = ArmFaultPoints(flags.faults); !armed.ok()) return Fail(armed);
  if (const absl::Status checked = CheckFlags(flags); !checked.ok()) return Fail(checked);
  if (!flags.token_file.empty()) {
    const auto token = ReadSecret(flags.token_file);
    if (!token.ok()) return Fail(Annotate(token.status(), "--token-file"));
    flags.endpoint.token = *token;
  }
  const auto guard = benchmarks::FindMathGuard();
  if (!guard.ok()) return Fail(guard.status());
  const int threads = flags.threads > 0 ? flags.threads : static_cast<int>(std::thread::hardware_concurrency());

  link::SilenceGrpcLog();
  RealClock clock;
  auto caller = link::Caller::Open(flags.endpoint,
                                   {.deadline = absl::Seconds(flags.deadline_s),
                                    .attempt = absl::Seconds(30),
                                    .jitter_key = static_cast<uint64_t>(getpid()),
                                    .on_retry = Print,
                                    .stopped = [&stopping] { return stopping.load(); }},
                                   clock);
  if (!caller.ok()) return Fail(caller.status());
  const auto api = MakeGrpcWorkerApi(*std::move(caller));
  CheckpointSource models({.folders = {flags.models.begin(), flags.models.end()},
                           .models_root = flags.models_root,
                           .threads = threads,
                           .device = flags.device,
                           .clock = &clock,
                           .profile_device = flags.profile});

  WorkerOptions options;
  options.id = {flags.id.empty() ? fmt::format("{}-{}", HostName(), getpid()) : flags.id};
  options.incarnation = absl::ToUnixNanos(clock.Now());
  options.description = fmt::format("{} {} threads={} version={}", HostName(), flags.device, threads, kVersion);
  options.data_root = flags.data_root;
  options.cache_dir = flags.cache_dir;
  options.threads = threads;
  options.graders = std::make_shared<benchmarks::Graders>(
      benchmarks::GraderOptions{.libraries = flags.graders,
                                .guard = *guard,
                                .judge = std::make_shared<sandbox::LazyJudge>(std::clamp(threads, 1, kMaxSlots))});
  options.engine.kv_bytes =
      flags.kv_memory_mib > 0 ? flags.kv_memory_mib << 20 : engine::DefaultKvBytes("/", flags.local_workers);
  options.engine.device_sharers = flags.kv_memory_mib > 0 ? 0 : flags.local_workers;
  options.engine.clock = &clock;
  if (flags.max_leases > 0) options.max_leases = static_cast<size_t>(flags.max_leases);
  if (flags.max_batch > 0) options.engine.scheduler.max_sequences = flags.max_batch;
  if (flags.step_tokens > 0) options.engine.scheduler.max_batch_tokens = flags.step_tokens;
  options.engine.scheduler.prefix_cache = !flags.no_prefix_cache;
  options.exit_when_done = flags.exit_when_done;
  options.drain = absl::Seconds(flags.drain_s);
  options.log = Print;
  Worker worker(*api, models, clock, std::move(options));
  signals.Watch([&] {
    stopping.store(true);
    worker.Stop();
  });
  const absl::Status status = worker.Run();
  signals.Unwatch();
  return status.ok() ? kExitOk : Fail(status);
}

int Main(int argc, char** argv) {
  Flags flags;
  flags.data_root = DefaultDataRoot(std::getenv("IHA_EVAL_DATA"), std::getenv("HOME"));
  flags.cache_dir = DefaultCacheDir(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"));
  if (const char* graders = std::getenv("IHA_EVAL_GRADERS")) flags.graders = graders;
  CLI::App app("Runs checkpoints for a coordinator: pulls leases, generates, grades, commits.", "iha-worker");
  app.set_version_flag("--version", std::string("iha-worker ") + kVersion);
  app.add_option("--coordinator", flags.endpoint.address, "HOST:PORT or unix:/path")->required();
  app.add_option("--device", flags.device, "cpu; cuda or cuda:N: a GPU; emulated: its kernels, run by an emulator")
      ->check(DeviceName())
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "0 = all cores")->check(WholeNumber(0, 4096));
  app.add_option("--kv-memory-mib", flags.kv_memory_mib,
                 "KV cache budget; 0 = a quarter of the free memory, host's or GPU's")
      ->check(WholeNumber(0, uint64_t{1} << 30));
  app.add_option("--local-workers", flags.local_workers, "workers of this machine that share its free memory")
      ->check(WholeNumber(1, 1 << 20));
  app.add_option("--max-batch", flags.max_batch, "sequences in a step; 0 = default")->check(WholeNumber(0, 1 << 20));
  app.add_option("--max-leases", flags.max_leases, "shards held at a time; 0 = default, 2")->check(WholeNumber(0, 64));
  app.add_option("--step-tokens", flags.step_tokens, "tokens in a step; 0 = default")->check(WholeNumber(0, 1 << 20));
  app.add_flag("--no-prefix-cache", flags.no_prefix_cache, "compute equal prompt prefixes again");
  app.add_flag("--profile", flags.profile, "time operations on a device one by one, without recorded steps: slower");
  app.add_option("--models-root", flags.models_root, "folder below which models are looked up by name");
  app.add_option("--model", flags.models, "NAME DIR, repeatable: a model outside the root");
  app.add_option("--data-root", flags.data_root, "benchmark data");
  app.add_option("--cache-dir", flags.cache_dir,
                 "where rows of RULER are kept; default $XDG_CACHE_HOME/iha-eval or ~/.cache/iha-eval");
  app.add_option("--graders", flags.graders, "folder with the libraries of math.minerva and math.prm800k");
  app.add_option("--id", flags.id, "worker name; default host-pid")->check([](const std::string& id) {
    return codec::IsId(id) ? std::string() : fmt::format("found \"{}\"; expected {}", id, codec::kIdRule);
  });
  app.add_flag("--exit-when-done", flags.exit_when_done, "end when no unfinished job is left");
  app.add_option("--deadline", flags.deadline_s, "seconds to keep trying an unreachable coordinator")
      ->check(WholeNumber(0, 1 << 30));
  app.add_option("--drain", flags.drain_s, "seconds for begun work after SIGTERM")->check(WholeNumber(0, 1 << 30));
  app.add_option("--token-file", flags.token_file, "file with the coordinator's token");
  CLI::Option* ca = app.add_option("--tls-ca", flags.endpoint.tls_ca, "PEM: trust this authority; turns TLS on");
  CLI::Option* cert = app.add_option("--tls-cert", flags.endpoint.tls_cert, "PEM client certificate")->needs(ca);
  cert->needs(app.add_option("--tls-key", flags.endpoint.tls_key, "PEM client key")->needs(cert));
  app.add_option("--fault", flags.faults, "arm fault points NAME:ACTION[:NTH], for crash tests")->group("");
  app.footer("Example:\n  iha-worker --coordinator eval-host:7000 --device cpu --models-root /models");
  if (const std::optional<int> code = ParseCommandLine(app, argc, argv)) return *code;
  return Run(std::move(flags));
}

}  // namespace
}  // namespace iha::worker

int main(int argc, char** argv) {
  iha::ExplainBusErrors();
  iha::model::PrepareForBackendModules();
  return iha::worker::Main(argc, argv);
}
