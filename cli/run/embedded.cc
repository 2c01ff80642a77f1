#include "cli/run/embedded.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "benchmarks/graders/math_guard.h"
#include "cli/gate/sequential_watch.h"
#include "cli/run/local_device.h"
#include "cli/run/local_workers.h"
#include "cli/run/outputs.h"
#include "cli/run/progress.h"
#include "cli/run/socket_folder.h"
#include "common/clock.h"
#include "common/counted.h"
#include "common/digest.h"
#include "common/errors.h"
#include "common/fault_point.h"
#include "common/shutdown.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "coordinator/planner/planner.h"
#include "coordinator/rpc/server.h"
#include "coordinator/service/service.h"
#include "coordinator/store/store.h"
#include "model/checkpoint/model_folder.h"

namespace iha::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);
// A run whose database takes nothing for so long ends: somebody has to make room.
constexpr absl::Duration kNothingStored = absl::Seconds(20);
// Workers repeat a refused write at least this often.
constexpr absl::Duration kStillFailing = absl::Seconds(5);

// A sweep with an item_order is leased item by item: so many at a time. On a GPU a step of many costs little more than
// one of few, so that what the verdict does not need of them costs little, too.
constexpr int kLeasesOfItems = 8, kLeasesOfItemsOnGpu = 64;

constexpr int kLogWidth = 160;  // of a line that no terminal shows

int TerminalWidth() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col - 1 : 100;
}

int ThreadsOf(const RunFlags& flags) {
  if (flags.threads > 0) return flags.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / flags.workers);
}

std::vector<std::string> WorkerArguments(const RunFlags& flags, const Command& command, const SweepSpec& spec,
                                         const std::string& address,
                                         const std::map<std::string, std::string>& folders) {
  const bool gpu = spec.numerics.torch_cuda() || spec.numerics.cuda();
  std::vector<std::string> arguments = {"--coordinator",
                                        address,
                                        "--device",
                                        gpu                        ? CudaDeviceOf(flags)
                                        : spec.numerics.emulated() ? kEmulatedDevice
                                                                   : "cpu",
                                        "--threads",
                                        std::to_string(ThreadsOf(flags)),
                                        "--data-root",
                                        command.data_root,
                                        "--exit-when-done",
                                        "--deadline",
                                        "60",
                                        "--drain",
                                        "5"};
  for (const auto& [name, folder] : folders) {
    arguments.insert(arguments.end(), {"--model", name, folder});
  }
  const auto add = [&](const char* flag, const std::string& value) {
    arguments.push_back(flag);
    arguments.push_back(value);
  };
  add("--graders", command.graders);
  if (!flags.models_root.empty()) add("--models-root", flags.models_root);
  if (!flags.cache_dir.empty()) add("--cache-dir", flags.cache_dir);
  if (flags.kv_memory_mib > 0) add("--kv-memory-mib", std::to_string(flags.kv_memory_mib));
  if (flags.workers > 1) add("--local-workers", std::to_string(flags.workers));
  if (flags.max_batch > 0) add("--max-batch", std::to_string(flags.max_batch));
  if (flags.profile) arguments.emplace_back("--profile");
  if (spec.item_order.has_value()) add("--max-leases", std::to_string(gpu ? kLeasesOfItemsOnGpu : kLeasesOfItems));
  return arguments;
}

std::vector<std::string> FaultArguments(const RunFlags& flags) {
  if (flags.worker_fault.empty()) return {};
  return {"--fault", flags.worker_fault};
}

// Shows progress on a terminal, else a line now and then. Thread: any; the service logs
// through it from its own.
class ProgressPrinter {
 public:
  ProgressPrinter(const Command& command, const RunFlags& flags)
      : live_(command.progress && !flags.quiet), quiet_(flags.quiet), start_(absl::Now()) {}

  void Show(const SweepProgress& progress) {
    const absl::MutexLock lock(&mu_);
    for (const std::string& note : progress.notes) {
      if (std::find(notes_.begin(), notes_.end(), note) != notes_.end()) continue;
      notes_.push_back(note);
      ClearLocked();
      std::cerr << "note: " << TerminalSafe(note) << "\n";
    }
    if (!live_) {
      const absl::Duration elapsed = absl::Now() - start_;
      if (!quiet_ && pace_.Due(elapsed)) std::cerr << meter_.Line(progress, elapsed, kLogWidth) << std::endl;
      return;
    }
    ClearLocked();
    std::cerr << meter_.Line(progress, absl::Now() - start_, TerminalWidth()) << std::flush;
    shown_ = true;
  }
  void Clear() {
    const absl::MutexLock lock(&mu_);
    ClearLocked();
  }
  void Say(const std::string& line) {
    const absl::MutexLock lock(&mu_);
    ClearLocked();
    if (!quiet_) std::cerr << TerminalSafe(line) << "\n";
  }

 private:
  void ClearLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
    shown_ = false;
  }

  const bool live_;
  const bool quiet_;
  const absl::Time start_;
  absl::Mutex mu_;
  ProgressMeter meter_ ABSL_GUARDED_BY(mu_);
  ProgressPace pace_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mu_);  // shown once each
  bool shown_ ABSL_GUARDED_BY(mu_) = false;
};

// Waits until the sweep is done, a stop is asked for, or the workers cannot go on. `watch`: ends the sweep once its
// verdict is certain; may be null.
absl::StatusOr<bool> Supervise(coordinator::Service& service, Clock& clock, const SweepId& sweep, LocalWorkers& workers,
                               const std::atomic<bool>& stop, SequentialWatch* watch, ProgressPrinter& printer) {
  int64_t finished = -1;
  absl::Duration moved = clock.Elapsed();  // when an item landed last
  while (!stop.load()) {
    IHA_ASSIGN_OR_RETURN(const SweepProgress progress, service.api().Status(sweep));
    const absl::Duration now = clock.Elapsed();
    if (FinishedItems(progress) != finished) moved = now;
    finished = FinishedItems(progress);
    const auto failed = service.last_failed_write();
    if (failed.has_value() && now - failed->at < kStillFailing && now - moved > kNothingStored) return failed->status;
    printer.Show(progress);
    if (progress.state != "running") return false;
    if (watch != nullptr) {
      IHA_ASSIGN_OR_RETURN(const bool certain, watch->Certain(finished));
      if (certain) IHA_RETURN_IF_ERROR(service.api().Cancel(sweep));
    }
    IHA_RETURN_IF_ERROR(workers.Watch());
    absl::SleepFor(kPoll);
  }
  return true;
}

// A finished sweep starts no worker, which would compare: a checkpoint that was replaced since then must not get the
// table of the old one.
absl::Status CheckSameWeights(coordinator::Store& store, const SweepId& sweep,
                              const std::map<std::string, std::string>& folders) {
  std::vector<coordinator::ModelBinding> bindings;
  IHA_RETURN_IF_ERROR(store.Read([&](coordinator::ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(bindings, txn.Bindings(sweep));
    return absl::OkStatus();
  }));
  for (const coordinator::ModelBinding& bound : bindings) {
    const auto folder = folders.find(bound.model);
    if (folder == folders.end()) continue;
    IHA_ASSIGN_OR_RETURN(const Digest weights, checkpoint::WeightsDigestOf(folder->second));
    if (weights == bound.weights) continue;
    return FailedPrecondition(
        "{}: has weights {}, this finished sweep is of {}; give --tag TEXT to score the new ones, or another --db",
        bound.model, weights.Hex().substr(0, 12), bound.weights.Hex().substr(0, 12));
  }
  return absl::OkStatus();
}

struct Inputs {
  const Command& command;
  const RunFlags& flags;
  const SweepSpec& spec;
  const std::map<std::string, std::string>& folders;
  SequentialWatch* watch;  // may be null
};

// Made before any thread.
struct StopRequest {
  std::atomic<bool> asked{false};
  ShutdownSignals signals;  // goes first
};

struct WorkersEnd {
  int restarts = 0;
  bool interrupted = false;  // with items left
};

// Serves the sweep to worker processes of its own until it is done or a stop is asked for.
absl::StatusOr<WorkersEnd> RunWorkers(const Inputs& in, const SweepId& sweep, coordinator::Service& service,
                                      Clock& clock, StopRequest& stop, ProgressPrinter& printer) {
  std::error_code no_folder;  // then the default
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(no_folder);
  IHA_ASSIGN_OR_RETURN(const auto socket, SocketFolder::Make(no_folder ? "/tmp" : temporary.string()));
  coordinator::ServerOptions listen;
  listen.address = socket->Address();
  IHA_ASSIGN_OR_RETURN(const auto server, coordinator::RpcServer::Start(service.api(), service.api(), listen));
  LocalWorkers workers({.program = in.command.program_folder + "/iha-worker",
                        .arguments = WorkerArguments(in.flags, in.command, in.spec, socket->Address(), in.folders),
                        .first_arguments = FaultArguments(in.flags),
                        .log_folder = in.flags.out,
                        .count = in.flags.workers},
                       clock);
  IHA_RETURN_IF_ERROR(workers.Start());
  stop.signals.Watch([&stop] { stop.asked.store(true); });
  const absl::StatusOr<bool> stopped = Supervise(service, clock, sweep, workers, stop.asked, in.watch, printer);
  printer.Clear();
  if (stopped.ok() && *stopped) printer.Say("stopping: the workers finish what they have begun (again: at once)");
  workers.Stop(absl::Seconds(stopped.ok() ? 10 : 1));
  server->Shutdown(absl::Seconds(1));
  IHA_RETURN_IF_ERROR(stopped.status());
  // What the workers finished while they were stopped counts.
  IHA_ASSIGN_OR_RETURN(const SweepProgress after, service.api().Status(sweep));
  return WorkersEnd{.restarts = workers.restarts(),
                    .interrupted = *stopped && FinishedItems(after) < PlannedItems(after)};
}

// Of this machine's CPU: there is something to compare where its operations were noted. Once the workers are gone, so
// that it has the cores.
std::optional<MachinePeak> PeakFor(const Command& command, const RunFlags& flags, bool on_device,
                                   const SweepTelemetry& telemetry, ProgressPrinter& printer) {
  if (!flags.profile || on_device || telemetry.total.operations.empty()) return std::nullopt;
  const absl::StatusOr<MachinePeak> peak = LocalMachinePeak(command.program_folder, ThreadsOf(flags));
  if (peak.ok()) return *peak;
  printer.Say(fmt::format("note: --profile without the machine's peak: {}", std::string(peak.status().message())));
  return std::nullopt;
}

// Null without --sequential-gate.
absl::StatusOr<std::unique_ptr<SequentialWatch>> WatchFor(const Command& command, const RunFlags& flags,
                                                          const SweepSpec& spec, coordinator::Service& service,
                                                          Clock& clock) {
  if (flags.gate.baseline.empty()) return nullptr;
  IHA_ASSIGN_OR_RETURN(const coordinator::SweepPlan plan,
                       coordinator::Plan(spec, coordinator::OpenerFor(command.data_root)));
  return SequentialWatch::Open(flags.gate, "--sequential-gate", plan.spec, PlannedRun(plan), service.store(), clock);
}

// A sweep that its verdict has stopped is cancelled: it can't be submitted again, but still says what it showed.
absl::StatusOr<SweepId> SubmitOrFind(coordinator::Coordinator& api, const SweepSpec& spec, bool watched) {
  if (watched) {
    const absl::StatusOr<SweepProgress> known = api.Status(IdOf(spec));
    if (known.ok() && known->state == "cancelled") return known->sweep;
  }
  return api.Submit(spec);
}

}  // namespace

absl::StatusOr<RunOutcome> RunEmbedded(const Command& command, const RunFlags& flags, const SweepSpec& spec,
                                       const std::map<std::string, std::string>& folders) {
  StopRequest stop;
  IHA_RETURN_IF_ERROR(ArmFaultPoints(flags.fault));
  IHA_ASSIGN_OR_RETURN(const std::string guard, benchmarks::FindMathGuard());
  const absl::Time started = absl::Now();
  const reports::TableOptions table_options{.layout = flags.layout, .baseline = flags.baseline};
  IHA_RETURN_IF_ERROR(MakeFolders(flags.out));
  const std::string db = flags.db.empty() ? flags.out + "/iha-eval.db" : flags.db;
  RealClock clock;
  ProgressPrinter printer(command, flags);
  IHA_ASSIGN_OR_RETURN(const auto service,
                       coordinator::Service::Open({.db = db,
                                                   .data_root = command.data_root,
                                                   .guard = guard,
                                                   .log = [&](const std::string& line) { printer.Say(line); }},
                                                  clock));
  IHA_ASSIGN_OR_RETURN(const auto watch, WatchFor(command, flags, spec, *service, clock));
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, SubmitOrFind(service->api(), spec, watch != nullptr));
  service->api().ServeOnly(sweep);  // the workers below have this run's models; other sweeps of the file wait
  IHA_ASSIGN_OR_RETURN(const SweepProgress before, service->api().Status(sweep));
  printer.Say(fmt::format("sweep {} · {} of {} done · database {}", sweep.Hex().substr(0, 16), FinishedItems(before),
                          Counted(PlannedItems(before), "item"), db));
  WorkersEnd end;
  if (before.state == "running") {
    IHA_ASSIGN_OR_RETURN(
        end, RunWorkers({command, flags, spec, folders, watch.get()}, sweep, *service, clock, stop, printer));
  } else {
    IHA_RETURN_IF_ERROR(CheckSameWeights(service->store(), sweep, folders));
  }
  const absl::Time ended = absl::Now();
  IHA_ASSIGN_OR_RETURN(SweepTelemetry telemetry, ReadTelemetry(service->store(), sweep));
  const std::optional<MachinePeak> peak = PeakFor(command, flags, spec.numerics.on_device(), telemetry, printer);
  const absl::StatusOr<EngineBuild> engine = LocalEngineBuild(command.program_folder);
  const RunRecord record{.started = started,
                         .ended = ended,
                         .workers = flags.workers,
                         .worker_restarts = end.restarts,
                         .threads = ThreadsOf(flags),
                         .db = db,
                         .command = command.line,
                         .telemetry = telemetry,
                         .engine = engine.ok() ? std::optional(*engine) : std::nullopt,
                         .machine_peak = peak};
  IHA_ASSIGN_OR_RETURN(reports::Table table, WriteOutputs(service->store(), sweep, table_options, flags.out, record));
  RunOutcome outcome{.sweep = sweep,
                     .table = std::move(table),
                     .telemetry = std::move(telemetry),
                     .peak = peak,
                     .interrupted = end.interrupted,
                     .verdict = {}};
  if (watch == nullptr) return outcome;
  IHA_ASSIGN_OR_RETURN(outcome.verdict, watch->Report());
  IHA_ASSIGN_OR_RETURN(const SweepProgress after, service->api().Status(sweep));
  outcome.finished = FinishedItems(after);
  outcome.planned = PlannedItems(after);
  return outcome;
}

}  // namespace iha::cli
