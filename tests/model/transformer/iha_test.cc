// Interleaved Head Attention as a layer: what must change no bit: chunks, batches, threads, vector width, and whether
// the cache holds base or mixed keys. The oracles' values: attention_kinds_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/cost.h"
#include "model/oracle.h"
#include "model/transformer/cpu_backend.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/peak_memory.h"
#include "tests/support/roots.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using checkpoint::IhaCacheForm;
using testing::OracleOf;
using testing::Runner;
using testing::SameBits;

constexpr IhaCacheForm kForms[] = {IhaCacheForm::kBase, IhaCacheForm::kMixed};

std::vector<std::string> IhaFolders(const std::string& cases) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(cases + "/attention_oracles")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("iha_") || name.starts_with("special_iha_")) folders.push_back(entry.path().string());
  }
  EXPECT_FALSE(folders.empty());
  std::sort(folders.begin(), folders.end());
  return folders;
}

struct Setting {
  int threads = 1;
  const char* kv_dtype = "f32";
  IhaCacheForm form = IhaCacheForm::kByRule;
};
std::unique_ptr<Backend> Open(const Checkpoint& checkpoint, const Setting& setting = {}) {
  auto backend = OpenCpuBackend(
      checkpoint, {.threads = setting.threads, .numerics = {.kv_dtype = setting.kv_dtype}, .iha_cache = setting.form});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return backend.ok() ? *std::move(backend) : nullptr;
}

std::vector<float> Logits(Backend& backend, const std::vector<int32_t>& ids, size_t chunk) {
  return Runner(backend, 64).Run({ids}, chunk)[0];
}

TEST(Iha, ChunksBatchesThreadsAndCacheFormChangeNoBit) {
  IHA_REQUIRE_CASES(cases);
  for (const std::string& folder : IhaFolders(cases)) {
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const Oracle oracle = OracleOf(folder);
    const std::vector<int32_t> reversed(oracle.ids.rbegin(), oracle.ids.rend());
    for (const char* kv_dtype : {"f32", "bf16"}) {
      SCOPED_TRACE(folder + " " + kv_dtype);
      const auto by_rule = Open(*checkpoint, {.kv_dtype = kv_dtype});
      const std::vector<float> alone = Logits(*by_rule, oracle.ids, 0);
      for (const IhaCacheForm form : kForms) {
        const auto backend = Open(*checkpoint, {.kv_dtype = kv_dtype, .form = form});
        Runner runner(*backend, 64);
        for (const size_t chunk : {0, 1, 3, 7, 64}) {
          EXPECT_TRUE(SameBits(runner.Run({oracle.ids}, chunk)[0], alone))
              << "form " << static_cast<int>(form) << " chunk " << chunk;
        }
        const auto together = runner.Run({reversed, {1, 2, 3}, oracle.ids, {5}, oracle.ids, reversed}, 5);
        EXPECT_TRUE(SameBits(together[2], alone));
        EXPECT_TRUE(SameBits(together[4], alone));
        const auto threaded = Open(*checkpoint, {.threads = 3, .kv_dtype = kv_dtype, .form = form});
        EXPECT_TRUE(SameBits(Logits(*threaded, oracle.ids, 7), alone));
      }
    }
  }
}

TEST(Iha, VectorWidthChangesNoBit) {
  IHA_REQUIRE_CASES(cases);
  for (const char* name : {"iha_h20_p20", "iha_head64_n200", "iha_p2_qknorm_post_mix", "iha_xsa_pseudo"}) {
    SCOPED_TRACE(name);
    const auto checkpoint = Checkpoint::Open(cases + "/attention_oracles/" + name);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const Oracle oracle = OracleOf(cases + "/attention_oracles/" + name);
    const std::vector<float> want = Logits(*Open(*checkpoint), oracle.ids, 0);
    kernels::ForEachTarget([&](const kernels::SimdTarget&) {
      for (const IhaCacheForm form : kForms) {
        EXPECT_TRUE(SameBits(Logits(*Open(*checkpoint, {.form = form}), oracle.ids, 50), want));
      }
    });
  }
}

// The special cases of the format: identity mixing of one pseudo head is ordinary attention, bit for bit; copies of
// every head, token by token, are it up to rounding.
TEST(Iha, SpecialCasesAreGlobalAttention) {
  IHA_REQUIRE_CASES(cases);
  const std::string root = cases + "/attention_oracles/special_";
  const auto global = Checkpoint::Open(root + "base_global"), identity = Checkpoint::Open(root + "iha_p1_identity"),
             copies = Checkpoint::Open(root + "iha_p4_copies");
  ASSERT_TRUE(global.ok() && identity.ok() && copies.ok());
  const Oracle oracle = OracleOf(root + "base_global");
  for (const char* kv_dtype : {"f32", "bf16"}) {
    const std::vector<float> want = Logits(*Open(*global, {.kv_dtype = kv_dtype}), oracle.ids, 0);
    for (const IhaCacheForm form : kForms) {
      const Setting setting{.kv_dtype = kv_dtype, .form = form};
      EXPECT_TRUE(SameBits(Logits(*Open(*identity, setting), oracle.ids, 3), want));
      const std::vector<float> found = Logits(*Open(*copies, setting), oracle.ids, 3);
      // Two correct fp32 engines: each within the oracle's tolerance of float64. A copied key is the base key itself
      // (1 x k, rounded once), so a bf16 cache rounds nothing more.
      EXPECT_LE(MaxAbsError(found, std::vector<double>(want.begin(), want.end())), 2 * oracle.logit_atol) << kv_dtype;
    }
  }
}

TEST(Iha, CacheBytesOfBothFormsAreWhatTheCostModelSays) {
  IHA_REQUIRE_CASES(cases);
  for (const char* name : {"iha_h20_p20", "iha_p2_algorithm1", "iha_p4_equals_h_stp", "iha_p2_qknorm_post_mix"}) {
    const auto checkpoint = Checkpoint::Open(cases + "/attention_oracles/" + name);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    for (const IhaCacheForm form : {IhaCacheForm::kByRule, IhaCacheForm::kBase, IhaCacheForm::kMixed}) {
      const int64_t numbers = KvNumbersPerToken(checkpoint->config(), form);
      EXPECT_EQ(Open(*checkpoint, {.form = form})->info().kv_block_bytes, numbers * 4 * kKvBlockTokens) << name;
    }
  }
}

// 2000 tokens of 4 pseudo heads: one matrix of scores would take 256 MB a head. Scratch is what a step's rows need,
// 1 MB a buffer here, and 2 MB of tiles a thread.
TEST(Iha, MemoryGrowsWithTheTokensOnly) {
  IHA_REQUIRE_CASES(cases);
  const auto checkpoint = Checkpoint::Open(cases + "/attention_oracles/iha_p4_equals_h_tps");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::vector<int32_t> ids(2000);
  for (size_t i = 0; i < ids.size(); i++) ids[i] = static_cast<int32_t>(i * 7 % 23);
  for (const IhaCacheForm form : kForms) {
    const auto backend = Open(*checkpoint, {.threads = 2, .form = form});
    ASSERT_TRUE(backend->ReserveCache(32).ok());
    const iha::testing::PeakMemory peak;
    const absl::Status status = RunSequences(
        *backend, std::vector<std::vector<int32_t>>{ids}, 0,
        [](size_t, std::span<const float> rows) {
          EXPECT_TRUE(std::isfinite(rows.back()));
          return absl::OkStatus();
        },
        nullptr);
    ASSERT_TRUE(status.ok()) << status;
    if (iha::testing::kMemoryIsTheProgramsOwn) {
      EXPECT_LT(peak.GrowthKib(), 48 * 1024);
    }
  }
}

}  // namespace
}  // namespace iha::model
