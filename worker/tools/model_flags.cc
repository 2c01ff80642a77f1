#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"
#include "worker/tools/tool.h"

namespace iha::tools {

void AddModelFlags(CLI::App& app, ModelFlags& flags) {
  app.add_option("--device", flags.device,
                 "cpu; cuda, cuda:N: a GPU (bf16); emulated: its kernels, run by an emulator (slow); with --numerics "
                 "torch: cpu, cuda, cuda:N")
      ->check(DeviceName())
      ->capture_default_str();
  app.add_option("--numerics", flags.numerics,
                 "exact, fast (cuda and emulated: sums in any order), torch (LibTorch), or fake for checkpoints of "
                 "type iha_fake")
      ->check(CLI::IsMember({"exact", "fast", "torch", "fake"}))
      ->capture_default_str();
  app.add_option("--kv-dtype", flags.kv_dtype,
                 "type of the KV cache: f32 or bf16 (other results); cuda and emulated: bf16")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "0 = all cores; changes no result")
      ->check(WholeNumber(0, 4096))
      ->capture_default_str();
}

absl::StatusOr<model::OpenOptions> ToOpenOptions(const ModelFlags& flags) {
  const bool emulated = flags.device == kEmulatedDevice, fast = flags.numerics == "fast";
  if (fast && flags.device == "cpu") return NoFastNumericsOn("cpu");
  if (emulated && flags.numerics != "exact" && !fast) {
    return Unavailable("--numerics {}: not available on --device emulated; use --numerics exact", flags.numerics);
  }
  const bool cuda = !emulated && flags.device != "cpu" && flags.numerics != "torch";
  if (cuda && flags.numerics != "exact" && !fast) {
    return Unavailable("--numerics {}: not available on --device {}; use --numerics exact", flags.numerics,
                       flags.device);
  }
  model::OpenOptions options;
  options.threads =
      flags.threads > 0 ? flags.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (emulated) {
    options.numerics = fast ? EmulatedFastNumerics() : EmulatedNumerics();
    options.device = flags.device;
  } else if (cuda) {
    IHA_ASSIGN_OR_RETURN(const std::string backend,
                         fast ? model::CudaFastBackendOn(flags.device) : model::CudaBackendOn(flags.device));
    options.numerics = CudaNumerics(backend);
    options.device = flags.device;
  } else if (flags.numerics == "fake") {
    options.numerics.backend = "fake";
  } else {
    options.numerics.kv_dtype = flags.kv_dtype;
    options.device = flags.device;
    if (flags.numerics == "torch") {
      IHA_ASSIGN_OR_RETURN(options.numerics.backend, model::TorchBackendOn(flags.device));
    }
  }
  return options;
}

}  // namespace iha::tools
