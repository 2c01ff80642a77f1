// What is packed in which type, and that a type of 16 bits changes no bit of a result.
#include "model/transformer/packing.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include "kernels/support/thread_pool.h"
#include "model/checkpoint/gguf/ggml_types.h"
#include "model/checkpoint/safetensors.h"
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
    EXPECT_EQ(linear->weights.form(), kernels::FormOf(StorageOf(stored)));
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

// Matrices as a file of Q4_1 blocks leaves them, 16 values at a time; vectors stay. `poisoned`: the last row of the
// embedding and of the head, and nothing else, is of no such form.
void WriteAffine(const std::string& from, const std::string& to, bool poisoned) {
  std::filesystem::create_directories(to);
  checkpoint::testing::WriteText(to + "/config.json", checkpoint::testing::ReadText(from + "/config.json"));
  const auto checkpoint = Checkpoint::Open(from);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::vector<std::vector<float>> values;
  std::vector<checkpoint::NamedTensor> tensors;
  values.reserve(checkpoint->tensors().size());
  for (const auto& [name, view] : checkpoint->tensors()) {
    std::vector<float>& data = values.emplace_back(checkpoint::testing::Values(*checkpoint, name));
    const size_t columns = static_cast<size_t>(view.shape.back());
    const bool vocabulary = name.find("embed") != name.npos || name.find("lm_head") != name.npos;
    const size_t end = vocabulary && poisoned ? data.size() - columns : data.size();
    for (size_t i = 0; view.shape.size() == 2 && i < end; i++) {
      const float scale = static_cast<float>(1024 + i % columns / 16 * 97 + i / columns) * 0x1p-13F;
      data[i] = scale * std::round(7 * (data[i] + 1)) + scale * -7.25F;
    }
    tensors.push_back({{name, DType::kF32, view.shape}, std::as_bytes(std::span(data))});
  }
  const absl::Status status = checkpoint::WriteSafetensors(to + "/model.safetensors", tensors);
  ASSERT_TRUE(status.ok()) << status;
}

TEST(Packing, WeightsOfAQuantisedFileTakeFewerBitsAndKeepTheirOwn) {
  const iha::testing::TempDir dir;
  checkpoint::testing::WriteRandomCheckpoint(dir.File("random"), kConfig);
  WriteAffine(dir.File("random"), dir.File("affine"), false);
  const auto checkpoint = Checkpoint::Open(dir.File("affine"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const std::string layer = "model.layers.1.";
  const std::vector<std::vector<LinearPart>> matrices = {
      {{layer + "self_attn.q_proj", 18, true}, {layer + "self_attn.k_proj", 6, true}, {layer + "self_attn.v_proj", 6}},
      {{layer + "self_attn.o_proj", 37}},
      {{layer + "mlp.down_proj", 37}},
      {{"model.embed_tokens", 67}}};
  kernels::ThreadPool pool(2);
  for (const auto& parts : matrices) {
    SCOPED_TRACE(parts[0].name);
    std::vector<float> values;
    for (const LinearPart& part : parts) {
      const std::vector<float> more = checkpoint::testing::Values(*checkpoint, part.name + ".weight");
      values.insert(values.end(), more.begin(), more.end());
    }
    size_t rows = 0;
    for (const LinearPart& part : parts) rows += static_cast<size_t>(part.rows);
    const size_t columns = values.size() / rows;
    const auto linear = Packer(*checkpoint, pool).MakeLinear(parts, static_cast<int64_t>(columns));
    ASSERT_TRUE(linear.ok()) << linear.status();
    ASSERT_EQ(linear->weights.form(), kernels::WeightForm::kAffine);
    const kernels::PackedWeights plain = kernels::Pack(StorageType::kF32, values.data(), rows, columns);
    kernels::ForEachTarget([&](const kernels::SimdTarget&) {
      for (const size_t m : {1, 3, 40}) {
        const std::vector<float> x = kernels::RandomFloats(m * columns, 7);
        std::vector<float> found(m * rows), expected(m * rows);
        kernels::Gemm(x.data(), columns, m, linear->weights, found.data(), rows, pool);
        kernels::Gemm(x.data(), columns, m, plain, expected.data(), rows, pool);
        EXPECT_TRUE(SameBits(found, expected)) << m;
      }
    });
  }
}

// The last token's row alone has no affine form: the embedding and the head fall back to F32, also when this shows
// after most rows are packed; the other logits are the same bits.
TEST(Packing, AffineAndF32FormsGiveTheSameLogits) {
  const iha::testing::TempDir dir;
  checkpoint::testing::WriteRandomCheckpoint(dir.File("random"), kConfig);
  std::vector<std::vector<float>> logits;
  for (const bool poisoned : {false, true}) {
    const std::string folder = dir.File(poisoned ? "poisoned" : "affine");
    WriteAffine(dir.File("random"), folder, poisoned);
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    kernels::SerialFor serial;
    const LinearPart head[] = {{"lm_head", 67}};
    const auto linear = Packer(*checkpoint, serial).MakeLinear(head, 37);
    ASSERT_TRUE(linear.ok()) << linear.status();
    EXPECT_EQ(linear->weights.form(), poisoned ? kernels::WeightForm::kF32 : kernels::WeightForm::kAffine);
    const auto backend = OpenCpuBackend(*checkpoint, {.threads = 2, .numerics = {}});
    ASSERT_TRUE(backend.ok()) << backend.status();
    logits.push_back(Runner(**backend, 4).Run({{1, 5, 65, 0, 33, 33, 2, 40, 11}}, 4)[0]);
    for (size_t row = 0; row < 9; row++) logits.back()[row * 67 + 66] = 0;  // the poisoned one
  }
  EXPECT_TRUE(SameBits(logits[0], logits[1]));
  EXPECT_TRUE(std::isfinite(logits[0][0]));
}

// Random blocks of every quantised type of a GGUF file, scales of both signs; a minimum is at most 126 steps from zero
// (files keep zero within the range of a group: 31).
TEST(AffineForms, HoldEveryTypeOfAQuantisedFile) {
  std::mt19937 bits(11);
  for (const uint32_t id : {2, 3, 6, 7, 8, 12, 13, 14}) {
    const checkpoint::GgmlType type = checkpoint::GgmlTypeOf(id);
    SCOPED_TRACE(NameOf(type));
    std::vector<std::byte> bytes(static_cast<size_t>(type.row->block_bytes));
    std::vector<float> values(static_cast<size_t>(type.row->block_elements));
    std::vector<kernels::AffineBlock> blocks(values.size() / kernels::kAffineBlock);
    const bool minimum = id == 3 || id == 7 || id == 12 || id == 13;
    const size_t scale = id == 14 ? 208 : 0;
    kernels::AffineHints hints;
    for (int i = 0; i < 2000; i++) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(bits());
      // The halves' upper bytes: exponent 9 of 0 .. 31.
      bytes[scale + 1] = (bytes[scale + 1] & std::byte{0x83}) | std::byte{0x24};
      if (minimum) bytes[3] = (bytes[3] & std::byte{0x83}) | std::byte{0x24};
      checkpoint::Dequantise(type, bytes, values);
      ASSERT_TRUE(kernels::FindAffineBlocks(values.data(), values.size(), hints, blocks.data())) << i;
      for (size_t v = 0; v < values.size(); v++) {
        const kernels::AffineBlock& block = blocks[v / 16];
        const float again = std::fma(block.scale, static_cast<float>(block.q[v % 16]), block.offset);
        ASSERT_EQ(std::bit_cast<uint32_t>(again), std::bit_cast<uint32_t>(values[v])) << i << " " << v;
      }
    }
  }
}

}  // namespace
}  // namespace iha::model
