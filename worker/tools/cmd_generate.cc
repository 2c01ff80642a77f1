// generate: sample from a checkpoint.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "common/clock.h"
#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/sampling_limits.h"
#include "common/status_macros.h"
#include "model/machine_peak.h"
#include "worker/engine/kv_budget.h"
#include "worker/engine/telemetry.h"
#include "worker/engine/tokenizer_decoder.h"
#include "worker/tools/line_generator.h"
#include "worker/tools/tool.h"

namespace iha::tools {
namespace {

struct Flags {
  ModelFlags model;
  std::string folder;
  std::string file = "-";
  GenerateOptions generate;
  int32_t logprobs = -1;  // -1 = off
  int64_t kv_memory_mib = 0;
  int32_t max_batch = 16;
  bool stats = false;
  bool profile = false;
};

// NaN is never in range.
CLI::Validator Real(const std::string& expected, bool (*valid)(double)) {
  return CLI::Validator(
      [expected, valid](std::string& text) {
        double value = 0;
        const bool ok = CLI::detail::lexical_cast(text, value) && valid(value);
        return ok ? std::string() : fmt::format("found {}; expected {}", text, expected);
      },
      "NUMBER");
}

absl::StatusOr<int64_t> KvBytes(const Flags& flags, const model::ModelInfo& info) {
  if (flags.kv_memory_mib == 0) return engine::DefaultKvBytes();
  const int64_t block_bytes = info.kv_block_bytes * (static_cast<int64_t>(info.kv_windows.size()) + info.spare_blocks);
  const int64_t bytes = flags.kv_memory_mib << 20;
  if (bytes < block_bytes) {
    return InvalidArgument("--kv-memory-mib {}: {} tokens of this checkpoint need {} bytes; give at least {}",
                           flags.kv_memory_mib, model::kKvBlockTokens, block_bytes,
                           (block_bytes + (1 << 20) - 1) >> 20);
  }
  return bytes;
}

// What samples of a checkpoint without a tokenizer say: ids alone.
class NoText final : public engine::TextDecoder {
 public:
  std::string Push(int32_t) override { return ""; }
  std::string Finish() override { return ""; }
};

engine::TextDecoderFactory DecodersOf(std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  if (tokenizer == nullptr) return [] { return std::make_unique<NoText>(); };
  return [tokenizer = std::move(tokenizer)] { return engine::MakeTokenizerDecoder(tokenizer, true); };
}

// Null for a checkpoint that has none, which ids can do without.
absl::StatusOr<std::shared_ptr<const tokenizer::Tokenizer>> TokenizerOf(const Flags& flags) {
  auto tokenizer = tokenizer::Tokenizer::Load(flags.folder);
  if (tokenizer.ok()) return *std::move(tokenizer);
  if (!absl::IsNotFound(tokenizer.status())) return tokenizer.status();
  if (!flags.generate.stops.empty()) return Annotate(tokenizer.status(), "--stop needs text");
  return nullptr;
}

void PrintStats(const Tool& tool, const engine::EngineCounters& counters, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  const double steps = std::max<double>(1, static_cast<double>(counters.steps));
  std::cerr << fmt::format(
      "{} generate: {} prompt tokens, {} generated in {:.2f} s ({:.1f} tokens/s), {:.1f} sequences a step, "
      "{} computed positions, {} preemptions\n",
      tool.program, counters.prompt_tokens, counters.generated_tokens, seconds,
      static_cast<double>(counters.generated_tokens) / seconds, static_cast<double>(counters.step_sequences) / steps,
      counters.computed_tokens, counters.scheduler.preemptions);
}

// The roof is this machine's: it says nothing about another device.
absl::Status PrintProfile(int threads, bool on_device, const engine::EngineCounters& counters) {
  std::optional<MachinePeak> peak;
  const EngineTelemetry telemetry = engine::TelemetryOf(counters);
  if (!on_device && !telemetry.operations.empty()) {
    IHA_ASSIGN_OR_RETURN(peak, model::MeasureMachinePeak(threads));
  }
  std::cerr << OperationTable(telemetry, peak) << TelemetrySummary(telemetry, peak);
  return absl::OkStatus();
}

absl::StatusOr<int> Run(const Tool& tool, const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(LineReader in, LineReader::Open(flags.file));
  IHA_ASSIGN_OR_RETURN(model::OpenOptions open, ToOpenOptions(flags.model));
  RealClock clock;
  if (flags.profile) open.clock = &clock;
  open.profile_device = flags.profile;
  IHA_ASSIGN_OR_RETURN(const auto tokenizer, TokenizerOf(flags));
  IHA_ASSIGN_OR_RETURN(model::OpenedBackend model, model::OpenBackend(flags.folder, open));
  engine::EngineOptions options;
  IHA_ASSIGN_OR_RETURN(options.kv_bytes, KvBytes(flags, model.backend->info()));
  options.device_sharers = flags.kv_memory_mib == 0 ? 1 : 0;
  options.scheduler.max_sequences = flags.max_batch;
  options.clock = &clock;
  IHA_ASSIGN_OR_RETURN(const auto engine,
                       engine::Engine::Create(std::move(model.backend), DecodersOf(tokenizer), options));
  engine->Start();

  GenerateOptions generate = flags.generate;
  generate.eos = model.eos;
  generate.name = tool.program + " generate";
  if (flags.logprobs >= 0) generate.logprobs = flags.logprobs;
  // Deep enough to keep the batch full while the oldest line is a long one.
  generate.lines_ahead = std::max<size_t>(64, 4 * static_cast<size_t>(flags.max_batch));
  const absl::Duration begin = clock.Elapsed();
  const int code = LineGenerator(tokenizer.get(), *engine, std::move(generate), std::cout, std::cerr).Run(in);
  if (flags.stats) PrintStats(tool, engine->counters(), clock.Elapsed() - begin);
  if (flags.profile) IHA_RETURN_IF_ERROR(PrintProfile(open.threads, open.numerics.on_device(), engine->counters()));
  return code;
}

void AddSamplingFlags(CLI::App& app, GenerateOptions& generate) {
  SamplingParams& sampling = generate.sampling;
  sampling.max_new_tokens = 64;
  app.add_option("--max-new-tokens", sampling.max_new_tokens, "limit of a sample")
      ->check(WholeNumber(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--temperature", sampling.temperature, "0 = the likeliest token")
      ->check(Real("0, or 0.0001 and more, below 1e30",
                   [](double x) { return x == 0 || (x >= kMinTemperature && x < 1e30); }))
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "the fewest likeliest tokens that together have this probability")
      ->check(Real("above 0, at most 1", [](double x) { return x > 0 && x <= 1; }))
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "only the K likeliest tokens; 0 = off")
      ->check(WholeNumber(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--n", sampling.samples, "samples of each line")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--seed", sampling.seed, "of the random stream, with sample index and prompt")
      ->check(WholeNumber(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--stop", generate.stops, "text that ends a sample and is cut off; may be given again")
      ->allow_extra_args(false)
      ->check([](const std::string& text) { return text.empty() ? "an empty stop string" : ""; });
  app.add_flag("--ignore-eos", generate.ignore_eos, "end-of-text tokens are drawn like any other");
}

}  // namespace

void AddGenerate(CLI::App& app, Tool& tool) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* sub = app.add_subcommand("generate", "Sample: JSON Lines {\"prompt\"} or {\"ids\"} to {\"samples\"}");
  sub->add_option("--model", flags->folder, "checkpoint directory")->required();
  AddSamplingFlags(*sub, flags->generate);
  sub->add_option("--logprobs", flags->logprobs, "log-probability of each token, and of the K likeliest")
      ->check(WholeNumber(0, 1 << 20));
  AddModelFlags(*sub, flags->model);
  sub->add_option("--kv-memory-mib", flags->kv_memory_mib,
                  "KV cache budget; 0 = a quarter of the free memory, host's or GPU's")
      ->check(WholeNumber(0, uint64_t{1} << 30))
      ->capture_default_str();
  sub->add_option("--max-batch", flags->max_batch, "sequences in a step; changes no result")
      ->check(WholeNumber(1, 1 << 16))
      ->capture_default_str();
  sub->add_flag("--stats", flags->stats, "counts and speed on stderr at the end");
  sub->add_flag("--profile", flags->profile, "time by operation, beside what the machine can do, on stderr at the end");
  sub->add_flag("--json")->description("no effect: prints JSON Lines anyway");
  sub->add_option("file", flags->file, "JSON Lines file; - = stdin")->capture_default_str();
  sub->footer(
      "Example:\n  echo '{\"prompt\":\"2 + 2 =\"}' | iha-eval generate --model DIR --max-new-tokens 8 --n 4 "
      "--temperature 0.6");
  sub->callback([flags, &tool] {
    const absl::StatusOr<int> code = Run(tool, *flags);
    tool.exit_code = code.ok() ? *code : Fail(tool, "generate", code.status());
  });
}

}  // namespace iha::tools
