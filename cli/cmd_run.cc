#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/run/dry_run.h"
#include "cli/run/embedded.h"
#include "cli/run/local_device.h"
#include "cli/run/spec_notes.h"
#include "cli/sweep_file.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/json.h"
#include "common/module_path.h"
#include "common/runnable_numerics.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "coordinator/planner/planner.h"
#include "coordinator/service/service.h"
#include "model/checkpoint/model_folder.h"
#include "model/tokenizer/tokenizer.h"
#include "reports/render.h"
#include "reports/table.h"

namespace iha::cli {
namespace {

constexpr uint64_t kItemOrder = 1234;            // seed of --sequential-gate
constexpr uint64_t kMaxMib = uint64_t{1} << 30;  // in bytes it still fits

// Of the local workers; without this they would wait for a job that they can run.
absl::Status CheckNumerics(const NumericsSpec& wanted) {
  if (wanted.torch()) IHA_RETURN_IF_ERROR(FindBackendModule("torch"));
  if (wanted.cuda_exact()) IHA_RETURN_IF_ERROR(FindBackendModule("cuda"));
  if (wanted.cuda_fast()) IHA_RETURN_IF_ERROR(FindBackendModule("cuda_fast"));
  std::vector<std::string> ids;
  const bool own_device = wanted.torch_cuda() || wanted.cuda();
  const std::string device = wanted.emulated() ? kEmulatedBackend : own_device ? wanted.backend : "torch";
  for (const NumericsSpec& spec : RunnableNumerics(device)) {
    if (spec.Id() == wanted.Id()) return absl::OkStatus();
    if (spec.backend != "fake") ids.push_back(spec.Id());
  }
  return Unavailable("numerics {}: not in this build; it runs {}", wanted.Id(), fmt::join(ids, ", "));
}

struct Request {
  SweepSpec spec;  // all defaults filled in
  std::map<std::string, std::string> folders;
};

// What the command line says wrong is a usage error; a sweep file is input like any other.
int FailRequest(const RunFlags& flags, const absl::Status& status) {
  const bool usage = flags.sweep_file.empty() && status.code() == absl::StatusCode::kInvalidArgument;
  return usage ? FailUsage("run", status) : Fail("run", status);
}

// Of the entries whose items follow from a checkpoint's tokenizer: the shortest of each kind, which tells whether the
// others can be had ("ruler:vt@512" of that and "ruler:vt@1024").
absl::StatusOr<std::vector<std::unique_ptr<const benchmarks::Benchmark>>> ShortestMade(const Request& request,
                                                                                       const std::string& data_root) {
  const coordinator::BenchmarkOpener open = coordinator::OpenerFor(data_root);
  std::map<std::string, std::unique_ptr<const benchmarks::Benchmark>> shortest;
  for (const SweepEntry& entry : request.spec.entries) {
    IHA_ASSIGN_OR_RETURN(auto opened, open(entry.benchmark));
    if (opened->info().item_tokens == 0) continue;
    BenchmarkRef kind = entry.benchmark;
    kind.name.resize(std::min(kind.name.find('@'), kind.name.size()));
    auto& known = shortest[benchmarks::ToString(kind)];
    if (known == nullptr || opened->info().item_tokens < known->info().item_tokens) known = std::move(opened);
  }
  std::vector<std::unique_ptr<const benchmarks::Benchmark>> made;
  for (auto& [kind, benchmark] : shortest) made.push_back(std::move(benchmark));
  return made;
}

// A bad checkpoint, or one that is too short for an entry or cannot have its items, is found before anything is stored
// or started.
absl::Status CheckModels(const Request& request, const std::string& data_root) {
  IHA_ASSIGN_OR_RETURN(const auto made, ShortestMade(request, data_root));
  for (const auto& [name, folder] : request.folders) {
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
    IHA_ASSIGN_OR_RETURN(tokenizer, tokenizer::Tokenizer::Load(folder));
    IHA_ASSIGN_OR_RETURN(const int64_t context_tokens, checkpoint::ContextTokensOf(folder));
    for (const SweepEntry& entry : request.spec.entries) {
      IHA_RETURN_IF_ERROR(benchmarks::CheckContext(entry.benchmark, name, context_tokens));
    }
    for (const auto& benchmark : made) {
      const auto items = benchmark->ForCheckpoint({.tokenizer = tokenizer, .items = 1, .cache_dir = "", .threads = 1});
      if (!items.ok()) return Annotate(items.status(), name);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SweepSpec> SpecAsGiven(const RunFlags& flags, const std::map<std::string, std::string>& folders) {
  if (!flags.sweep_file.empty()) {
    IHA_ASSIGN_OR_RETURN(const std::string text, ReadInput(flags.sweep_file, kMaxSweepBytes));
    return ParseSweep(text, flags.sweep_file);
  }
  // Table order is the order of the flags.
  std::vector<std::string> names(flags.models.size());
  for (const auto& [name, folder] : folders) {
    for (size_t i = 0; i < flags.models.size(); i++) {
      std::error_code ignored;
      if (std::filesystem::equivalent(flags.models[i], folder, ignored)) names[i] = name;
    }
  }
  return SpecOf(flags, names);
}

absl::StatusOr<Request> RequestOf(const Command& command, const RunFlags& flags) {
  Request request;
  IHA_ASSIGN_OR_RETURN(request.folders, ModelNames(flags.models));
  IHA_ASSIGN_OR_RETURN(SweepSpec given, SpecAsGiven(flags, request.folders));
  if (!flags.gate.baseline.empty() && !given.item_order.has_value()) given.item_order = kItemOrder;
  if (given.numerics.torch_cuda() || given.numerics.cuda()) {
    IHA_ASSIGN_OR_RETURN(const std::string here,
                         LocalCudaBackend(command.program_folder, given.numerics, CudaDeviceOf(flags)));
    const std::string_view backend = given.numerics.backend;
    if (backend == kTorchCudaHere || backend == kCudaExactHere || backend == kCudaFastHere) {
      given.numerics.backend = here;
    }
    if (given.numerics.backend != here) {
      return Unavailable("numerics.backend: {}; this host's GPU is {}", given.numerics.backend, here);
    }
  }
  absl::StatusOr<SweepSpec> full = coordinator::NormalizeSpec(given, coordinator::OpenerFor(command.data_root));
  if (!full.ok()) return flags.sweep_file.empty() ? full.status() : Annotate(full.status(), flags.sweep_file);
  request.spec = *std::move(full);
  if (flags.gate.baseline.empty()) return request;
  // A settled vote's value is that of all its samples: nothing that the gate looks at changes.
  for (SweepEntry& entry : request.spec.entries) entry.stop_settled_votes = benchmarks::CheckVotesOnly(entry).ok();
  return request;
}

// Likely mistakes, but a sweep all the same.
void PrintNotes(const SweepSpec& spec, const std::string& libraries) {
  for (const std::string& note : NotesOn(spec)) std::cerr << "note: " << TerminalSafe(note) << "\n";
  for (const std::string& note : GraderNotes(spec, libraries)) std::cerr << "note: " << TerminalSafe(note) << "\n";
}

// By name, as no number shows them: passed by the official rule of their benchmark, and by it alone.
void PrintSuspects(const reports::Table& table) {
  constexpr size_t kMost = 20;
  const std::vector<reports::Suspect>& suspects = table.suspects;
  for (size_t i = 0; i < std::min(suspects.size(), kMost); i++) {
    const reports::Suspect& suspect = suspects[i];
    std::cerr << TerminalSafe(fmt::format("suspect: {} · {}: {} sample {}; iha-eval explain shows it", suspect.model,
                                          suspect.benchmark, suspect.item_id, suspect.sample))
              << "\n";
  }
  if (suspects.size() > kMost) std::cerr << fmt::format("and {} more suspects: run.json\n", suspects.size() - kMost);
}

void PrintFiles(const RunFlags& flags) {
  if (flags.quiet) return;
  std::cerr << "wrote " << TerminalSafe(flags.out)
            << "/{table.md,table.csv,table.json,table.html,samples.jsonl,run.json}\n";
}

// Not on stdout: that holds what is equal in equal runs.
std::string ProfileText(const RunOutcome& outcome) {
  const EngineTelemetry& total = outcome.telemetry.total;
  return OperationTable(total, outcome.peak) + TelemetrySummary(total, outcome.peak);
}

// The verdict instead of a table: a sweep that may have stopped early has no other.
int Conclude(const RunFlags& flags, const RunOutcome& outcome) {
  if (outcome.interrupted) {
    std::cerr << "iha-eval run: stopped; run the same command again to go on\n";
    return kExitUnavailable;
  }
  PrintSequential(*outcome.verdict, flags.json);
  if (!flags.quiet) {
    std::cerr << fmt::format("run: {} of {}; needed: {}\n", outcome.finished, Counted(outcome.planned, "item"),
                             outcome.verdict->used);
  }
  return ExitCodeOf(outcome.verdict->verdict, flags.gate.inconclusive);
}

int Run(const Command& command, RunFlags flags) {
  if (flags.sweep_file.empty() && (flags.models.empty() || flags.benches.empty())) {
    const char* missing = flags.models.empty() && flags.benches.empty() ? "nothing to run"
                          : flags.models.empty()                        ? "--model is missing"
                                                                        : "--bench is missing";
    return FailUsage("run", InvalidArgument("{}; give --model DIR and --bench SPEC, or --sweep FILE", missing));
  }
  if (const auto margin = MarginOf(flags.gate); !margin.ok()) return FailUsage("run", margin.status());
  const absl::StatusOr<Request> request = RequestOf(command, flags);
  if (!request.ok()) return FailRequest(flags, request.status());
  const reports::TableOptions table{.layout = flags.layout, .baseline = flags.baseline};
  if (const absl::Status status = reports::CheckTableOptions(request->spec, table); !status.ok()) {
    return Fail("run", status);
  }
  if (const absl::Status models = CheckModels(*request, command.data_root); !models.ok()) return Fail("run", models);
  if (const absl::Status numerics = CheckNumerics(request->spec.numerics); !numerics.ok()) {
    return Fail("run", numerics);
  }
  if (!flags.quiet) PrintNotes(request->spec, command.graders);
  if (flags.dry_run) {
    const auto plan = DescribePlan(command, flags, request->spec, request->folders);
    if (!plan.ok()) return Fail("run", plan.status());
    std::cout << *plan;
    return kExitOk;
  }
  const absl::StatusOr<RunOutcome> outcome = RunEmbedded(command, flags, request->spec, request->folders);
  if (!outcome.ok()) return Fail("run", outcome.status());
  if (outcome->verdict.has_value()) return Conclude(flags, *outcome);
  std::cout << (flags.json ? reports::RenderJson(outcome->table) : reports::RenderMarkdown(outcome->table));
  if (flags.profile) std::cerr << ProfileText(*outcome);
  if (!flags.quiet) PrintSuspects(outcome->table);
  PrintFiles(flags);
  if (!outcome->interrupted) return kExitOk;
  std::cerr << "iha-eval run: stopped; run the same command again to go on\n";
  return kExitUnavailable;
}

// A sweep file says these itself; they would be passed over in silence.
absl::Status CheckNotBoth(const CLI::App& run, const RunFlags& flags) {
  if (flags.sweep_file.empty()) return absl::OkStatus();
  for (const char* flag :
       {"--bench", "--samples", "--temperature", "--top-p", "--top-k", "--seed", "--limit", "--fewshot",
        "--max-new-tokens", "--metric", "--tag", "--device", "--numerics", "--kv-dtype"}) {
    if (run.count(flag) > 0) return InvalidArgument("{}: not together with --sweep; say it in the file", flag);
  }
  return absl::OkStatus();
}

struct ExampleFlags {
  std::string name = "table1";
  bool json = false;
};

int RunExample(const ExampleFlags& flags) {
  const auto text = ExampleSweep(flags.name);
  if (!text.ok()) return FailUsage("sweep example", text.status());
  if (!flags.json) {
    std::cout << *text;
    return kExitOk;
  }
  const auto json = ParseCommentedJson(*text, "sweep example");
  if (!json.ok()) return Fail("sweep example", json.status());
  std::cout << json->dump(2) << "\n";
  return kExitOk;
}

void AddSamplingFlags(CLI::App* sub, RunFlags& f) {
  sub->add_option("--samples", f.samples, "samples an item")->check(WholeNumber(1, INT32_MAX));
  sub->add_option("--temperature", f.temperature, "0 = greedy; else 0.0001 to 1000")->check(RealNumber(0, 1000));
  sub->add_option("--top-p", f.top_p, "nucleus, in (0, 1]")->check(RealNumber(0, 1));
  sub->add_option("--top-k", f.top_k, "0 = off")->check(WholeNumber(0, INT32_MAX));
  sub->add_option("--seed", f.seed, "of the random streams")->check(WholeNumber(0, UINT64_MAX));
  sub->add_option("--limit", f.limit, "first N items only")->check(WholeNumber(1, INT64_MAX));
  sub->add_option("--fewshot", f.fewshot, "exemplars in the prompt")->check(WholeNumber(0, INT64_MAX));
  sub->add_option("--max-new-tokens", f.max_new_tokens, "generation limit in tokens")->check(WholeNumber(1, INT32_MAX));
  sub->add_option("--metric", f.metrics, "repeatable; default: the benchmark's");
  sub->add_option("--tag", f.tag, "free text that makes this another sweep");
}

void AddSequentialGate(CLI::App& run, RunFlags& flags) {
  CLI::Option* gate = run.add_option("--sequential-gate", flags.gate.baseline,
                                     "a baseline (file of export --baseline, or SWEEP/MODEL): items run in a random "
                                     "order until the verdict is certain; exit as gate");
  const size_t before = run.get_options().size();
  AddGateFlags(run, flags.gate);
  const std::vector<CLI::Option*> options = run.get_options();
  for (size_t i = before; i < options.size(); i++) options[i]->needs(gate);
}

}  // namespace

void AddRun(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* run = app.add_subcommand("run", "Score checkpoints here: local workers, one database file, a table");
  run->add_option("--model", flags->models, "checkpoint directory, repeatable");
  run->add_option("--bench", flags->benches, "benchmark spec, repeatable: gsm8k, \"gsm8k?fewshot=8\", gsm8k_demo");
  run->add_option("--sweep", flags->sweep_file, "sweep.json instead of --model and --bench; - = stdin");
  AddSamplingFlags(run, *flags);
  run->add_flag("--dry-run", flags->dry_run,
                "print jobs, items, prompt tokens and an estimate of all tokens; run nothing");
  run->add_option("--workers", flags->workers, "worker processes; default 1")->check(WholeNumber(1, 1024));
  run->add_option("--threads", flags->threads, "threads of each worker; 0 = cores / workers")
      ->check(WholeNumber(0, 1024));
  run->add_option("--device", flags->device, "auto: the CPU; cpu, cuda, cuda:N, emulated")
      ->check(DeviceName(/*or_auto=*/true));
  run->add_option("--numerics", flags->numerics, "exact, fast, torch; fake for iha_fake checkpoints")
      ->check(CLI::IsMember({"exact", "fast", "torch", "fake"}));
  run->add_option("--kv-dtype", flags->kv_dtype, "f32 or bf16 (another numerics id)")
      ->check(CLI::IsMember({"f32", "bf16"}));
  run->add_option("--kv-memory-mib", flags->kv_memory_mib,
                  "KV cache of each worker; 0 = together a quarter of what is free")
      ->check(WholeNumber(0, kMaxMib));
  run->add_option("--max-batch", flags->max_batch, "sequences in a step; 0 = default")->check(WholeNumber(0, 1 << 20));
  run->add_option("--models-root", flags->models_root, "folder of the models that --sweep names");
  run->add_option("--data-root", command.data_root, "benchmark data");
  run->add_option("--cache-dir", flags->cache_dir,
                  "where rows of RULER are kept; default $XDG_CACHE_HOME/iha-eval or ~/.cache/iha-eval");
  run->add_option("--graders", command.graders, "folder with the libraries of math.minerva and math.prm800k");
  run->add_option("--db", flags->db, "database file; default OUT/iha-eval.db");
  run->add_option("--out", flags->out, "folder for tables and samples; default iha-eval-out");
  run->add_option("--layout", flags->layout, "generic, table1, table2")
      ->check(CLI::IsMember({"generic", "table1", "table2"}));
  run->add_option("--baseline", flags->baseline, "model that deltas are against; default the first");
  AddSequentialGate(*run, *flags);
  run->add_flag("--json", flags->json, "print table.json instead of Markdown; with --sequential-gate the verdict");
  run->add_flag("--quiet", flags->quiet, "no progress");
  run->add_flag("--profile", flags->profile,
                "where the workers' time went, by operation, beside what the machine can do: on stderr at the end");
  run->add_option("--fault", flags->fault, "arm fault points, for crash tests")->group("");
  run->add_option("--worker-fault", flags->worker_fault, "the same in each worker's first life")->group("");
  run->footer("Example:\n  iha-eval run --model SmolLM2-135M-Instruct --bench gsm8k --limit 20 --out out");
  run->callback([run, flags, &command] {
    const absl::Status status = CheckNotBoth(*run, *flags);
    command.exit_code = status.ok() ? Run(command, *flags) : FailUsage("run", status);
  });

  CLI::App* sweep = app.add_subcommand("sweep", "Sweep files");
  sweep->require_subcommand(1);
  sweep->footer("Example:\n  iha-eval sweep example table1 > sweep.json");
  const auto wanted = std::make_shared<ExampleFlags>();
  CLI::App* example = sweep->add_subcommand("example", "Print a commented sweep.json with the paper's settings");
  example->add_option("name", wanted->name, "table1, table2, ruler");
  example->add_flag("--json", wanted->json, "strict JSON: without the comments");
  example->footer("Example:\n  iha-eval sweep example table1 > sweep.json");
  example->callback([wanted, &command] { command.exit_code = RunExample(*wanted); });
}

}  // namespace iha::cli
