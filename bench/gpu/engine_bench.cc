// engine_bench: whole models through the engine on a device: prompt and decode tokens a second for batches of 1, 16
// and 64, a plain checkpoint and one of the IHA paper's schedule, weights random. "skipped: no GPU" and exit 0 where
// there is none; `engine_bench emulated` runs small ones under the emulator, to show that it works.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <numeric>

#include "common/clock.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/safetensors.h"
#include "model/open_model.h"
#include "worker/engine/engine.h"

namespace iha {
namespace {

struct Size {
  int hidden, inner, layers, heads, head_dim, vocabulary;
  size_t prompt;
  int32_t generated;
  std::vector<size_t> batches;
};
const Size kGpu = {2048, 5632, 15, 16, 128, 32000, 512, 64, {1, 16, 64}};
const Size kSmall = {32, 64, 5, 2, 16, 64, 20, 3, {1, 3}};

constexpr char kGlobal[] = R"({"kind": "global", "rope_pairing": "half", "qk_norm": "none"})";
constexpr char kLocalIha[] = R"({"kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo",
    "collapse": "per_head", "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half",
    "window": {"unit": "token", "size": 512}, "qk_norm": "none"})";

// Four local layers of `kind`, then one that sees all, and so on.
std::string ConfigOf(const Size& size, const std::string& kind) {
  std::string attention;
  for (int layer = 0; layer < size.layers; layer++) {
    attention += (layer == 0 ? "" : ", ") + (layer % 5 == 4 ? std::string(kGlobal) : kind);
  }
  return fmt::format(R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": {}, "intermediate_size": {},
      "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {},
      "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
      "iha_eval": {{"version": 1, "mlp": "gated", "pattern": "per_layer", "attention": [{}]}}}})",
                     size.vocabulary, size.hidden, size.inner, size.layers, size.heads, size.heads, size.head_dim,
                     attention);
}

// bf16 of both signs, about 2^-6 in size; norms are 1.
absl::Status WriteCheckpoint(const std::string& folder, const std::string& config_json) {
  IHA_ASSIGN_OR_RETURN(const checkpoint::ModelConfig config, checkpoint::ParseModelConfig(config_json));
  IHA_RETURN_IF_ERROR(WriteFileAtomic(folder + "/config.json", config_json));
  IHA_RETURN_IF_ERROR(WriteFileAtomic(folder + "/generation_config.json", "{}"));
  std::vector<std::vector<uint16_t>> values;
  std::vector<checkpoint::NamedTensor> tensors;
  uint64_t state = 1;
  for (const checkpoint::TensorSpec& spec : checkpoint::RequiredTensors(config)) {
    const auto n = std::accumulate(spec.shape.begin(), spec.shape.end(), int64_t{1}, std::multiplies<>());
    const bool norm = spec.name.find("norm") != std::string::npos;
    std::vector<uint16_t>& tensor = values.emplace_back(static_cast<size_t>(n), uint16_t{0x3F80});
    for (uint16_t& v : tensor) {
      if (norm) break;
      state = state * 6364136223846793005u + 1442695040888963407u;
      v = static_cast<uint16_t>(0x3C00 | (state >> 63 << 15) | (state >> 40 & 0xFF));
    }
    tensors.push_back(
        {.plan = {.name = spec.name, .dtype = checkpoint::DType::kBF16, .shape = spec.shape}, .bytes = {}});
  }
  for (size_t i = 0; i < tensors.size(); i++) tensors[i].bytes = std::as_bytes(std::span<const uint16_t>(values[i]));
  return checkpoint::WriteSafetensors(folder + "/model.safetensors", tensors);
}

class NoText final : public engine::TextDecoder {
 public:
  std::string Push(int32_t /*id*/) override { return ""; }
  std::string Finish() override { return ""; }
};

absl::Status Measure(const char* name, const std::string& folder, const model::OpenOptions& open, const Size& size) {
  IHA_ASSIGN_OR_RETURN(model::OpenedBackend opened, model::OpenBackend(folder, open));
  RealClock clock;
  engine::EngineOptions options;
  options.device_sharers = 1;
  options.clock = &clock;
  const auto decoders = [] { return std::make_unique<NoText>(); };
  IHA_ASSIGN_OR_RETURN(const auto engine, engine::Engine::Create(std::move(opened.backend), decoders, options));
  engine::EngineCounters before;
  uint32_t seed = 0;
  for (const size_t batch : size.batches) {
    for (int run = 0; run < 2; run++) {  // the first one warms up
      before = engine->counters();
      for (size_t i = 0; i < batch; i++) {
        engine::GenerationRequest request;
        for (size_t t = 0; t < size.prompt; t++) {
          seed = seed * 1664525u + 1013904223u;
          request.prompt.push_back(static_cast<int32_t>((seed >> 8) % static_cast<uint32_t>(size.vocabulary)));
        }
        request.sampling.max_new_tokens = size.generated;
        request.sampling.temperature = 0.8;
        request.sampling.top_p = 0.95;
        request.sample_index = static_cast<int32_t>(i);
        IHA_RETURN_IF_ERROR(engine->Submit(std::move(request)).status());
      }
      while (true) {
        IHA_ASSIGN_OR_RETURN(const bool worked, engine->Step());
        while (const auto result = engine->TryPopResult()) IHA_RETURN_IF_ERROR(result->status);
        if (!worked) break;
      }
    }
    const engine::EngineCounters after = engine->counters();
    const double prefill = absl::ToDoubleSeconds(after.prefill_time - before.prefill_time);
    const double decode = absl::ToDoubleSeconds(after.forward_time - before.forward_time) - prefill;
    // The first token of each comes from its prompt.
    const auto decoded =
        static_cast<double>(after.generated_tokens - before.generated_tokens) - static_cast<double>(batch);
    fmt::print("{:6} batch {:3}: prompts {:9.0f} tokens/s, decode {:8.0f} tokens/s, {:.2f} ms a step\n", name, batch,
               static_cast<double>(after.prefill_tokens - before.prefill_tokens) / prefill, decoded / decode,
               1e3 * decode / (size.generated - 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<NumericsSpec> NumericsFor(bool emulated, bool fast) {
  if (emulated) return fast ? EmulatedFastNumerics() : EmulatedNumerics();
  IHA_ASSIGN_OR_RETURN(const std::string backend,
                       fast ? model::CudaFastBackendOn("cuda") : model::CudaBackendOn("cuda"));
  return CudaNumerics(backend);
}

absl::Status Run(const NumericsSpec& numerics, const Size& size) {
  model::OpenOptions open;
  open.device = numerics.emulated() ? kEmulatedDevice : "cuda";
  open.numerics = numerics;
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("engine_bench.{}", getpid())).string();
  absl::Status status;
  for (const auto& [name, kind] : {std::pair<const char*, std::string>{"global", kGlobal}, {"iha", kLocalIha}}) {
    std::filesystem::create_directories(folder);
    status = WriteCheckpoint(folder, ConfigOf(size, kind));
    if (status.ok()) status = Measure(name, folder, open, size);
    std::filesystem::remove_all(folder);
    if (!status.ok()) break;
  }
  return status;
}

}  // namespace
}  // namespace iha

// [emulated] [fast]
int main(int argc, char** argv) {
  const auto given = [&](std::string_view word) { return std::find(argv + 1, argv + argc, word) != argv + argc; };
  const bool emulated = given(iha::kEmulatedDevice);
  const auto numerics = iha::NumericsFor(emulated, given("fast"));
  if (!numerics.ok() && absl::IsUnavailable(numerics.status())) {
    fmt::print("skipped: {}\n", std::string(numerics.status().message()));
    return 0;
  }
  const absl::Status status =
      numerics.ok() ? iha::Run(*numerics, emulated ? iha::kSmall : iha::kGpu) : numerics.status();
  if (!status.ok()) fmt::print(stderr, "engine_bench: {}\n", std::string(status.message()));
  return status.ok() ? 0 : 1;
}
