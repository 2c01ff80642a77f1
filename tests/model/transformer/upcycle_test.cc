// What upcycle promises, as logits: P = 1 the same bits, P > 1 the same up to rounding, noise another function.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/checkpoint/upcycle.h"
#include "model/transformer/cpu_backend.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::AlphaLayout;
using checkpoint::Checkpoint;
using checkpoint::CollapseKind;
using checkpoint::UpcycleOptions;
using testing::SameBits;

constexpr int32_t kVocab = 31;

// 4 query heads of 8; what the family adds by `more`.
std::string Config(const std::string& type, int kv_heads, const std::string& more = "") {
  return fmt::format(
      R"({{"model_type": "{}", "vocab_size": {}, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
      "num_attention_heads": 4, "num_key_value_heads": {}, "head_dim": 8, "max_position_embeddings": 256{}}})",
      type, kVocab, kv_heads, more);
}

class UpcycledLogits : public ::testing::Test {
 protected:
  std::vector<float> Logits(const std::string& folder, size_t chunk = 0) {
    const auto checkpoint = Checkpoint::Open(folder);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    if (!checkpoint.ok()) return {};
    auto backend = OpenCpuBackend(*checkpoint, {.threads = 2, .numerics = {}});
    EXPECT_TRUE(backend.ok()) << backend.status();
    if (!backend.ok()) return {};
    return testing::Runner(**backend, 4).Run({ids_}, chunk)[0];
  }
  std::vector<float> Upcycled(const std::string& folder, const UpcycleOptions& options, size_t chunk = 0) {
    const std::string out = fmt::format("{}/out{}", dir_.path(), count_++);
    const auto result = checkpoint::Upcycle(folder, out, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? Logits(out, chunk) : std::vector<float>();
  }
  std::string Make(const std::string& name, const std::string& config) {
    const std::string folder = dir_.path() + "/" + name;
    checkpoint::testing::WriteRandomCheckpoint(folder, config);
    return folder;
  }

  const std::vector<int32_t> ids_ = [] {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 100; ++i) ids.push_back((i * i + 7 * i) % kVocab);
    return ids;
  }();
  iha::testing::TempDir dir_;
  int count_ = 0;
};

double RelativeError(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double error = 0, largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    if (std::isnan(difference)) return difference;
    error = std::max(error, difference);
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return error / largest;
}

TEST_F(UpcycledLogits, EveryFamilyKeepsItsFunction) {
  const std::pair<const char*, std::string> models[] = {
      {"llama_gqa", Config("llama", 2, R"(, "attention_bias": true, "tie_word_embeddings": true)")},
      {"mistral_window", Config("mistral", 1, R"(, "sliding_window": 9)")},
      {"qwen2_bias",
       Config("qwen2", 2, R"(, "use_sliding_window": true, "max_window_layers": 1, "sliding_window": 20)")},
      {"qwen3_qk_norm", Config("qwen3", 4)},
      {"llama_interleaved",
       Config("llama", 2, R"(, "iha_eval": {"version": 1, "mlp": "plain", "pattern": "repeat", "attention": [
          {"kind": "local", "window": 11, "rope_pairing": "interleaved", "qk_norm": "pre_rope"},
          {"kind": "global", "rope_pairing": "half", "qk_norm": "none"}]})")},
  };
  for (const auto& [name, config] : models) {
    SCOPED_TRACE(name);
    const std::string folder = Make(name, config);
    const std::vector<float> base = Logits(folder);
    EXPECT_TRUE(SameBits(Upcycled(folder, {.pseudo_heads = 1, .expand_kv = true}), base));
    EXPECT_TRUE(SameBits(Upcycled(folder, {.pseudo_heads = 1,
                                           .expand_kv = true,
                                           .alpha_layout = AlphaLayout::kTargetPseudoSource,
                                           .collapse = CollapseKind::kGlobal}),
                         base));
    for (const int64_t p : {2, 3, 4}) {
      for (const CollapseKind collapse : {CollapseKind::kPerHead, CollapseKind::kGlobal}) {
        const UpcycleOptions options{.pseudo_heads = p, .expand_kv = true, .collapse = collapse};
        // Rounding: three layers of sums of some 100 terms each, errors below 100 ulp of 2^-24 a layer.
        EXPECT_LT(RelativeError(Upcycled(folder, options), base), 3 * 100 * 0x1p-24) << "P = " << p;
      }
    }
    EXPECT_TRUE(SameBits(Upcycled(folder, {.pseudo_heads = 2, .expand_kv = true}, 7),
                         Upcycled(folder, {.pseudo_heads = 2, .expand_kv = true})));
  }
}

TEST_F(UpcycledLogits, SomeLayersOnlyAndNoise) {
  const std::string folder = Make("source", Config("llama", 2));
  const std::vector<float> base = Logits(folder);
  UpcycleOptions options{.pseudo_heads = 1, .expand_kv = true, .layers = std::vector<int64_t>{1}};
  EXPECT_TRUE(SameBits(Upcycled(folder, options), base));
  options.noise = 0.05;
  const std::vector<float> noisy = Upcycled(folder, options);
  EXPECT_GT(RelativeError(noisy, base), 1e-3);
  // Both layouts and both collapses hold one function also with noise; the collapse of other heads has noise of its
  // own only in the global form, so the layout alone changes here.
  options.alpha_layout = AlphaLayout::kTargetPseudoSource;
  EXPECT_TRUE(SameBits(Upcycled(folder, options), noisy));
}

}  // namespace
}  // namespace iha::model
