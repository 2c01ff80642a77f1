// Oracles: what a well-formed expected.safetensors holds, what is refused, and how errors are measured.
#include "model/oracle.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "model/checkpoint/safetensors.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::DType;
using checkpoint::NamedTensor;
using ::testing::HasSubstr;

// Two ids, a vocabulary of two, two layers of width one.
struct File {
  std::vector<int64_t> ids = {3, 4};
  std::vector<double> logits = {1, 2, 3, 4};
  std::vector<double> attn_out = {5, 6};
  std::map<std::string, std::string> metadata = {{"logit_atol", "1e-05"}, {"attn_out_atol", "2e-05"}};
  DType logits_dtype = DType::kF64;
  std::vector<int64_t> logits_shape = {2, 2};
  bool with_ids = true;
  std::string last_layer = "attn_out.1";

  absl::StatusOr<Oracle> Read() const {
    const iha::testing::TempDir dir;
    const std::string path = dir.File("expected.safetensors");
    const int64_t count = static_cast<int64_t>(ids.size());
    std::vector<NamedTensor> tensors = {
        {{"logits", logits_dtype, logits_shape}, std::as_bytes(std::span(logits))},
        {{"attn_out.0", DType::kF64, {2, 1}}, std::as_bytes(std::span(attn_out))},
        {{last_layer, DType::kF64, {2, 1}}, std::as_bytes(std::span(attn_out))},
    };
    if (with_ids) tensors.push_back({{"input_ids", DType::kI64, {count}}, std::as_bytes(std::span(ids))});
    const absl::Status written = checkpoint::WriteSafetensors(path, tensors, metadata);
    EXPECT_TRUE(written.ok()) << written;
    return ReadOracle(path);
  }
};

TEST(Oracle, HoldsIdsLogitsEveryLayerAndTolerances) {
  const auto oracle = File().Read();
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  EXPECT_EQ(oracle->ids, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(oracle->logits, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(oracle->attn_out, (std::vector<std::vector<double>>{{5, 6}, {5, 6}}));
  EXPECT_EQ(oracle->logit_atol, 1e-5);
  EXPECT_EQ(oracle->attn_out_atol, 2e-5);
}

TEST(Oracle, RefusesWhatIsMissingOrOfAnotherForm) {
  const std::pair<File, const char*> cases[] = {
      {{.with_ids = false}, "tensor input_ids: missing"},
      {{.ids = {}}, "tensor input_ids: empty"},
      {{.ids = {3, -1}}, "input_ids: found -1; expected token ids"},
      {{.ids = {3, int64_t{1} << 31}}, "input_ids: found 2147483648"},
      {{.ids = {3, 4, 5}}, "tensor logits: found F64 [2, 2]; expected F64 with 2 dimensions, one row an input id"},
      {{.logits_dtype = DType::kI64}, "tensor logits: found I64 [2, 2]; expected F64"},
      {{.logits_shape = {4}}, "tensor logits: found F64 [4]"},
      {{.last_layer = "attn_out.2"}, "2 attn_out tensors; expected attn_out.0, attn_out.1 and so on without a gap"},
      {{.metadata = {{"logit_atol", "1"}}}, "metadata attn_out_atol: missing"},
      {{.metadata = {{"logit_atol", "1e-5x"}, {"attn_out_atol", "1"}}}, "logit_atol: found \"1e-5x\""},
      {{.metadata = {{"logit_atol", "-1"}, {"attn_out_atol", "1"}}}, "logit_atol: found \"-1\"; expected a number"},
      {{.metadata = {{"logit_atol", "nan"}, {"attn_out_atol", "1"}}}, "logit_atol: found \"nan\""},
  };
  for (const auto& [file, message] : cases) {
    const auto oracle = file.Read();
    EXPECT_EQ(oracle.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(oracle.status().message()), HasSubstr(message));
  }
  EXPECT_EQ(ReadOracle("/nowhere/expected.safetensors").status().code(), absl::StatusCode::kNotFound);
}

TEST(Oracle, ErrorsAreTheLargestDifferenceAndNaNIsNeverFine) {
  const std::vector<float> found = {1, 2, -3};
  EXPECT_EQ(MaxAbsError(found, std::vector<double>{1, 2.5, -3.25}), 0.5);
  EXPECT_EQ(MaxAbsError(found, std::vector<double>{1, 2}), std::numeric_limits<double>::infinity());
  const double nan = std::nan("");
  EXPECT_TRUE(std::isnan(MaxAbsError(found, std::vector<double>{nan, 2, 100})));
  EXPECT_TRUE(std::isnan(MaxAbsError(std::vector<float>{1, std::nanf("")}, std::vector<double>{9, 1})));
  const auto ok = [](double logits, std::vector<double> attn_out) {
    return OracleErrors{.logits = logits, .attn_out = attn_out, .logit_atol = 1, .attn_out_atol = {2, 2}}.ok();
  };
  EXPECT_TRUE(ok(1, {2, 0}));
  EXPECT_FALSE(ok(1.5, {0, 0}));
  EXPECT_FALSE(ok(0, {0, 2.5}));
  EXPECT_FALSE(ok(nan, {0, 0}));
  EXPECT_FALSE(ok(0, {nan, 0}));
}

}  // namespace
}  // namespace iha::model
