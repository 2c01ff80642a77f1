// Where layers lie in blocks, and layers with windows that let go of theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/device/device_backend.h"
#include "model/device/device_cache.h"
#include "model/device/emulated_backend.h"
#include "model/device/emulated_runtime.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using ::testing::ElementsAre;

constexpr size_t kPage = size_t{64} * 2 * 64;  // 64 rows of 2 heads of 64

// A layer that sees all, one with a window and two pseudo heads, one whose values are twice as wide.
DeviceCache ThreeLayers() { return {2, 64, {{1, 64, 0}, {2, 64, 20}, {1, 128, 0}}}; }

TEST(DeviceCache, LayersOfAWindowShareABlock) {
  const auto runtime = MakeEmulatedRuntime({});
  DeviceCache cache = ThreeLayers();
  EXPECT_THAT(cache.windows(), ElementsAre(0, 20));
  EXPECT_EQ(cache.pages_per_block(), 4u);
  EXPECT_EQ(cache.block_bytes(), static_cast<int64_t>(4 * kPage * 2));
  ASSERT_TRUE(cache.Reserve(*runtime, 3).ok());
  const uint16_t* const begin = cache.At(0).pages.k_pages;
  const auto at = [&](const uint16_t* pages) { return static_cast<size_t>(pages - begin); };
  EXPECT_EQ(cache.At(0).group, 0u);
  EXPECT_EQ(at(cache.At(0).pages.v_pages), kPage);
  EXPECT_EQ(cache.At(1).group, 1u);
  EXPECT_EQ(at(cache.At(1).pages.k_pages), 0u);
  EXPECT_EQ(at(cache.At(1).pages.v_pages), 2 * kPage);
  EXPECT_EQ(cache.At(2).group, 0u);
  EXPECT_EQ(at(cache.At(2).pages.k_pages), 2 * kPage);
  EXPECT_EQ(at(cache.At(2).pages.v_pages), 3 * kPage);
  EXPECT_EQ(cache.At(2).pages.d_v, 128u);
}

TEST(DeviceCache, ACopiedBlockIsCopiedWhole) {
  const auto runtime = MakeEmulatedRuntime({});
  DeviceCache cache = ThreeLayers();
  ASSERT_TRUE(cache.Reserve(*runtime, 3).ok());
  uint16_t* const begin = cache.At(0).pages.k_pages;
  std::vector<uint16_t> bits(12 * kPage);
  for (size_t i = 0; i < bits.size(); i++) bits[i] = static_cast<uint16_t>(i / 64);
  ASSERT_TRUE(runtime->Upload(begin, bits.data(), bits.size() * 2).ok());
  ASSERT_TRUE(cache.CopyBlock(*runtime, 2, 1).ok());
  std::copy_n(bits.begin() + 8 * kPage, 4 * kPage, bits.begin() + 4 * kPage);
  std::vector<uint16_t> got(bits.size());
  ASSERT_TRUE(runtime->Download(got.data(), begin, got.size() * 2).ok());
  EXPECT_TRUE(got == bits);
}

TEST(DeviceCache, MorePagesThanKernelsCountAreRefused) {
  const auto runtime = MakeEmulatedRuntime({});
  DeviceCache cache(1, 64, {{1 << 16, 64, 0}});
  EXPECT_EQ(cache.Reserve(*runtime, 1 << 14).code(), absl::StatusCode::kResourceExhausted);
}

// Of three blocks of the layer with a window two are there at a time: the third is the first's again. The same bits as
// with all of them, at once.
TEST(Device, LayersWithWindowsLetGoOfTheirBlocks) {
  iha::testing::TempDir directory;
  ASSERT_TRUE(testing::WriteTinyCheckpoint(directory.path(), R"({"model_type": "llama", "vocab_size": 40,
      "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8,
      "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "iha_eval": {"version": 1, "mlp": "gated",
      "pattern": "repeat", "attention": [
      {"kind": "local", "rope_pairing": "half", "qk_norm": "none", "window": 20},
      {"kind": "talking_heads", "rope_pairing": "half", "window": null, "qk_norm": "none"}]}})")
                  .ok());
  const auto checkpoint = checkpoint::Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto open = [&] { return *OpenEmulatedBackend(*checkpoint, EmulatedNumerics()); };
  const std::vector<int32_t> ids = testing::RandomIds(140, 40, 7);
  const std::unique_ptr<Backend> whole = open();
  const std::vector<float> want = testing::Runner(*whole, 3).Run({ids}, 0)[0];
  const std::unique_ptr<Backend> backend = open();
  ASSERT_THAT(backend->info().kv_windows, ElementsAre(0, 20));
  ASSERT_TRUE(backend->ReserveCache(5).ok());
  std::vector<float> got;
  for (int64_t start = 0; start < 140; start += 16) {
    const int64_t count = std::min<int64_t>(16, 140 - start);
    std::vector<int32_t> blocks, rows;
    const auto entries = static_cast<int32_t>((start + count - 1) / 64 + 1);
    for (int32_t block = 0; block < entries; block++) blocks.push_back(block);
    for (int32_t block = 0; block < entries; block++) {
      blocks.push_back((block + 1) * 64 > FirstSeen(20, start) ? 3 + block % 2 : kNoKvBlock);
    }
    for (int32_t row = 0; row < count; row++) rows.push_back(row);
    std::vector<float> logits(static_cast<size_t>(count) * 40);
    const Segment step[] = {{.tokens = std::span(ids).subspan(static_cast<size_t>(start), static_cast<size_t>(count)),
                             .start = start,
                             .blocks = blocks,
                             .logit_rows = rows}};
    const absl::Status status = backend->Forward(step, logits, nullptr);
    ASSERT_TRUE(status.ok()) << status;
    got.insert(got.end(), logits.begin(), logits.end());
  }
  EXPECT_TRUE(testing::SameBits(got, want));
}

}  // namespace
}  // namespace iha::model
