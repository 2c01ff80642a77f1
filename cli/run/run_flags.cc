#include "cli/run/run_flags.h"

#include <filesystem>
#include <set>

#include "benchmarks/benchmark.h"
#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"

namespace iha::cli {
namespace {

namespace fs = std::filesystem;

std::string LastComponents(const fs::path& path, int count) {
  fs::path name;
  fs::path rest = path;
  for (int i = 0; i < count && rest.has_filename(); i++) {
    name = name.empty() ? rest.filename() : rest.filename() / name;
    rest = rest.parent_path();
  }
  return name.string();
}

absl::StatusOr<SweepEntry> EntryOf(const RunFlags& flags, const std::string& bench, BenchmarkRef ref) {
  SweepEntry entry;
  entry.benchmark = std::move(ref);
  const absl::StatusOr<benchmarks::BenchmarkInfo> info = benchmarks::FindBenchmark(entry.benchmark.name);
  // A wrong name is a mistake of the command line.
  if (!info.ok()) return InvalidArgument("--bench: {}", std::string(info.status().message()));
  entry.sampling = info->default_sampling;
  if (const auto limit = entry.benchmark.options.find("limit"); limit != entry.benchmark.options.end()) {
    return InvalidArgument("--bench {}: limit is no option of a benchmark; give --limit {}", bench, limit->second);
  }
  // Flags first, then what the spec itself says: it is the nearer one.
  SamplingParams& s = entry.sampling;
  if (flags.samples.has_value()) s.samples = *flags.samples;
  if (flags.temperature.has_value()) s.temperature = *flags.temperature;
  if (flags.top_p.has_value()) s.top_p = *flags.top_p;
  if (flags.top_k.has_value()) s.top_k = *flags.top_k;
  if (flags.seed.has_value()) s.seed = *flags.seed;
  if (flags.max_new_tokens.has_value()) s.max_new_tokens = *flags.max_new_tokens;
  if (flags.fewshot.has_value()) entry.benchmark.options["fewshot"] = std::to_string(*flags.fewshot);
  IHA_RETURN_IF_ERROR(Annotate(benchmarks::TakeSampling(entry.benchmark, s), "--bench"));
  entry.limit = flags.limit;
  entry.metrics = flags.metrics;
  return entry;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ModelNames(const std::vector<std::string>& paths) {
  std::vector<fs::path> absolute;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      return NotFound("--model {}: not a directory; expected a checkpoint folder with config.json", path);
    }
    const fs::path full = fs::weakly_canonical(path, error);
    if (std::find(absolute.begin(), absolute.end(), full) != absolute.end()) {
      return InvalidArgument("--model {}: given twice", path);
    }
    absolute.push_back(full);
  }
  std::map<std::string, std::string> names;
  for (const fs::path& path : absolute) {
    int count = 1;
    const auto clashes = [&](const fs::path& other) {
      return other != path && LastComponents(other, count) == LastComponents(path, count);
    };
    while (std::any_of(absolute.begin(), absolute.end(), clashes)) count++;
    names[LastComponents(path, count)] = path.string();
  }
  return names;
}

std::string CudaDeviceOf(const RunFlags& flags) {
  return CudaIndexOf(flags.device).has_value() ? flags.device : "cuda";
}

absl::StatusOr<NumericsSpec> NumericsOf(const RunFlags& flags) {
  const bool cuda = CudaIndexOf(flags.device).has_value();
  NumericsSpec numerics;
  numerics.kv_dtype = flags.kv_dtype;
  if (flags.numerics == "fake") {
    numerics.backend = "fake";
    return numerics;
  }
  if (flags.numerics == "torch") {
    if (flags.device == "emulated") return Unavailable("--numerics torch: --device emulated; expected cpu or cuda");
    numerics.backend = cuda ? kTorchCudaHere : "torch";
    return numerics;
  }
  if (flags.device == kEmulatedDevice || cuda) {
    const bool fast = flags.numerics == "fast";
    if (cuda) return CudaNumerics(fast ? kCudaFastHere : kCudaExactHere);
    return fast ? EmulatedFastNumerics() : EmulatedNumerics();
  }
  if (flags.numerics == "fast") return NoFastNumericsOn(flags.device == "auto" ? "auto (the CPU)" : flags.device);
  return numerics;
}

absl::StatusOr<SweepSpec> SpecOf(const RunFlags& flags, const std::vector<std::string>& names) {
  SweepSpec spec;
  for (const std::string& name : names) spec.models.push_back({.name = name, .weights_digest = ""});
  for (const std::string& bench : flags.benches) {
    const absl::StatusOr<BenchmarkRef> ref = benchmarks::ParseBenchmarkRef(bench);
    if (!ref.ok()) return Annotate(ref.status(), "--bench");
    const absl::StatusOr<std::vector<BenchmarkRef>> cells = benchmarks::ExpandBenchmark(*ref);
    if (!cells.ok()) return Annotate(cells.status(), "--bench");
    for (const BenchmarkRef& cell : *cells) {
      IHA_ASSIGN_OR_RETURN(SweepEntry entry, EntryOf(flags, bench, cell));
      spec.entries.push_back(std::move(entry));
    }
  }
  IHA_ASSIGN_OR_RETURN(spec.numerics, NumericsOf(flags));
  spec.run_tag = flags.tag;
  return spec;
}

}  // namespace iha::cli
