// run_flags.h: what `iha-eval run` was asked for, and the sweep that it stands for.
//
// Pure but for ModelNames, which looks at the given paths. Errors: InvalidArgument naming the flag.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/gate/gate_flags.h"
#include "common/eval_types.h"

namespace iha::cli {

struct RunFlags {
  std::vector<std::string> models;   // --model DIR
  std::vector<std::string> benches;  // --bench SPEC
  std::string sweep_file;            // --sweep FILE, instead of the two above
  // Sampling; absent = the benchmark's own.
  std::optional<int32_t> samples;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int32_t> top_k;
  std::optional<uint64_t> seed;
  std::optional<int64_t> limit;
  std::optional<int64_t> fewshot;
  std::optional<int32_t> max_new_tokens;
  std::vector<std::string> metrics;  // --metric NAME; empty = the benchmark's defaults
  std::string tag;                   // --tag TEXT forces a new sweep
  bool dry_run = false;
  // Execution; none of it enters the sweep's identity except numerics.
  int workers = 1;
  int threads = 0;  // of each worker; 0 = cores / workers
  std::string device = "auto";
  std::string numerics = "exact";  // exact | fast | torch | fake (a checkpoint of type iha_fake, for dry runs)
  std::string kv_dtype = "f32";
  int64_t kv_memory_mib = 0;  // 0 = the worker's default
  int32_t max_batch = 0;      // 0 = the worker's default
  std::string models_root;    // --models-root, with --sweep
  std::string cache_dir;      // for the workers; "" = their default
  std::string db;             // default OUT/iha-eval.db
  std::string out = "iha-eval-out";
  std::string layout = "generic";
  std::string baseline;
  GateFlags gate;  // gate.baseline: --sequential-gate; "" = the sweep runs to its end
  bool json = false;
  bool quiet = false;
  bool profile = false;
  std::string fault;         // fault points armed in this process, for crash tests
  std::string worker_fault;  // the same in each worker's first life
};

// Model name -> directory. A name is the directory's last component, or as many of its last components as make it
// unique among `paths`; it is what tables show. NotFound for a path that is no directory, InvalidArgument for one that
// is given twice.
absl::StatusOr<std::map<std::string, std::string>> ModelNames(const std::vector<std::string>& paths);

// The GPU of sweeps whose numerics run on one: that of --device, else "cuda".
std::string CudaDeviceOf(const RunFlags& flags);
// The backend that --device and --numerics ask for. Unavailable for a device that this build or host lacks.
absl::StatusOr<NumericsSpec> NumericsOf(const RunFlags& flags);

// The sweep of --model/--bench and the sampling flags; `names` in the order of --model.
absl::StatusOr<SweepSpec> SpecOf(const RunFlags& flags, const std::vector<std::string>& names);

}  // namespace iha::cli
