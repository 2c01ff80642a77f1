// Where stored values go in padded dimensions, and what of a weight arrives on the device.
#include <gtest/gtest.h>

#include "kernels/support/small_float.h"
#include "model/device/device_weights.h"
#include "model/device/emulated_runtime.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;

std::vector<size_t> Places(const DeviceAxis& axis) {
  std::vector<size_t> places;
  for (size_t i = 0; i < axis.stored(); i++) places.push_back(axis.At(i));
  return places;
}

TEST(DeviceAxis, PutsPartnersOfARotationHalfAPaddedHeadApart) {
  const DeviceAxis halves{.groups = 2, .from = 6, .to = 64, .order = DeviceAxis::Order::kHalves};
  EXPECT_EQ(Places(halves), (std::vector<size_t>{0, 1, 2, 32, 33, 34, 64, 65, 66, 96, 97, 98}));
  const DeviceAxis pairs{.groups = 2, .from = 6, .to = 64, .order = DeviceAxis::Order::kPairs};
  EXPECT_EQ(Places(pairs), (std::vector<size_t>{0, 32, 1, 33, 2, 34, 64, 96, 65, 97, 66, 98}));
  EXPECT_EQ(pairs.padded(), 128u);
  EXPECT_EQ(PlainAxis(21).padded(), 24u);
  EXPECT_EQ(Places(PlainAxis(3)), (std::vector<size_t>{0, 1, 2}));
}

class DeviceWeightsTest : public ::testing::Test {
 protected:
  // A q_proj of two heads of 2, hidden 3: rows 0 .. 3.
  void SetUp() override {
    const std::string config = R"({"model_type": "llama", "vocab_size": 5, "hidden_size": 3, "intermediate_size": 4,
      "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 2, "attention_bias": true,
      "max_position_embeddings": 64, "rms_norm_eps": 1e-5})";
    const absl::Status written = testing::WriteTinyCheckpoint(directory_.path(), config);
    ASSERT_TRUE(written.ok()) << written;
    auto opened = Checkpoint::Open(directory_.path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = std::make_unique<Checkpoint>(*std::move(opened));
  }

  static float Float(uint16_t bits) { return kernels::WidenBF16(bits); }
  static float Rounded(float x) { return Float(checkpoint::F32ToBF16(x)); }

  iha::testing::TempDir directory_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<DeviceRuntime> runtime_ = MakeEmulatedRuntime({});
};

TEST_F(DeviceWeightsTest, AProjectionIsPaddedHeadByHeadWithItsBias) {
  const DeviceWeights weights(*checkpoint_, *runtime_);
  const DeviceAxis rows{.groups = 2, .from = 2, .to = 8, .order = DeviceAxis::Order::kHalves};
  const auto linear = weights.Linear("model.layers.0.self_attn.q_proj", rows, PlainAxis(3), true);
  ASSERT_TRUE(linear.ok()) << linear.status();
  EXPECT_EQ(linear->n, 16u);
  EXPECT_EQ(linear->k, 8u);
  const int64_t shape[] = {4, 3};
  const auto stored = *weights.Read("model.layers.0.self_attn.q_proj.weight", shape);
  const auto bias = *weights.Read("model.layers.0.self_attn.q_proj.bias", std::span(shape).first(1));
  const auto matrix = *linear->weights.ToHost(), vector = *linear->bias.ToHost();
  const std::vector<size_t> places = {0, 4, 8, 12};
  for (size_t row = 0; row < 16; row++) {
    const auto at = std::find(places.begin(), places.end(), row);
    const bool there = at != places.end();
    const auto from = static_cast<size_t>(at - places.begin());
    EXPECT_EQ(Float(vector[row]), there ? Rounded(bias[from]) : 0.0f) << row;
    for (size_t c = 0; c < 8; c++) {
      EXPECT_EQ(Float(matrix[row * 8 + c]), there && c < 3 ? Rounded(stored[from * 3 + c]) : 0.0f) << row << " " << c;
    }
  }
}

// q T for the row vector q of a head: column n of T gives element n.
TEST_F(DeviceWeightsTest, KnockingIsMultipliedIn) {
  const DeviceWeights weights(*checkpoint_, *runtime_);
  const DeviceAxis rows{.groups = 2, .from = 2, .to = 2};
  const std::vector<float> knocking = {1, 2, 0, -1};  // T
  const auto linear = weights.Linear("model.layers.0.self_attn.q_proj", rows, PlainAxis(3), true, knocking);
  ASSERT_TRUE(linear.ok()) << linear.status();
  const int64_t shape[] = {4, 3};
  const auto w = *weights.Read("model.layers.0.self_attn.q_proj.weight", shape);
  const auto matrix = *linear->weights.ToHost();
  for (size_t head = 0; head < 4; head += 2) {
    for (size_t c = 0; c < 3; c++) {
      const float first = w[head * 3 + c], second = w[(head + 1) * 3 + c];
      EXPECT_EQ(Float(matrix[head * 8 + c]), Rounded(first));
      EXPECT_EQ(Float(matrix[(head + 1) * 8 + c]), Rounded(2 * first - second));
    }
  }
}

TEST_F(DeviceWeightsTest, WhatALaunchDidWrongIsNamed) {
  EXPECT_TRUE(runtime_->Check(0, "kernel").ok());
  EXPECT_EQ(runtime_->Check(1, "kernel").message(), "kernel: refuses its shape");
  // Rows that nobody wrote.
  const DeviceWeights weights(*checkpoint_, *runtime_);
  const auto linear = weights.Linear("model.layers.0.mlp.up_proj", PlainAxis(4), PlainAxis(3), false);
  ASSERT_TRUE(linear.ok()) << linear.status();
  const auto x = *DeviceRows::Make(*runtime_, 8, "input rows"), y = *DeviceRows::Make(*runtime_, 8, "output rows");
  const absl::Status status = ApplyLinear(*runtime_, *linear, x.data(), 1, y.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("input rows"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace iha::model
