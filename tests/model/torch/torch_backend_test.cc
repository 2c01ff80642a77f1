// The torch backend against the exact CPU engine on random checkpoints, its cache, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/rng.h"
#include "model/backend_module.h"
#include "model/open_model.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/model/torch/require_torch.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using ::iha::testing::TempDir;
using ::testing::HasSubstr;
using testing::Runner;

constexpr int32_t kVocab = 61;

// Six query heads of width 8; kinds that must have Hkv = H get it.
std::string ConfigOf(int kv_heads, const std::string& layer, const std::string& mlp = "gated",
                     const std::string& activation = "silu") {
  return fmt::format(R"({{
    "model_type": "llama", "vocab_size": {}, "hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 2,
    "num_attention_heads": 6, "num_key_value_heads": {}, "head_dim": 8, "hidden_act": "{}", "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "max_position_embeddings": 512, "tie_word_embeddings": true,
    "iha_eval": {{"version": 1, "mlp": "{}", "pattern": "repeat", "attention": [{{"rope_pairing": "half", {}}}]}}}})",
                     kVocab, kv_heads, activation, mlp, layer);
}

// Six query heads of width 8 too: sandwich norms of 1 + weight, scaled embeddings, a sliding and a full layer.
std::string Gemma() {
  return fmt::format(R"({{
    "model_type": "gemma3_text", "vocab_size": {}, "hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 2,
    "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 8, "rms_norm_eps": 1e-6, "sliding_window": 19,
    "layer_types": ["sliding_attention", "full_attention"], "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
    "query_pre_attn_scalar": 8, "max_position_embeddings": 512}})",
                     kVocab);
}

std::string Iha(const std::string& mask, const std::string& window, const std::string& more = "",
                const std::string& collapse = "per_head") {
  return fmt::format(R"("kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo",
    "collapse": "{}", "mask": "{}", "rope_positions": "virtual", "window": {}, "qk_norm": "none"{})",
                     collapse, mask, window, more);
}

struct Case {
  std::string name;
  std::string config;
};

// Each is run on every backend that has it: a kind that the CPU engine gains is compared from then on.
std::vector<Case> Cases() {
  const std::string plain = R"("qk_norm": "none")";
  return {
      {"global", ConfigOf(6, R"("kind": "global", )" + plain)},
      {"global_gqa_norm", ConfigOf(2, R"("kind": "global", "qk_norm": "pre_rope")")},
      {"global_plain_relu", ConfigOf(3, R"("kind": "global", )" + plain, "plain", "relu")},
      {"global_plain_gelu", ConfigOf(3, R"("kind": "global", )" + plain, "plain", "gelu")},
      {"global_gelu_tanh", ConfigOf(1, R"("kind": "global", )" + plain, "gated", "gelu_pytorch_tanh")},
      {"local", ConfigOf(2, R"("kind": "local", "window": 19, )" + plain)},
      {"local_gate", ConfigOf(2, R"("kind": "local", "window": 70, "gate": "headwise", )" + plain)},
      {"global_xsa", ConfigOf(3, R"("kind": "global", "xsa": "output", "gate": "elementwise", )" + plain)},
      {"global_knocking", ConfigOf(3, R"("kind": "global", "knocking": "mlp", )" + plain)},
      {"iha_flat", ConfigOf(6, Iha("flat_causal", "null"))},
      {"iha_flat_virtual_window", ConfigOf(6, Iha("flat_causal", R"({"unit": "virtual", "size": 37})"))},
      {"iha_token_window", ConfigOf(6, Iha("token_causal", R"({"unit": "token", "size": 70})"))},
      {"iha_pseudo_xsa", ConfigOf(6, Iha("token_causal", "null", R"(, "xsa": "pseudo", "knocking": "linear")"))},
      {"iha_global_collapse", ConfigOf(6, Iha("flat_causal", "null", "", "global"))},
      {"gemma3", Gemma()},
      {"talking_heads", ConfigOf(2, R"("kind": "talking_heads", "window": 33, )" + plain)},
      {"diff", ConfigOf(6, R"("kind": "diff", "window": null, "lambda_init": 0.5, "norm_eps": 1e-5)")},
      {"diff_v2", ConfigOf(3, R"("kind": "diff_v2", "window": 40, "gate": "headwise", )" + plain)},
  };
}

// Lengths on both sides of a block's 64 tokens.
std::vector<std::vector<int32_t>> Sequences() {
  std::vector<std::vector<int32_t>> sequences;
  PhiloxStream stream(7);
  for (const size_t length : {130u, 64u, 7u}) {
    auto& ids = sequences.emplace_back();
    for (size_t i = 0; i < length; i++) ids.push_back(static_cast<int32_t>(stream.NextUniform() * kVocab));
  }
  return sequences;
}

absl::StatusOr<std::unique_ptr<Backend>> Open(const std::string& folder, const NumericsSpec& numerics) {
  auto opened = OpenBackend(folder, {.threads = 2, .numerics = numerics});
  if (!opened.ok()) return opened.status();
  return std::move(opened->backend);
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// |a - b| / |b| over all logits of a sequence.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  std::vector<float> difference(b.size());
  for (size_t i = 0; i < b.size(); i++) difference[i] = a[i] - b[i];
  return Norm(difference) / Norm(b);
}

class TorchBackend : public ::testing::Test {
 protected:
  std::string Make(const std::string& name, const std::string& config) {
    const std::string folder = dir_.path() + "/" + name;
    checkpoint::testing::WriteRandomCheckpoint(folder, config);
    return folder;
  }
  std::unique_ptr<Backend> OpenTorch(const std::string& folder, const NumericsSpec& numerics = {.backend = "torch"}) {
    auto backend = Open(folder, numerics);
    EXPECT_TRUE(backend.ok()) << backend.status();
    return backend.ok() ? *std::move(backend) : nullptr;
  }
  TempDir dir_;
};

// fp32 against fp32 in another order: each layer adds a few roundings of 6e-8 to sums of up to 48 terms, about 1e-6
// relative in norm, and these saturated softmaxes multiply it by up to ten. A misread weight, mask or position changes
// the logits by more than 1e-1.
constexpr double kFloatNoise = 1e-4;

TEST_F(TorchBackend, AgreesWithTheExactEngineOnEveryKind) {
  IHA_REQUIRE_TORCH();
  const auto sequences = Sequences();
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const std::string folder = Make(c.name, c.config);
    const auto torch = OpenTorch(folder);
    ASSERT_NE(torch, nullptr);
    const auto found = Runner(*torch, 16).Run(sequences, 0);
    auto exact = Open(folder, {});
    ASSERT_TRUE(exact.ok()) << exact.status();
    const auto expected = Runner(**exact, 16).Run(sequences, 0);
    for (size_t s = 0; s < sequences.size(); s++) EXPECT_LT(Distance(found[s], expected[s]), kFloatNoise) << s;
  }
}

TEST_F(TorchBackend, ChunksAndBatchesChangeNoMoreThanRounding) {
  IHA_REQUIRE_TORCH();
  const auto sequences = Sequences();
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const auto torch = OpenTorch(Make(c.name, c.config));
    ASSERT_NE(torch, nullptr);
    Runner runner(*torch, 16);
    const auto whole = runner.Run({sequences[0]}, 0)[0];
    EXPECT_LT(Distance(runner.Run(sequences, 33)[0], whole), kFloatNoise);
  }
}

TEST_F(TorchBackend, CopiedBlocksHoldTheSameKeys) {
  IHA_REQUIRE_TORCH();
  const auto torch = OpenTorch(Make("iha", ConfigOf(6, Iha("flat_causal", "null"))));
  ASSERT_NE(torch, nullptr);
  ASSERT_TRUE(torch->ReserveCache(4).ok());
  const std::vector<int32_t> ids = {3, 14, 15, 9, 2};
  const std::vector<int32_t> at = {0}, copy = {3}, last = {0};
  std::vector<float> first(kVocab), second(kVocab);
  const std::span<const int32_t> all = ids;
  ASSERT_TRUE(torch->Forward(std::vector<Segment>{{all.first(4), 0, at, {}}}, {}, nullptr).ok());
  ASSERT_TRUE(torch->CopyBlock(0, 3).ok());
  ASSERT_TRUE(torch->Forward(std::vector<Segment>{{all.last(1), 4, at, last}}, first, nullptr).ok());
  ASSERT_TRUE(torch->Forward(std::vector<Segment>{{all.last(1), 4, copy, last}}, second, nullptr).ok());
  EXPECT_EQ(first, second);
  EXPECT_EQ(torch->CopyBlock(0, 4).code(), absl::StatusCode::kInvalidArgument);
}

// bf16 has 8 bits: 4e-3 a rounding, a few of them a layer. Above 0 shows that the dtypes are not ignored.
TEST_F(TorchBackend, HalfPrecisionIsNearAndNotEqual) {
  IHA_REQUIRE_TORCH();
  const std::string folder = Make("global", Cases()[0].config);
  const std::vector<std::vector<int32_t>> sequences = {Sequences()[0]};
  const auto exact = OpenTorch(folder);
  ASSERT_NE(exact, nullptr);
  const auto expected = Runner(*exact, 8).Run(sequences, 50)[0];
  for (const NumericsSpec& numerics :
       {NumericsSpec{.backend = "torch", .kv_dtype = "bf16"}, NumericsSpec{"torch", "bf16", "bf16", "bf16"}}) {
    const auto half = OpenTorch(folder, numerics);
    ASSERT_NE(half, nullptr);
    EXPECT_EQ(half->info().numerics_id, numerics.Id());
    EXPECT_EQ(half->info().kv_block_bytes * 2, exact->info().kv_block_bytes);
    const double distance = Distance(Runner(*half, 8).Run(sequences, 50)[0], expected);
    EXPECT_GT(distance, 1e-4);
    EXPECT_LT(distance, 0.2);
  }
}

TEST_F(TorchBackend, NamesItselfAndTheModel) {
  IHA_REQUIRE_TORCH();
  const std::string folder = Make("global", Cases()[0].config);
  const auto torch = OpenTorch(folder);
  ASSERT_NE(torch, nullptr);
  const ModelInfo& info = torch->info();
  EXPECT_EQ(info.numerics_id, "torch/1-torch2.11.0/weights=stored/act=f32/kv=f32");
  EXPECT_EQ(info.family, "llama");
  EXPECT_EQ(info.vocab_size, kVocab);
  EXPECT_EQ(info.context_tokens, 512);
  EXPECT_EQ(info.kv_block_bytes, 64 * 2 * 2 * 6 * 8 * 4);
  EXPECT_EQ(info.weights, (*Open(folder, {}))->info().weights);
}

TEST_F(TorchBackend, RefusesBadStepsDtypesAndDevices) {
  IHA_REQUIRE_TORCH();
  const std::string folder = Make("global", Cases()[0].config);
  const auto torch = OpenTorch(folder);
  ASSERT_NE(torch, nullptr);
  EXPECT_EQ(torch->ReserveCache(0).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(torch->ReserveCache(1).ok());
  const absl::Status again = torch->ReserveCache(2);
  EXPECT_EQ(again.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(again.message()), HasSubstr("reserved already (1 blocks)"));
  const std::vector<int32_t> bad = {kVocab}, at = {0};
  const absl::Status token = torch->Forward(std::vector<Segment>{{bad, 0, at, {}}}, {}, nullptr);
  EXPECT_EQ(token.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(token.message()), HasSubstr("token id 61 at position 0: expected an id below 61"));

  const absl::Status dtype = Open(folder, {.backend = "torch", .activation_dtype = "bf16"}).status();
  EXPECT_EQ(dtype.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(dtype.message()), HasSubstr("act=bf16/kv=f32: the torch backend takes"));

  const auto module = LoadBackendModule("torch");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(*(*module)->architecture("cpu"), 0);
  for (const char* device : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1000", "cuda0"}) {
    const absl::Status status = (*module)->architecture(device).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << device;
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected cpu, cuda or cuda:N"));
  }
  // No host has so many.
  EXPECT_EQ((*module)->architecture("cuda:127").status().code(), absl::StatusCode::kUnavailable);
  for (const char* backend : {"torch-cuda", "torch-cuda-sm_90"}) {
    const auto crossed = OpenBackend(folder, {.numerics = {.backend = backend}, .device = "cpu"}).status();
    EXPECT_EQ(crossed.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(crossed.message()), HasSubstr("--device cpu: runs torch; numerics torch-cuda"));
  }
}

TEST(BackendModule, AMissingOneIsNamed) {
  const absl::Status status = LoadBackendModule("no_such").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lib/iha-eval/libiha_no_such_backend.so: not found"));
}

}  // namespace
}  // namespace iha::model
