// Every plain family against the float64 logits that Hugging Face transformers gives (cases hf_families), and the
// exactness axes: chunks, batches, threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/checkpoint/checkpoint.h"
#include "model/oracle.h"
#include "model/step_check.h"
#include "model/transformer/cpu_backend.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/roots.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using ::testing::HasSubstr;
using testing::OracleOf;
using testing::Runner;
using testing::SameBits;

std::vector<std::string> FamilyFolders(const std::string& cases) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(cases + "/hf_families")) {
    if (entry.is_directory()) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::unique_ptr<Backend> Open(const Checkpoint& checkpoint, int threads) {
  auto backend = OpenCpuBackend(checkpoint, {.threads = threads, .numerics = {}});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return backend.ok() ? *std::move(backend) : nullptr;
}

// The cases' own tolerances: eight times the error of transformers' float32 runs against float64.
TEST(Families, LogitsAndAttentionMatchTransformers) {
  IHA_REQUIRE_CASES(cases);
  const auto folders = FamilyFolders(cases);
  ASSERT_EQ(folders.size(), 30u);
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    const auto errors = CheckOracle(folder, {.threads = 2, .numerics = {}}, 0);
    ASSERT_TRUE(errors.ok()) << errors.status();
    EXPECT_LE(errors->logits, errors->logit_atol);
    ASSERT_GE(errors->attn_out.size(), 2u);
    for (size_t l = 0; l < errors->attn_out.size(); l++) {
      EXPECT_LE(errors->attn_out[l], errors->attn_out_atol[l]) << "layer " << l;
    }
    EXPECT_TRUE(errors->ok());
  }
}

// Both config forms of a case describe the same function, so they must give the same bits.
TEST(Families, BothConfigFormsGiveTheSameBits) {
  IHA_REQUIRE_CASES(cases);
  for (const std::string& folder : FamilyFolders(cases)) {
    if (folder.ends_with(".v4")) continue;
    SCOPED_TRACE(folder);
    const auto v5 = Checkpoint::Open(folder);
    const auto v4 = Checkpoint::Open(folder + ".v4");
    ASSERT_TRUE(v5.ok() && v4.ok());
    EXPECT_EQ(v5->WeightsDigest(), v4->WeightsDigest());
    const Oracle oracle = OracleOf(folder);
    const auto one = Open(*v5, 1);
    const auto two = Open(*v4, 1);
    EXPECT_TRUE(SameBits(Runner(*one, 8).Run({oracle.ids}, 0)[0], Runner(*two, 8).Run({oracle.ids}, 0)[0]));
  }
}

TEST(Families, ChunksBatchesAndThreadsChangeNoBit) {
  IHA_REQUIRE_CASES(cases);
  for (const std::string& folder : FamilyFolders(cases)) {
    if (folder.ends_with(".v4")) continue;
    SCOPED_TRACE(folder);
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const Oracle oracle = OracleOf(folder);
    const auto backend = Open(*checkpoint, 1);
    Runner whole(*backend, 64);
    const std::vector<float> alone = whole.Run({oracle.ids}, 0)[0];
    for (const size_t chunk : {1, 3, 7, 64})
      EXPECT_TRUE(SameBits(whole.Run({oracle.ids}, chunk)[0], alone)) << "chunk " << chunk;
    // Neighbours of other lengths and contents in the same steps.
    std::vector<int32_t> reversed(oracle.ids.rbegin(), oracle.ids.rend());
    const std::vector<std::vector<int32_t>> batch = {reversed, {1, 2, 3},  oracle.ids, reversed,
                                                     {5},      oracle.ids, {7, 7}};
    const auto together = whole.Run(batch, 5);
    EXPECT_TRUE(SameBits(together[2], alone));
    EXPECT_TRUE(SameBits(together[5], alone));
    for (const int threads : {2, 3}) {
      const auto other = Open(*checkpoint, threads);
      EXPECT_TRUE(SameBits(Runner(*other, 64).Run({oracle.ids}, 7)[0], alone)) << threads << " threads";
    }
  }
}

// Rows whose logits nobody asks for leave the last block early: the others, and what is cached, keep their bits.
TEST(Families, SomeRowsHaveTheBitsOfAll) {
  IHA_REQUIRE_CASES(cases);
  for (const std::string& folder : FamilyFolders(cases)) {
    if (folder.ends_with(".v4")) continue;
    SCOPED_TRACE(folder);
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const std::vector<int32_t> ids = OracleOf(folder).ids;
    ASSERT_LE(ids.size(), static_cast<size_t>(kKvBlockTokens)) << "a block is enough";
    const auto backend = Open(*checkpoint, 2);
    const std::vector<float> all = Runner(*backend, 64).Run({ids}, 0)[0];
    const size_t vocab = static_cast<size_t>(backend->info().vocab_size), half = ids.size() / 2;
    const int32_t groups = static_cast<int32_t>(backend->info().kv_windows.size());
    std::vector<int32_t> blocks_a, blocks_b;
    for (int32_t group = 0; group < groups; group++) {
      blocks_a.push_back(group);
      blocks_b.push_back(groups + group);
    }
    const auto step = [&](size_t begin, size_t end, const std::vector<int32_t>& rows_a,
                          const std::vector<int32_t>& rows_b) {
      const std::span<const int32_t> tokens = std::span(ids).subspan(begin, end - begin);
      const int64_t start = static_cast<int64_t>(begin);
      const Segment segments[] = {{.tokens = tokens, .start = start, .blocks = blocks_a, .logit_rows = rows_a},
                                  {.tokens = tokens, .start = start, .blocks = blocks_b, .logit_rows = rows_b}};
      std::vector<float> logits((rows_a.size() + rows_b.size()) * vocab), expected;
      ASSERT_TRUE(backend->Forward(segments, logits, nullptr).ok());
      for (const auto* rows : {&rows_a, &rows_b}) {
        for (const int32_t row : *rows) {
          const auto from = all.begin() + static_cast<std::ptrdiff_t>((begin + static_cast<size_t>(row)) * vocab);
          expected.insert(expected.end(), from, from + static_cast<std::ptrdiff_t>(vocab));
        }
      }
      EXPECT_TRUE(logits.empty() || SameBits(logits, expected));
    };
    step(0, half, {}, {});
    step(half, ids.size(), {1, 4}, {0, static_cast<int32_t>(ids.size() - half) - 1});
    step(0, half, {2}, {});
    step(0, half, {}, {0, 1, 3});
  }
}

TEST(CpuBackend, RefusesWhatTheContractForbids) {
  IHA_REQUIRE_CASES(cases);
  const auto checkpoint = Checkpoint::Open(cases + "/hf_families/llama_default");
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(OpenCpuBackend(*checkpoint, {.threads = 1, .numerics = {.backend = "cpu-exact", .kv_dtype = "f8"}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  const auto backend = Open(*checkpoint, 1);
  EXPECT_EQ(backend->ReserveCache(0).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(backend->ReserveCache(2).ok());
  std::vector<float> logits(static_cast<size_t>(backend->info().vocab_size));
  const std::vector<int32_t> rows = {0};
  const std::vector<int32_t> table = {0};
  const auto forward = [&](std::vector<int32_t> ids, int64_t start, std::vector<int32_t> blocks) {
    const Segment segment{.tokens = ids, .start = start, .blocks = blocks, .logit_rows = rows};
    return backend->Forward({&segment, 1}, logits, nullptr).code();
  };
  EXPECT_EQ(forward({1}, 0, {0}), absl::StatusCode::kOk);
  EXPECT_EQ(forward({-1}, 0, {0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(forward({backend->info().vocab_size}, 0, {0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(forward({1}, 64, {0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(forward({1}, 0, {2}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(forward({1}, backend->info().context_tokens, {0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(forward({1}, 0, {kNoKvBlock}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend->CopyBlock(0, 5).code(), absl::StatusCode::kInvalidArgument);
}

TEST(StepCheck, NoBlockOnlyWhereNoRowLooks) {
  const ModelInfo info{.family = "none",
                       .vocab_size = 9,
                       .context_tokens = 512,
                       .kv_block_bytes = 64,
                       .kv_windows = {0, 64},
                       .numerics_id = "",
                       .weights = {}};
  const std::vector<int32_t> ids = {1};
  const auto check = [&](int64_t start, const std::vector<int32_t>& blocks) {
    const Segment segment{.tokens = ids, .start = start, .blocks = blocks, .logit_rows = {}};
    return CheckStep({&segment, 1}, 0, info, 8);
  };
  EXPECT_TRUE(check(127, {0, 1, kNoKvBlock, 2}).ok()) << "position 127 sees 64 and later";
  EXPECT_THAT(std::string(check(126, {0, 1, kNoKvBlock, 2}).message()),
              HasSubstr("block id -1: expected an id below 8"));
  EXPECT_FALSE(check(127, {kNoKvBlock, 1, kNoKvBlock, 2}).ok()) << "a group that sees all";
  EXPECT_FALSE(check(127, {0, 1, kNoKvBlock, kNoKvBlock}).ok()) << "the block that is written";
  EXPECT_FALSE(check(127, {0, 1, -2, 2}).ok());
  EXPECT_THAT(std::string(check(127, {0, 1, 2}).message()), HasSubstr("3 block ids for 2 layer groups"));
  EXPECT_THAT(std::string(check(128, {0, 1, 2, 3}).message()), HasSubstr("does not cover position 128"));
}

// A bf16 cache is another numerics id, and close to the fp32 one.
TEST(CpuBackend, Bf16CacheIsItsOwnNumericsId) {
  IHA_REQUIRE_CASES(cases);
  const auto checkpoint = Checkpoint::Open(cases + "/hf_families/llama_default");
  ASSERT_TRUE(checkpoint.ok());
  const Oracle oracle = OracleOf(cases + "/hf_families/llama_default");
  const auto exact = Open(*checkpoint, 1);
  const auto rounded = *OpenCpuBackend(*checkpoint, {.threads = 1, .numerics = {.kv_dtype = "bf16"}});
  EXPECT_NE(exact->info().numerics_id, rounded->info().numerics_id);
  const auto a = Runner(*exact, 4).Run({oracle.ids}, 0)[0];
  const auto b = Runner(*rounded, 4).Run({oracle.ids}, 5)[0];
  EXPECT_NE(a, b);
  // Rounding K and V to 8 bits moves each score by at most 2^-8 of it; scores spread by a few units here, so logits
  // move by some tenths at most, where another token's key would move them by several units.
  EXPECT_LT(MaxAbsError(b, std::vector<double>(a.begin(), a.end())), 0.5);
}

}  // namespace
}  // namespace iha::model
