#include "model/checkpoint/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/checkpoint/test_files.h"

namespace iha::checkpoint {
namespace {

std::string IdText(const std::optional<int32_t>& id) { return id.has_value() ? std::to_string(*id) : "none"; }

// docs/checkpoints.md restates the table of defaults for people; it must say what the code does.
TEST(FamiliesTest, TheDocumentedDefaultsAreTheCodes) {
  const std::string document = testing::ReadText("docs/checkpoints.md");
  ASSERT_FALSE(document.empty()) << "run from the repository root";
  for (const FamilyRow& row : Families()) {
    const std::string line = fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {}, {} |\n", row.model_type,
        row.vocab_size, row.hidden_size, row.intermediate_size, row.num_layers, row.num_heads,
        row.num_kv_heads == 0 ? "heads" : std::to_string(row.num_kv_heads),
        row.head_dim == 0 ? "hidden / heads" : std::to_string(row.head_dim), NameOf(row.activation), row.max_positions,
        row.rms_norm_eps, static_cast<int64_t>(row.rope_theta), row.tied_embeddings,
        row.sliding_window < 0 ? "none" : std::to_string(row.sliding_window), IdText(row.bos), IdText(row.eos));
    EXPECT_THAT(document, ::testing::HasSubstr(line));
  }
}

TEST(FamiliesTest, NamesFindTheirRow) {
  for (const FamilyRow& row : Families()) {
    EXPECT_EQ(FindFamily(row.model_type), &row);
    EXPECT_STREQ(NameOf(row.family), row.model_type);
  }
  EXPECT_EQ(FindFamily("Llama"), nullptr);
  EXPECT_EQ(KnownFamilies(), "llama, mistral, qwen2, qwen3, gemma3_text");
}

}  // namespace
}  // namespace iha::checkpoint
