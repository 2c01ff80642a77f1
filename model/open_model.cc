#include "model/open_model.h"

#include "common/canonical.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/runnable_numerics.h"
#include "common/status_macros.h"
#include "model/backend_module.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/model_folder.h"
#include "model/device/emulated_backend.h"
#include "model/fake_model.h"
#include "model/transformer/cpu_backend.h"

namespace iha::model {
namespace {

absl::StatusOr<OpenedBackend> OpenFake(const std::string& folder, int64_t positions = 0) {
  OpenedBackend opened;
  IHA_ASSIGN_OR_RETURN(opened.backend, FakeModel::Load(folder, positions));
  IHA_ASSIGN_OR_RETURN(const std::string text,
                       ReadRegularFile(folder + "/generation_config.json", checkpoint::kMaxConfigBytes));
  IHA_ASSIGN_OR_RETURN(const checkpoint::GenerationConfig generation, checkpoint::ParseGenerationConfig(text));
  opened.eos = generation.eos_token_ids;
  return opened;
}

// Of a GPU, as a module of our kernels says it.
absl::StatusOr<int> ArchitectureBy(const char* module, const std::string& device) {
  if (!CudaIndexOf(device).has_value()) {
    return Unavailable("--device {}: no such device; expected cpu, emulated, cuda or cuda:N", device);
  }
  const absl::StatusOr<const BackendModule*> loaded = LoadBackendModule(module);
  if (!loaded.ok()) return Annotate(loaded.status(), "--device " + device);
  return (*loaded)->architecture(device);
}

}  // namespace

Digest TextDigest(const tokenizer::Tokenizer& tokenizer, const std::vector<int32_t>& eos) {
  CanonicalWriter w("iha.text", 1);
  w.Bytes(tokenizer.digest()).Tokens(eos);
  return w.Hash();
}

absl::StatusOr<OpenedBackend> OpenBackend(const std::string& folder, const OpenOptions& options) {
  const bool fake = checkpoint::IsFakeFolder(folder);
  if (fake != (options.numerics.backend == "fake")) {
    return FailedPrecondition("{}: numerics {} cannot run a {} checkpoint; use {}", folder, options.numerics.Id(),
                              fake ? "fake" : "real", fake ? "fake" : "exact");
  }
  if (fake) return OpenFake(folder, options.positions);
  IHA_ASSIGN_OR_RETURN(checkpoint::Checkpoint checkpoint, checkpoint::Checkpoint::Open(folder));
  IHA_RETURN_IF_ERROR(checkpoint.ExtendContext(options.positions));
  OpenedBackend opened;
  opened.eos = checkpoint.generation().eos_token_ids;
  if (options.numerics.torch() || options.numerics.cuda()) {
    const char* const name = options.numerics.torch() ? "torch" : options.numerics.fast() ? "cuda_fast" : "cuda";
    IHA_ASSIGN_OR_RETURN(const BackendModule* module, LoadBackendModule(name));
    IHA_ASSIGN_OR_RETURN(opened.backend, module->open({.checkpoint = &checkpoint,
                                                       .threads = options.threads,
                                                       .device = options.device,
                                                       .numerics = options.numerics,
                                                       .profile = options.profile_device}));
    return opened;
  }
  if (options.numerics.emulated()) {
    const Clock* const clock = options.profile_device ? options.clock : nullptr;
    IHA_ASSIGN_OR_RETURN(opened.backend, OpenEmulatedBackend(checkpoint, options.numerics, {.clock = clock}));
    return opened;
  }
  IHA_ASSIGN_OR_RETURN(
      opened.backend,
      OpenCpuBackend(checkpoint, {.threads = options.threads, .numerics = options.numerics, .clock = options.clock}));
  return opened;
}

absl::StatusOr<OpenedModel> OpenModel(const std::string& folder, const OpenOptions& options) {
  OpenedModel model;
  IHA_ASSIGN_OR_RETURN(model.tokenizer, tokenizer::Tokenizer::Load(folder));
  IHA_ASSIGN_OR_RETURN(OpenedBackend opened, OpenBackend(folder, options));
  model.backend = std::move(opened.backend);
  model.eos = std::move(opened.eos);
  return model;
}

absl::StatusOr<std::string> TorchBackendOn(const std::string& device) {
  if (device == "cpu") return TorchBackendName(0);
  const absl::StatusOr<const BackendModule*> torch = LoadBackendModule("torch");
  if (!torch.ok()) return Annotate(torch.status(), "--device " + device);
  IHA_ASSIGN_OR_RETURN(const int architecture, (*torch)->architecture(device));
  return TorchBackendName(architecture);
}

absl::StatusOr<std::string> CudaBackendOn(const std::string& device) {
  IHA_ASSIGN_OR_RETURN(const int architecture, ArchitectureBy("cuda", device));
  return CudaExactName(architecture);
}

absl::StatusOr<std::string> CudaFastBackendOn(const std::string& device) {
  IHA_ASSIGN_OR_RETURN(const int architecture, ArchitectureBy("cuda_fast", device));
  return CudaFastName(architecture);
}

absl::StatusOr<std::vector<NumericsSpec>> NumericsOn(const std::string& device) {
  if (device == kEmulatedDevice) return RunnableNumerics(kEmulatedBackend);
  if (device == "cpu") return RunnableNumerics(TorchBackendName(0));
  // Either may be absent: LibTorch's CUDA part is gigabytes, our kernels are of some architectures.
  const absl::StatusOr<std::string> cuda = CudaBackendOn(device);
  std::vector<NumericsSpec> specs;
  if (cuda.ok()) specs = RunnableNumerics(*cuda);
  if (cuda.ok()) {
    if (const auto fast = CudaFastBackendOn(device); fast.ok()) specs.push_back(CudaNumerics(*fast));
  }
  if (CudaIndexOf(device).has_value()) {
    if (const auto torch = TorchBackendOn(device); torch.ok()) {
      const std::vector<NumericsSpec> more = RunnableNumerics(*torch);
      specs.insert(specs.end(), more.begin(), more.end());
    }
  }
  if (specs.empty()) return cuda.status();
  return specs;
}

absl::StatusOr<ModelIdentity> IdentifyModel(const std::string& folder) {
  ModelIdentity identity;
  IHA_ASSIGN_OR_RETURN(const auto tokenizer, tokenizer::Tokenizer::Load(folder));
  if (checkpoint::IsFakeFolder(folder)) {
    IHA_ASSIGN_OR_RETURN(const OpenedBackend opened, OpenFake(folder));
    identity.tokenizer = TextDigest(*tokenizer, opened.eos);
    identity.weights = opened.backend->info().weights;
    identity.context_tokens = opened.backend->info().context_tokens;
    return identity;
  }
  IHA_ASSIGN_OR_RETURN(const checkpoint::Checkpoint checkpoint, checkpoint::Checkpoint::Open(folder));
  identity.tokenizer = TextDigest(*tokenizer, checkpoint.generation().eos_token_ids);
  identity.weights = checkpoint.WeightsDigest();
  identity.context_tokens = checkpoint.config().context_tokens;
  return identity;
}

}  // namespace iha::model
