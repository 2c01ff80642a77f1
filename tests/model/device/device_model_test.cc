// Whole models on the emulated device: what must change no bit, sizes without a kernel, refusals.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/device/bf16_bound.h"
#include "model/device/device_attention.h"
#include "model/device/emulated_backend.h"
#include "model/open_model.h"
#include "model/transformer/cpu_backend.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::OracleOf;
using testing::RandomIds;
using testing::Runner;
using testing::SameBits;
using ::testing::StartsWith;

#ifdef IHA_TEST_CUDA
constexpr char kBackend[] = "cuda-exact-sm_";
// Schedules are the GPU's own.
std::unique_ptr<Backend> Open(const std::string& folder, const EmulatedOptions& /*options*/ = {}) {
  const absl::StatusOr<std::string> name = CudaBackendOn("cuda");
  EXPECT_TRUE(name.ok()) << name.status();
  if (!name.ok()) return nullptr;
  auto opened = OpenBackend(folder, {.numerics = CudaNumerics(*name), .device = "cuda"});
  EXPECT_TRUE(opened.ok()) << opened.status();
  return opened.ok() ? std::move(opened->backend) : nullptr;
}
#else
constexpr char kBackend[] = "cuda-emulated/";
std::unique_ptr<Backend> Open(const std::string& folder, const EmulatedOptions& options = {}) {
  const auto checkpoint = Checkpoint::Open(folder);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return nullptr;
  auto backend = OpenEmulatedBackend(*checkpoint, EmulatedNumerics(), options);
  EXPECT_TRUE(backend.ok()) << backend.status();
  return backend.ok() ? *std::move(backend) : nullptr;
}
#endif

// A layer of every kind and modifier that has kernels.
constexpr const char* kKinds[] = {"global_gqa_qknorm",
                                  "iha_p2_definition3",
                                  "iha_p3_window_virtual7",
                                  "iha_p2_qknorm_post_mix",
                                  "iha_xsa_pseudo",
                                  "iha_xsa_output_gate_elementwise",
                                  "diff_number_window_half",
                                  "diff_v2_gqa_window_qknorm",
                                  "talking_heads_gqa_window_qknorm",
                                  "global_knocking_mlp_gqa"};

TEST(Device, RowsDoNotSeeEachOther) {
  IHA_REQUIRE_CASES(cases);
  for (const char* name : kKinds) {
    SCOPED_TRACE(name);
    const std::string folder = cases + "/attention_oracles/" + name;
    const std::vector<int32_t> ids = OracleOf(folder).ids;
    const auto backend = Open(folder);
    ASSERT_NE(backend, nullptr);
    Runner runner(*backend, 64);
    const std::vector<float> alone = runner.Run({ids}, 0)[0];
    for (const size_t chunk : {1, 5}) EXPECT_TRUE(SameBits(runner.Run({ids}, chunk)[0], alone)) << "chunk " << chunk;
    // Sequences of other lengths beside it: 7 in tiles of 16 rows and of 128, 64 of a few tokens.
    const size_t few = name == kKinds[0] || name == kKinds[1] ? 6 : 2;
    for (const size_t batch : {7, 64}) {
      std::vector<std::vector<int32_t>> sequences;
      for (size_t i = 0; i < batch; i++) {
        const size_t length = batch == 64 ? i % few + 1 : 12 + i;
        sequences.emplace_back(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length));
      }
      const auto together = runner.Run(sequences, 0);
      for (size_t i = 0; i < batch; i++) {
        const std::vector<float> part(alone.begin(), alone.begin() + static_cast<std::ptrdiff_t>(together[i].size()));
        ASSERT_TRUE(SameBits(together[i], part)) << "batch " << batch << ", sequence " << i;
      }
    }
  }
}

TEST(Device, NoBitDependsOnTheSchedule) {
  IHA_REQUIRE_CASES(cases);
  for (const char* name : {"iha_p2_definition3", "diff_number_window_half"}) {
    SCOPED_TRACE(name);
    const std::string folder = cases + "/attention_oracles/" + name;
    const std::vector<int32_t> ids = OracleOf(folder).ids;
    std::vector<float> first;
    for (const uint64_t seed : {1, 2, 3}) {
      for (const bool eager : {false, true}) {
        const auto backend = Open(folder, {.seed = seed, .eager_copies = eager});
        ASSERT_NE(backend, nullptr);
        const std::vector<float> logits = Runner(*backend, 2).Run({ids}, 16)[0];
        if (first.empty()) first = logits;
        EXPECT_TRUE(SameBits(logits, first)) << "seed " << seed << (eager ? ", eager" : ", lazy");
      }
    }
  }
}

// The special cases of checkpoints.md that hold bit for bit.
TEST(Device, EqualFunctionsGiveEqualBits) {
  IHA_REQUIRE_CASES(cases);
  const std::string root = cases + "/attention_oracles/special_";
  const std::vector<int32_t> ids = OracleOf(root + "base_global").ids;
  const auto logits = [&](const std::string& name) {
    const auto backend = Open(root + name);
    return backend == nullptr ? std::vector<float>() : Runner(*backend, 2).Run({ids}, 16)[0];
  };
  const std::vector<float> global = logits("base_global");
  EXPECT_TRUE(SameBits(logits("window_ge_n"), global));
  EXPECT_TRUE(SameBits(logits("iha_p1_identity"), global));
}

// The next token after a prefix in another block: a copy of it, and the block itself.
TEST(Device, ACopiedBlockIsAsGoodAsTheFirst) {
  IHA_REQUIRE_CASES(cases);
  for (const char* name : {"iha_p3_tps_token_token", "diff_number_window_half"}) {
    const std::string folder = cases + "/attention_oracles/" + name;
    const std::vector<int32_t> ids = OracleOf(folder).ids;
    const auto backend = Open(folder);
    ASSERT_NE(backend, nullptr);
    ASSERT_TRUE(backend->ReserveCache(3).ok());
    EXPECT_FALSE(backend->ReserveCache(3).ok());
    const std::vector<int32_t> first_block = {0}, second_block = {2}, none, last = {0};
    const std::span<const int32_t> prefix(ids.data(), ids.size() - 1), next(&ids.back(), 1);
    std::vector<float> logits[2];
    for (auto& row : logits) row.resize(static_cast<size_t>(backend->info().vocab_size));
    const Segment before[] = {{.tokens = prefix, .start = 0, .blocks = first_block, .logit_rows = none}};
    ASSERT_TRUE(backend->Forward(before, {}, nullptr).ok());
    ASSERT_TRUE(backend->CopyBlock(0, 2).ok());
    EXPECT_FALSE(backend->CopyBlock(0, 3).ok());
    const auto position = static_cast<int64_t>(prefix.size());
    const Segment there[] = {{.tokens = next, .start = position, .blocks = second_block, .logit_rows = last}};
    const Segment here[] = {{.tokens = next, .start = position, .blocks = first_block, .logit_rows = last}};
    ASSERT_TRUE(backend->Forward(there, logits[0], nullptr).ok());
    ASSERT_TRUE(backend->Forward(here, logits[1], nullptr).ok());
    EXPECT_TRUE(SameBits(logits[0], logits[1])) << name;
  }
}

std::string Config(const std::string& fields, const std::string& attention) {
  return R"({"model_type": "llama", "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "num_hidden_layers": 2, )" +
         fields + R"(, "iha_eval": {"version": 1, "mlp": "gated", "pattern": "repeat", "attention": [)" + attention +
         "]}}";
}

// Against the exact CPU engine, within the bound, and the same bits in chunks and beside another sequence; tests of
// sizes that the oracles do not have.
void ExpectAsOnTheCpu(const std::string& config) {
  SCOPED_TRACE(config);
  iha::testing::TempDir directory;
  ASSERT_TRUE(testing::WriteTinyCheckpoint(directory.path(), config).ok());
  const auto checkpoint = Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto backend = Open(directory.path());
  ASSERT_NE(backend, nullptr);
  EXPECT_THAT(backend->info().numerics_id, StartsWith(kBackend));
  EXPECT_THAT(backend->info().numerics_id, EndsWith("/2/weights=bf16/act=bf16/kv=bf16"));
  EXPECT_EQ(backend->info().weights, checkpoint->WeightsDigest());
  auto cpu = OpenCpuBackend(*checkpoint, {.threads = 1, .numerics = {}});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  const std::vector<int32_t> ids = RandomIds(40, backend->info().vocab_size, 3);
  Runner runner(*backend, 2);
  const std::vector<float> got = runner.Run({ids}, 15)[0], exact = Runner(**cpu, 2).Run({ids}, 0)[0];
  EXPECT_TRUE(SameBits(runner.Run({RandomIds(3, backend->info().vocab_size, 4), ids}, 0)[1], got));
  const std::vector<double> want(exact.begin(), exact.end());
  const auto variances = ScoreVariances(*checkpoint);
  ASSERT_TRUE(variances.ok()) << variances.status();
  EXPECT_LE(MaxAbsError(got, want), Bf16Bound(Bf16ErrorsOf(checkpoint->config(), *variances).logits, want));
}

// Nothing is a multiple of 8; heads, gates and pairs of odd number.
TEST(Device, SizesThatNoKernelHasArePadded) {
  const std::string odd = R"("vocab_size": 37, "hidden_size": 21, "intermediate_size": 30, "num_attention_heads": 3,
      "num_key_value_heads": 3, "head_dim": 10, "attention_bias": true, "mlp_bias": true)";
  ExpectAsOnTheCpu(Config(odd, R"({"kind": "global", "rope_pairing": "half", "qk_norm": "pre_rope",
      "xsa": "output", "gate": "headwise"})"));
  ExpectAsOnTheCpu(Config(odd, R"({"kind": "iha", "pseudo_heads": 3, "alpha_layout": "source_target_pseudo",
      "collapse": "global", "mask": "token_causal", "rope_positions": "token", "rope_pairing": "interleaved",
      "window": {"unit": "token", "size": 9}, "qk_norm": "post_mix", "xsa": "pseudo", "gate": "elementwise"})"));
  const std::string pairs = R"("vocab_size": 37, "hidden_size": 20, "intermediate_size": 12,
      "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 6, "tie_word_embeddings": true)";
  ExpectAsOnTheCpu(Config(pairs, R"({"kind": "diff_v2", "rope_pairing": "half", "window": null, "qk_norm": "none",
      "xsa": "output", "gate": "headwise"})"));
}

// Heads of 128 and between: the other instantiations.
TEST(Device, WideHeads) {
  const auto wide = [](int d) {
    return R"("vocab_size": 40, "hidden_size": 24, "intermediate_size": 16, "num_attention_heads": 2,
      "num_key_value_heads": 2, "head_dim": )" +
           std::to_string(d);
  };
  ExpectAsOnTheCpu(Config(wide(128), R"({"kind": "local", "rope_pairing": "interleaved", "qk_norm": "pre_rope",
      "window": 11, "gate": "headwise", "xsa": "output"})"));
  ExpectAsOnTheCpu(Config(wide(100), R"({"kind": "iha", "pseudo_heads": 2, "alpha_layout": "target_pseudo_source",
      "collapse": "per_head", "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half",
      "window": null, "qk_norm": "pre_mix", "xsa": "pseudo", "knocking": "linear"})"));
  ExpectAsOnTheCpu(Config(wide(64), R"({"kind": "diff", "rope_pairing": "half", "window": null,
      "lambda_init": "depth", "norm_eps": 1e-5})"));
  ExpectAsOnTheCpu(Config(wide(110), R"({"kind": "diff", "rope_pairing": "interleaved", "window": 7,
      "lambda_init": 0.4, "norm_eps": 1e-5})"));
  ExpectAsOnTheCpu(Config(wide(256), R"({"kind": "local", "rope_pairing": "half", "qk_norm": "pre_rope", "window": 11,
      "gate": "elementwise", "xsa": "output"})"));
  ExpectAsOnTheCpu(Config(wide(130), R"({"kind": "iha", "pseudo_heads": 2, "alpha_layout": "target_pseudo_source",
      "collapse": "global", "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "interleaved",
      "window": null, "qk_norm": "post_mix", "xsa": "pseudo"})"));
  ExpectAsOnTheCpu(Config(wide(200), R"({"kind": "talking_heads", "rope_pairing": "half", "window": 9,
      "qk_norm": "none", "xsa": "output", "gate": "headwise"})"));
}

// More than 32 heads are mixed by other instantiations.
TEST(Device, ManyHeads) {
  const auto many = [](int heads) {
    return fmt::format(R"("vocab_size": 40, "hidden_size": 24, "intermediate_size": 16, "num_attention_heads": {},
      "num_key_value_heads": {}, "head_dim": 8)",
                       heads, heads);
  };
  ExpectAsOnTheCpu(Config(many(40), R"({"kind": "iha", "pseudo_heads": 2, "alpha_layout": "target_pseudo_source",
      "collapse": "global", "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half",
      "window": null, "qk_norm": "pre_mix"})"));
  ExpectAsOnTheCpu(Config(many(33), R"({"kind": "iha", "pseudo_heads": 3, "alpha_layout": "source_target_pseudo",
      "collapse": "global", "mask": "token_causal", "rope_positions": "virtual", "rope_pairing": "interleaved",
      "window": null, "qk_norm": "post_mix", "xsa": "pseudo"})"));
  ExpectAsOnTheCpu(Config(many(64), R"({"kind": "talking_heads", "rope_pairing": "half", "window": null,
      "qk_norm": "none"})"));
}

TEST(Device, WhatHasNoKernelIsRefusedByName) {
  checkpoint::ModelConfig config;
  config.num_heads = config.num_kv_heads = 4;
  config.head_dim = 128;
  config.layers.resize(2);
  EXPECT_TRUE(CheckDeviceLayers(config).ok());
  const auto refusal = [&](const auto& change) {
    checkpoint::ModelConfig changed = config;
    change(changed, changed.layers[1]);
    const absl::Status status = CheckDeviceLayers(changed);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  using checkpoint::AttentionKind;
  using checkpoint::LayerSpec;
  using checkpoint::ModelConfig;
  EXPECT_EQ(
      refusal([](ModelConfig& c, LayerSpec& l) {
        l.kind = AttentionKind::kTalkingHeads;
        c.num_heads = c.num_kv_heads = 65;
      }),
      "layer 1: kind talking_heads with 65 heads (at most 64): the device has no kernel for it; use --device cpu");
  EXPECT_THAT(refusal([](ModelConfig& c, LayerSpec&) { c.head_dim = 257; }), HasSubstr("head_dim 257 (at most 256)"));
  EXPECT_THAT(refusal([](ModelConfig& c, LayerSpec& l) {
                l.kind = AttentionKind::kDiff;
                c.head_dim = 129;
              }),
              HasSubstr("layer 1: kind diff with head_dim 129 (at most 128"));
  EXPECT_THAT(refusal([](ModelConfig& c, LayerSpec& l) {
                l.kind = AttentionKind::kIha;
                c.num_heads = c.num_kv_heads = 65;
              }),
              HasSubstr("layer 1: kind iha with 65 heads (at most 64)"));
  EXPECT_THAT(refusal([](ModelConfig& c, LayerSpec& l) {
                l.kind = AttentionKind::kIha;
                c.num_heads = c.num_kv_heads = 32;
                l.pseudo_heads = 1000;
              }),
              HasSubstr("layer 1: kind iha with 32 x 1000 pseudo heads"));
  EXPECT_THAT(refusal([](ModelConfig& c, LayerSpec& /*l*/) { c.vocab_size = (1 << 21) + 1; }),
              HasSubstr("vocab_size 2097153 (at most 2097152)"));
  // What a kernel needs more for its norm, for a global collapse, and for XSA before that.
  using checkpoint::CollapseKind, checkpoint::QkNorm, checkpoint::Xsa;
  const auto many = [](int64_t pseudo, QkNorm norm, CollapseKind collapse, Xsa xsa) {
    return [=](ModelConfig& c, LayerSpec& l) {
      l.kind = AttentionKind::kIha;
      l.collapse = collapse;
      c.num_heads = c.num_kv_heads = 32;
      c.head_dim = 256;
      l.pseudo_heads = pseudo;
      l.qk_norm = norm;
      l.xsa = xsa;
    };
  };
  const auto accepted = [&](const auto& change) {
    ModelConfig changed = config;
    change(changed, changed.layers[1]);
    return CheckDeviceLayers(changed).ok();
  };
  EXPECT_TRUE(accepted(many(300, QkNorm::kPreMix, CollapseKind::kPerHead, Xsa::kOff)));
  EXPECT_THAT(refusal(many(300, QkNorm::kPostMix, CollapseKind::kPerHead, Xsa::kOff)),
              HasSubstr("32 x 300 pseudo heads of 256"));
  EXPECT_THAT(refusal(many(300, QkNorm::kPreMix, CollapseKind::kGlobal, Xsa::kOff)),
              HasSubstr("32 x 300 pseudo heads of 256"));
  EXPECT_TRUE(accepted(many(85, QkNorm::kPostMix, CollapseKind::kGlobal, Xsa::kOff)));
  EXPECT_THAT(refusal(many(85, QkNorm::kPreMix, CollapseKind::kGlobal, Xsa::kPseudo)),
              HasSubstr("32 x 85 pseudo heads of 256"));
}

TEST(Device, OtherNumericsAreRefused) {
  iha::testing::TempDir directory;
  ASSERT_TRUE(testing::WriteTinyCheckpoint(directory.path(), R"({"model_type": "llama", "vocab_size": 8,
      "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1,
      "max_position_embeddings": 64, "rms_norm_eps": 1e-5})")
                  .ok());
  const auto checkpoint = Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  NumericsSpec numerics = EmulatedNumerics();
  numerics.kv_dtype = "f32";
  const auto backend = OpenEmulatedBackend(*checkpoint, numerics);
  EXPECT_EQ(backend.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace iha::model
