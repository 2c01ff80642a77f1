// Every oracle, run through LibTorch: a third implementation beside the kernels and the program that made the values.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/oracle.h"
#include "tests/model/torch/require_torch.h"
#include "tests/support/roots.h"

namespace iha::model {
namespace {

std::vector<std::string> Folders(const std::string& root) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (std::filesystem::exists(entry.path() / "expected.safetensors")) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Tolerances are the cases' own: eight times the error of fp32 against float64.
void ExpectWithinTolerance(const std::vector<std::string>& folders, size_t chunk) {
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    const auto errors = CheckOracle(folder, {.threads = 2, .numerics = {.backend = "torch"}}, chunk);
    ASSERT_TRUE(errors.ok()) << errors.status();
    EXPECT_LE(errors->logits, errors->logit_atol);
    EXPECT_TRUE(errors->ok());
  }
}

TEST(TorchOracles, AttentionWhole) {
  IHA_REQUIRE_TORCH();
  IHA_REQUIRE_CASES(cases);
  const auto folders = Folders(cases + "/attention_oracles");
  EXPECT_GE(folders.size(), 47u);
  ExpectWithinTolerance(folders, 0);
}

TEST(TorchOracles, AttentionInChunks) {
  IHA_REQUIRE_TORCH();
  IHA_REQUIRE_CASES(cases);
  ExpectWithinTolerance(Folders(cases + "/attention_oracles"), 7);
}

TEST(TorchOracles, FamiliesWhole) {
  IHA_REQUIRE_TORCH();
  IHA_REQUIRE_CASES(cases);
  const auto folders = Folders(cases + "/hf_families");
  EXPECT_GE(folders.size(), 30u);
  ExpectWithinTolerance(folders, 0);
}

TEST(TorchOracles, FamiliesTokenByToken) {
  IHA_REQUIRE_TORCH();
  IHA_REQUIRE_CASES(cases);
  ExpectWithinTolerance(Folders(cases + "/hf_families"), 1);
}

}  // namespace
}  // namespace iha::model
