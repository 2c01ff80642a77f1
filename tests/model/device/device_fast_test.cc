// Numerics `fast` (device_fast.h) on the emulated device: keys of decode steps in pieces, and what a library is asked
// for: a stand-in that computes the same sums in another order.
#include "model/device/device_fast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/support/small_float.h"
#include "model/checkpoint/tensor.h"
#include "model/device/bf16_bound.h"
#include "model/device/device_backend.h"
#include "model/device/emulated_backend.h"
#include "tests/model/device/forwarding_runtime.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using testing::RandomIds;
using testing::Runner;
using testing::SameBits;

constexpr char kHead[] = R"({"model_type": "llama", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 16,
    "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5, )";

std::string Config(const std::string& kinds, int layers) {
  return kHead + fmt::format(R"("num_hidden_layers": {}, "iha_eval": {{"version": 1, "mlp": "gated",
      "pattern": "per_layer", "attention": [{}]}}}})",
                             layers, kinds);
}
std::string Iha(const std::string& mask, const std::string& window) {
  return fmt::format(R"({{"kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo",
      "collapse": "per_head", "mask": "{}", "rope_positions": "virtual", "rope_pairing": "half", "window": {},
      "qk_norm": "none"}})",
                     mask, window);
}
constexpr char kGlobal[] = R"({"kind": "global", "rope_pairing": "half", "qk_norm": "none"})";

// Of two engines that both keep within the bound: twice it.
double Tolerance(const Checkpoint& checkpoint, const std::vector<float>& logits) {
  const auto variances = ScoreVariances(checkpoint);
  EXPECT_TRUE(variances.ok()) << variances.status();
  const double relative = Bf16ErrorsOf(checkpoint.config(), *variances).logits;
  return 2 * Bf16Bound(relative, std::vector<double>(logits.begin(), logits.end()));
}
double MaxDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); i++) {
    const double difference = std::abs(double{a[i]} - double{b[i]});
    most = difference > most || std::isnan(difference) ? difference : most;
  }
  return most;
}

struct Asked {
  int products = 0;
  int prompts = 0;
  uint32_t longest = 0;
};

// Sums in double: another order than the kernels', as a library has.
class Library final : public DeviceFast {
 public:
  Library(Asked& asked, DeviceRuntime& runtime) : asked_(asked), runtime_(runtime) {}
  uint32_t processors() const override { return 0; }
  absl::StatusOr<bool> Matmul(const kernels::MatmulGpuArgs& a) override {
    EXPECT_EQ(a.y == nullptr, a.y_float != nullptr);
    if (a.y == nullptr) return false;  // logits go to the kernel, as if the shape had none
    asked_.products++;
    std::vector<uint16_t> y(size_t{a.m} * a.ldy);
    for (size_t m = 0; m < a.m; m++) {
      for (size_t n = 0; n < a.n; n++) {
        double sum = 0;
        for (size_t k = 0; k < a.k; k++) {
          sum += double{kernels::WidenBF16(a.x[m * a.ldx + k])} * double{kernels::WidenBF16(a.w[n * a.ldw + k])};
        }
        y[m * a.ldy + n] = checkpoint::F32ToBF16(static_cast<float>(sum));
      }
    }
    return Put(a.y, y);
  }
  absl::StatusOr<bool> CausalAttention(const Prompt& p) override {
    asked_.prompts++;
    asked_.longest = std::max(asked_.longest, p.rows);
    std::vector<uint16_t> out(size_t{p.rows} * p.heads * p.d);
    for (size_t head = 0; head < p.heads; head++) {
      for (size_t row = 0; row < p.rows; row++) Attend(p, row, head, out.data() + (row * p.heads + head) * p.d);
    }
    return Put(p.out, out);
  }

 private:
  absl::StatusOr<bool> Put(uint16_t* to, const std::vector<uint16_t>& values) {
    const absl::Status put = runtime_.Upload(to, values.data(), values.size() * sizeof(uint16_t));
    if (!put.ok()) return put;
    return true;
  }
  static void Attend(const Prompt& p, size_t row, size_t head, uint16_t* out) {
    const size_t kv_head = head / (p.heads / p.kv_heads);
    const auto value = [&](const uint16_t* x, size_t r, size_t h, size_t heads, size_t i) {
      return double{kernels::WidenBF16(x[(r * heads + h) * p.d + i])};
    };
    std::vector<double> weights(row + 1), sums(p.d);
    double total = 0;
    for (size_t j = 0; j <= row; j++) {
      double score = 0;
      for (size_t i = 0; i < p.d; i++)
        score += value(p.q, row, head, p.heads, i) * value(p.k, j, kv_head, p.kv_heads, i);
      weights[j] = std::exp(score * p.scale);
      total += weights[j];
    }
    for (size_t j = 0; j <= row; j++) {
      for (size_t i = 0; i < p.d; i++) sums[i] += weights[j] * value(p.v, j, kv_head, p.kv_heads, i);
    }
    for (size_t i = 0; i < p.d; i++) out[i] = checkpoint::F32ToBF16(static_cast<float>(sums[i] / total));
  }

  Asked& asked_;
  DeviceRuntime& runtime_;
};

// The emulated device with a library.
class RuntimeWithLibrary final : public testing::ForwardingRuntime {
 public:
  explicit RuntimeWithLibrary(Asked& asked) : library_(asked, device()) {}
  DeviceFast* fast() override { return &library_; }

 private:
  Library library_;
};

class DeviceFastTest : public ::testing::Test {
 protected:
  void Write(const std::string& config) {
    ASSERT_TRUE(testing::WriteTinyCheckpoint(folder_.path(), config).ok());
    auto opened = Checkpoint::Open(folder_.path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_.emplace(*std::move(opened));
  }
  std::unique_ptr<Backend> Emulated(const NumericsSpec& numerics) {
    auto backend = OpenEmulatedBackend(*checkpoint_, numerics);
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }
  std::unique_ptr<Backend> WithLibrary() {
    auto backend = OpenDeviceBackend(*checkpoint_, EmulatedFastNumerics(), std::make_unique<RuntimeWithLibrary>(asked_),
                                     {.record_decode = false});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }

  iha::testing::TempDir folder_;
  std::optional<Checkpoint> checkpoint_;
  Asked asked_;
};

// The last tokens of a sequence longer than a piece, one a step: recorded and replayed too, each step is within the
// bound of the same tokens in exact numerics, and of other bits (pieces were merged).
TEST_F(DeviceFastTest, DecodeStepsInPieces) {
  Write(Config(Iha("flat_causal", "null") + ", " + kGlobal, 2));
  const std::vector<int32_t> ids = RandomIds(300, 40, 1);
  const auto exact = Emulated(EmulatedNumerics()), fast = Emulated(EmulatedFastNumerics());
  EXPECT_THAT(fast->info().numerics_id, ::testing::StartsWith("cuda-fast-emulated/"));
  const auto last_rows = [&](Backend& backend) {
    EXPECT_TRUE(backend.ReserveCache(10).ok());
    const std::vector<int32_t> blocks = {0, 1, 2, 3, 4}, none, only = {0};
    std::vector<float> all;
    const std::span<const int32_t> tokens(ids);
    const Segment prompt[] = {{.tokens = tokens.first(296), .start = 0, .blocks = blocks, .logit_rows = none}};
    EXPECT_TRUE(backend.Forward(prompt, {}, nullptr).ok());
    for (int64_t at = 296; at < 300; at++) {
      std::vector<float> row(40);
      const Segment step[] = {
          {.tokens = tokens.subspan(static_cast<size_t>(at), 1), .start = at, .blocks = blocks, .logit_rows = only}};
      const absl::Status status = backend.Forward(step, row, nullptr);
      EXPECT_TRUE(status.ok()) << status;
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  };
  const std::vector<float> expected = last_rows(*exact), found = last_rows(*fast);
  EXPECT_LE(MaxDifference(found, expected), Tolerance(*checkpoint_, expected));
  EXPECT_FALSE(SameBits(found, expected));
}

TEST_F(DeviceFastTest, WholePromptsGoToTheLibrary) {
  Write(Config(Iha("flat_causal", "null") + ", " + kGlobal, 2));
  const std::vector<int32_t> ids = RandomIds(130, 40, 1);
  const std::vector<float> expected = Runner(*Emulated(EmulatedNumerics()), 4).Run({ids}, 0)[0];
  const auto fast = WithLibrary();
  Runner runner(*fast, 8);
  const std::vector<float> found = runner.Run({ids}, 0)[0];
  EXPECT_LE(MaxDifference(found, expected), Tolerance(*checkpoint_, expected));
  EXPECT_EQ(asked_.prompts, 2);     // a layer each
  EXPECT_EQ(asked_.longest, 260u);  // virtual tokens
  EXPECT_EQ(asked_.products, 14);   // q, k, v, o, gate, up, down
  // Two of different lengths: each by itself.
  asked_ = {};
  const std::vector<int32_t> part(ids.begin(), ids.begin() + 128);
  const auto both = runner.Run({part, ids}, 0);
  EXPECT_EQ(asked_.prompts, 4);
  EXPECT_LE(MaxDifference(both[1], expected), Tolerance(*checkpoint_, expected));
  EXPECT_LE(MaxDifference(both[0], {expected.begin(), expected.begin() + 128 * 40}), Tolerance(*checkpoint_, expected));
}

// Prompts behind others, too short ones, and masks that are not plainly causal stay with the kernels.
TEST_F(DeviceFastTest, WhatALibraryIsNotAskedFor) {
  const std::vector<int32_t> ids = RandomIds(130, 40, 1);
  const struct {
    std::string kinds;
    size_t tokens, chunk;
    int prompts;
  } cases[] = {{Iha("flat_causal", "null"), 63, 0, 0},    // 126 virtual tokens
               {Iha("flat_causal", "null"), 64, 0, 1},    //
               {Iha("flat_causal", "null"), 128, 64, 1},  // the second half is behind the first
               {Iha("token_causal", "null"), 64, 0, 0},   //
               {Iha("flat_causal", R"({"unit": "token", "size": 63})"), 64, 0, 0},      //
               {Iha("flat_causal", R"({"unit": "token", "size": 64})"), 64, 0, 1},      // hides nothing
               {Iha("flat_causal", R"({"unit": "virtual", "size": 127})"), 64, 0, 0}};  //
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} tokens by {} of {}", c.tokens, c.chunk, c.kinds));
    Write(Config(c.kinds, 1));
    asked_ = {};
    const std::vector<int32_t> some(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(c.tokens));
    const std::vector<float> expected = Runner(*Emulated(EmulatedNumerics()), 4).Run({some}, 0)[0];
    const auto fast = WithLibrary();
    const std::vector<float> found = Runner(*fast, 4).Run({some}, c.chunk)[0];
    EXPECT_EQ(asked_.prompts, c.prompts);
    EXPECT_LE(MaxDifference(found, expected), Tolerance(*checkpoint_, expected));
  }
}

}  // namespace
}  // namespace iha::model
