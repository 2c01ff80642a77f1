// One IHA layer, ours and the same equations as plain LibTorch operations (the torch backend), in turns in one process:
// a checkpoint of one layer of random weights, its MLP and vocabulary too small to matter, 2048 tokens as one prompt
// and then one token more, again and again. Run as `bench_iha_layer [REPETITIONS [THREADS]]`; prints rows of
// docs/performance.md: medians of wall milliseconds, CPU milliseconds in parentheses. The torch backend must be built
// (lib/iha-eval beside bin/).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/text.h"
#include "model/backend_module.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/safetensors.h"
#include "model/open_model.h"

namespace iha {
namespace {

constexpr int kTokens = 2048, kVocab = 64, kSteps = 16;  // kSteps: one-token steps of a measurement

struct Shape {
  int heads, head_dim, pseudo;
};

std::string ConfigOf(const Shape& shape) {
  return fmt::format(R"({{
    "model_type": "llama", "vocab_size": {}, "hidden_size": {}, "intermediate_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {}, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "max_position_embeddings": 4096, "tie_word_embeddings": true,
    "iha_eval": {{"version": 1, "mlp": "gated", "pattern": "repeat", "attention": [{{"rope_pairing": "half",
      "kind": "iha", "pseudo_heads": {}, "alpha_layout": "source_target_pseudo", "collapse": "per_head",
      "mask": "flat_causal", "rope_positions": "virtual", "window": null, "qk_norm": "none"}}]}}}})",
                     kVocab, shape.heads * shape.head_dim, shape.heads, shape.heads, shape.head_dim, shape.pseudo);
}

absl::Status WriteCheckpoint(const std::string& folder, const Shape& shape) {
  std::filesystem::create_directories(folder);
  const std::string text = ConfigOf(shape);
  std::ofstream(folder + "/config.json") << text;
  const auto config = checkpoint::ParseModelConfig(text);
  if (!config.ok()) return config.status();
  std::mt19937 bits(1);
  std::vector<std::vector<float>> values;
  std::vector<checkpoint::NamedTensor> tensors;
  const auto specs = checkpoint::RequiredTensors(*config);
  values.reserve(specs.size());
  for (const auto& [name, dims] : specs) {
    const auto count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    std::vector<float>& data = values.emplace_back(static_cast<size_t>(count));
    for (float& x : data) x = (static_cast<float>(bits()) * 0x1p-31F - 1.0F) * 0.05F;
    tensors.push_back({{name, checkpoint::DType::kF32, dims}, std::as_bytes(std::span(data))});
  }
  return checkpoint::WriteSafetensors(folder + "/model.safetensors", tensors);
}

struct Times {
  std::vector<double> wall, cpu;
};
double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A backend with room for one sequence.
class Runner {
 public:
  Runner(const std::string& folder, const NumericsSpec& numerics, int threads) {
    auto opened = model::OpenBackend(folder, {.threads = threads, .numerics = numerics});
    Check(opened.status());
    backend_ = std::move(opened->backend);
    blocks_.resize((kTokens + 1 + model::kKvBlockTokens - 1) / model::kKvBlockTokens);
    std::iota(blocks_.begin(), blocks_.end(), 0);
    Check(backend_->ReserveCache(static_cast<int32_t>(blocks_.size())));
    for (int i = 0; i <= kTokens; i++) tokens_.push_back(i % kVocab);
  }
  void Prefill() { Step(0, kTokens); }
  void Decode() {
    for (int i = 0; i < kSteps; i++) Step(kTokens, 1);
  }
  template <class F>
  void Measure(Times& times, double steps, const F& f) {
    const absl::Duration begin = clock_.Elapsed();
    const std::clock_t cpu = std::clock();
    f();
    times.cpu.push_back(static_cast<double>(std::clock() - cpu) * 1e3 / CLOCKS_PER_SEC / steps);
    times.wall.push_back(absl::ToDoubleMilliseconds(clock_.Elapsed() - begin) / steps);
  }
  [[nodiscard]] const std::vector<float>& logits() const { return logits_; }
  [[nodiscard]] const std::string& name() const { return backend_->info().numerics_id; }

 private:
  static void Check(const absl::Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "bench_iha_layer: %s\n", TerminalSafe(status.ToString()).c_str());
    std::exit(1);
  }
  void Step(int start, int count) {
    const int32_t row[] = {count - 1};
    const model::Segment segment{
        .tokens = std::span(tokens_).subspan(static_cast<size_t>(start), static_cast<size_t>(count)),
        .start = start,
        .blocks = blocks_,
        .logit_rows = row};
    logits_.resize(kVocab);
    Check(backend_->Forward({&segment, 1}, logits_, nullptr));
  }
  RealClock clock_;
  std::unique_ptr<model::Backend> backend_;
  std::vector<int32_t> tokens_, blocks_;
  std::vector<float> logits_;
};

// Both compute the same function, or a row would compare nothing.
void CheckSame(const Runner& a, const Runner& b) {
  for (size_t i = 0; i < a.logits().size(); i++) {
    if (std::abs(a.logits()[i] - b.logits()[i]) < 1e-3F) continue;
    std::fprintf(stderr, "bench_iha_layer: logit %zu: %g and %g\n", i, static_cast<double>(a.logits()[i]),
                 static_cast<double>(b.logits()[i]));
    std::exit(1);
  }
}

void Row(const Shape& shape, const char* what, const Times& ours, const Times& theirs, const std::string& rival,
         int threads) {
  std::printf(
      "| IHA layer, fp32, H = %d, P = %d, d = %d, %s | %.1f ms (%.1f ms) | %.1f ms (%.1f ms), %s; ours %.2fx as fast "
      "(by CPU %.2fx) | F | %d |\n",
      shape.heads, shape.pseudo, shape.head_dim, what, Median(ours.wall), Median(ours.cpu), Median(theirs.wall),
      Median(theirs.cpu), rival.c_str(), Median(theirs.wall) / Median(ours.wall), Median(theirs.cpu) / Median(ours.cpu),
      threads);
  std::fflush(stdout);
}

void Run(int repetitions, int threads) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("bench_iha_layer.{}", std::time(nullptr)));
  for (const Shape shape : {Shape{9, 64, 2}, Shape{9, 64, 4}, Shape{20, 128, 2}}) {
    const absl::Status written = WriteCheckpoint(folder, shape);
    if (!written.ok()) std::exit(1);
    NumericsSpec torch;
    torch.backend = "torch";
    Runner ours(folder, {}, threads), rival(folder, torch, threads);
    Times prefill[2], decode[2];
    for (int r = -1; r < repetitions; r++) {
      Times warm_up;
      ours.Measure(r < 0 ? warm_up : prefill[0], 1, [&] { ours.Prefill(); });
      rival.Measure(r < 0 ? warm_up : prefill[1], 1, [&] { rival.Prefill(); });
      CheckSame(ours, rival);
      ours.Measure(r < 0 ? warm_up : decode[0], kSteps, [&] { ours.Decode(); });
      rival.Measure(r < 0 ? warm_up : decode[1], kSteps, [&] { rival.Decode(); });
      CheckSame(ours, rival);
    }
    Row(shape, "prompt of 2048 tokens", prefill[0], prefill[1], rival.name(), threads);
    Row(shape, "one token after 2048", decode[0], decode[1], rival.name(), threads);
    std::filesystem::remove_all(folder);
  }
}

}  // namespace
}  // namespace iha

int main(int argc, char** argv) {
  iha::model::PrepareForBackendModules();
  iha::Run(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? std::atoi(argv[2]) : 2);
  return 0;
}
