// What is packed in which type, and that a type of 16 bits changes no bit of a result.
#include "model/transformer/packing.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/support/thread_pool.h"
#include "model/transformer/cpu_backend.h"
#include "model/transformer/narrowing.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/model/checkpoint/tensor_values.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using checkpoint::DType;
using checkpoint::TensorView;
using kernels::StorageType;
using testing::Runner;
using testing::SameBits;

// Odd sizes: panels that are not full, pairs that are not whole. Layer 0 has q, k, v in one matrix, panels shared.
constexpr const char* kConfig = R"({"model_type": "llama", "vocab_size": 67, "hidden_size": 37, "intermediate_size": 53,
    "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 6,
    "attention_bias": true, "mlp_bias": true, "tie_word_embeddings": false})";

TEST(ExactF16, FindsEveryFp16AndNothingElse) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto half = static_cast<uint16_t>(i);
    const float value = kernels::WidenF16(half);
    const std::optional<uint16_t> found = ExactF16(value);
    if (std::isnan(value)) {
      EXPECT_FALSE(found.has_value()) << i;
      continue;
    }
    ASSERT_TRUE(found.has_value()) << i;
    EXPECT_EQ(*found, half);
    if (std::isinf(value)) continue;
    // Its neighbours in fp32 are no fp16 (but for zero's, which are no fp16 either).
    EXPECT_FALSE(ExactF16(std::nextafter(value, std::numeric_limits<float>::infinity())).has_value()) << i;
    EXPECT_FALSE(ExactF16(std::nextafter(value, -std::numeric_limits<float>::infinity())).has_value()) << i;
  }
  EXPECT_FALSE(ExactF16(65520.0F).has_value());    // would round to infinity
  EXPECT_FALSE(ExactF16(0x1.8p-24F).has_value());  // between two subnormals
  EXPECT_FALSE(ExactF16(0x1p-25F).has_value());    // below the smallest
  EXPECT_FALSE(ExactF16(0x1p-149F).has_value());
}

TensorView View(const std::vector<float>& values) {
  return {DType::kF32, {static_cast<int64_t>(values.size())}, std::as_bytes(std::span(values))};
}

StorageType TypeOf(const std::vector<float>& values) {
  kernels::ThreadPool pool(2);
  const TensorView view = View(values);
  return ExactStorage({&view, 1}, pool);
}

TEST(ExactStorage, OneValueThatDoesNotFitIsSeenWhereverItIs) {
  constexpr size_t kSize = (1 << 17) + 3;
  constexpr float kHalfOnly = 1 + 0x1p-10F, kBrainOnly = 0x1p100F, kNeither = 1 + 0x1p-23F;
  EXPECT_EQ(TypeOf(std::vector<float>(kSize, 0.5F)), StorageType::kBF16);
  EXPECT_EQ(TypeOf({}), StorageType::kBF16);
  for (const size_t at : {size_t{0}, size_t{1023}, size_t{1024}, size_t{65535}, size_t{65536}, kSize - 1}) {
    std::vector<float> values(kSize, 0.5F);
    values[at] = kHalfOnly;
    EXPECT_EQ(TypeOf(values), StorageType::kF16) << at;
    values[at] = kBrainOnly;
    EXPECT_EQ(TypeOf(values), StorageType::kBF16) << at;
    values[at == 0 ? 1 : 0] = kHalfOnly;
    EXPECT_EQ(TypeOf(values), StorageType::kF32) << at;
    values.assign(kSize, 0.5F);
    values[at] = kNeither;
    EXPECT_EQ(TypeOf(values), StorageType::kF32) << at;
  }
}

TEST(ExactStorage, WhatIsNoNumberKeepsItsBits) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(TypeOf({infinity, -0.0F}), StorageType::kBF16);
  EXPECT_EQ(TypeOf({-infinity, 1 + 0x1p-10F}), StorageType::kF16);
  EXPECT_EQ(TypeOf({std::bit_cast<float>(0x7f810000)}), StorageType::kBF16);
  EXPECT_EQ(TypeOf({std::bit_cast<float>(0x7f802000)}), StorageType::kF32);  // as fp16 it would become a quiet one
}

TEST(ExactStorage, StoredTypesThatDiffer) {
  const std::vector<float> wide = {1, 2}, fine = {1 + 0x1p-10F, 2}, finer = {1 + 0x1p-23F, 2};
  const std::vector<uint16_t> brain = {0x3f80, 0x7f00}, half = {0x3c01, 0x3c00}, round_half = {0x3c00, 0x4000};
  const auto of = [](DType type, const std::vector<uint16_t>& bits) {
    return TensorView{type, {2}, std::as_bytes(std::span(bits))};
  };
  kernels::SerialFor serial;
  const auto type = [&](std::vector<TensorView> views) { return ExactStorage(views, serial); };
  EXPECT_EQ(type({of(DType::kF16, half), of(DType::kF16, round_half)}), StorageType::kF16);
  EXPECT_EQ(type({of(DType::kF16, round_half)}), StorageType::kF16);  // bf16 would do: 16 bits are left as stored
  EXPECT_EQ(type({of(DType::kBF16, brain), View(wide)}), StorageType::kBF16);
  EXPECT_EQ(type({of(DType::kF16, round_half), of(DType::kBF16, brain)}), StorageType::kBF16);
  EXPECT_EQ(type({View(fine), of(DType::kF16, half)}), StorageType::kF16);
  EXPECT_EQ(type({of(DType::kF16, half), of(DType::kBF16, brain)}), StorageType::kF32);  // 2^127 is no fp16
  EXPECT_EQ(type({View(wide), View(finer)}), StorageType::kF32);
}

// The folder of random weights in `stored`, and the same widened to F32.
struct Twins {
  std::string half, wide;
};
Twins WriteTwins(const iha::testing::TempDir& dir, DType stored) {
  Twins twins{dir.File(NameOf(stored)), dir.File(std::string(NameOf(stored)) + "_wide")};
  checkpoint::testing::WriteRandomCheckpoint(twins.half, kConfig, stored);
  checkpoint::testing::WriteWidened(twins.half, twins.wide);
  return twins;
}

// A matrix of F32 values that fit 16 bits, as the packer makes it, against the same values packed as F32.
TEST(Packing, SixteenBitsChangeNoProduct) {
  const iha::testing::TempDir dir;
  const std::string layer = "model.layers.0.self_attn.";
  const LinearPart parts[] = {{layer + "q_proj", 18, true}, {layer + "k_proj", 6, true}, {layer + "v_proj", 6, true}};
  constexpr size_t kRows = 30, kColumns = 37;
  for (const DType stored : {DType::kBF16, DType::kF16, DType::kF32}) {
    SCOPED_TRACE(NameOf(stored));
    const auto checkpoint = Checkpoint::Open(WriteTwins(dir, stored).wide);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    kernels::ThreadPool pool(2);
    const auto linear = Packer(*checkpoint, pool).MakeLinear(parts, kColumns);
    ASSERT_TRUE(linear.ok()) << linear.status();
    EXPECT_EQ(linear->weights.type(), StorageOf(stored));
    std::vector<float> values;
    for (const LinearPart& part : parts) {
      const std::vector<float> more = checkpoint::testing::Values(*checkpoint, part.name + ".weight");
      values.insert(values.end(), more.begin(), more.end());
    }
    const kernels::PackedWeights plain = kernels::Pack(StorageType::kF32, values.data(), kRows, kColumns);
    kernels::ForEachTarget([&](const kernels::SimdTarget&) {
      for (const size_t m : {1, 3, 40}) {
        const std::vector<float> x = kernels::RandomFloats(m * kColumns, 7);
        std::vector<float> found(m * kRows), expected(m * kRows);
        kernels::Gemm(x.data(), kColumns, m, linear->weights, found.data(), kRows, pool);
        kernels::Gemm(x.data(), kColumns, m, plain, expected.data(), kRows, pool);
        EXPECT_TRUE(SameBits(found, expected)) << m;
      }
    });
  }
}

TEST(Packing, AnF32CheckpointGivesTheLogitsOfIts16BitTwin) {
  const iha::testing::TempDir dir;
  const std::vector<int32_t> ids = {1, 5, 66, 0, 33, 33, 2, 40, 11};
  for (const DType stored : {DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(NameOf(stored));
    const Twins twins = WriteTwins(dir, stored);
    std::vector<std::vector<float>> logits;
    for (const std::string& folder : {twins.half, twins.wide}) {
      const auto checkpoint = Checkpoint::Open(folder);
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
      const auto backend = OpenCpuBackend(*checkpoint, {.threads = 2, .numerics = {}});
      ASSERT_TRUE(backend.ok()) << backend.status();
      logits.push_back(Runner(**backend, 4).Run({ids}, 4)[0]);
    }
    EXPECT_TRUE(SameBits(logits[0], logits[1]));
    EXPECT_TRUE(std::isfinite(logits[0][0]));
  }
}

}  // namespace
}  // namespace iha::model
