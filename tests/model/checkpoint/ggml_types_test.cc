#include "model/checkpoint/gguf/ggml_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "common/digest.h"
#include "tests/model/checkpoint/gguf_builder.h"

namespace iha::checkpoint {
namespace {

using testing::GgufBuilder;

// Blocks by hand; the expected values are scale * quant (+ minimum) in exact arithmetic.
TEST(GgmlTypesTest, BlocksDequantise) {
  std::string nibbles;  // low halves 0..15, high halves 15..0
  for (int i = 0; i < 16; ++i) nibbles += static_cast<char>(i | (15 - i) << 4);
  const auto half = [](uint16_t bits) { return GgufBuilder::Bytes(bits); };
  const auto run = [](uint32_t type, const std::string& block) {
    std::vector<float> out(32);
    Dequantise(GgmlTypeOf(type), std::as_bytes(std::span(block)), out);
    return out;
  };
  const std::vector<float> q4_0 = run(2, half(0x3800) + nibbles);                 // scale 0.5
  const std::vector<float> q4_1 = run(3, half(0x3800) + half(0xc000) + nibbles);  // minimum -2
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes += static_cast<char>(i * 8 - 128);
  const std::vector<float> q8_0 = run(8, half(0x3400) + bytes);  // scale 0.25
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(q4_0[i], 0.5F * static_cast<float>(i - 8));
    EXPECT_EQ(q4_0[i + 16], 0.5F * static_cast<float>(7 - i));
    EXPECT_EQ(q4_1[i], 0.5F * static_cast<float>(i) - 2);
    EXPECT_EQ(q4_1[i + 16], 0.5F * static_cast<float>(15 - i) - 2);
  }
  for (int i = 0; i < 32; ++i) EXPECT_EQ(q8_0[i], 0.25F * static_cast<float>(i * 8 - 128));
}

// What tools/goldens/gguf_quants.py prints: digests of the values that the `gguf` package 0.19.0 makes of random
// blocks.
struct QuantGolden {
  uint32_t id;
  const char* name;
  const char* sha256;
};
const QuantGolden kQuantGoldens[] = {
    {0, "F32", "5fc3a4f62781713430ccf7dc9a4108e570c5f5b034df9b7ebc2ecf9439962743"},
    {1, "F16", "3f10543e5406f363b8aa301a7430f15992c2472ffad972cec480af858ddfaded"},
    {30, "BF16", "d0b06709bef39a85523b690b0dc66f84fd85a88bacce1ec45a5beb1367924d8b"},
    {2, "Q4_0", "f2fe1d88939cc906e477a42d2b63bc4027a514cb2354710e1c3dbe4f47bf871d"},
    {3, "Q4_1", "7e085a9a9965934d7c7a067f3f9cfe69a2e6116b2533e121441d0d9f674e2d46"},
    {6, "Q5_0", "6855f9b812898e5bdfd3a7f0c468d31ac03a61bf6573f4c28bede1a9d50c949c"},
    {7, "Q5_1", "6f7e510dd859d0f13f79d04f7dcc054a991e0479692c48e083d01e71a10b6caa"},
    {8, "Q8_0", "464a41607775d7f1ca29cf3bf36e16e09e8913f71749b9514a0ee27c736c8697"},
    {12, "Q4_K", "dfe42c01b0a98f772de34360d395b0b4b321b727c7fc0513c790bb947b6ccbd6"},
    {13, "Q5_K", "a52fc260340fde85a876c93385cb4e2b61ef5d0b2804e32e0da139f5e62fd14f"},
    {14, "Q6_K", "13b4dde1ad3a1521674ec9fb9a38a15908e82ab0519ada47b588af755b4a0ba4"},
};

// Bytes of a block of which the generator clears a bit, so that no value is an infinity or NaN.
struct Cleared {
  std::vector<size_t> positions;
  int bit;
};
Cleared ClearedBits(std::string_view name) {
  if (name == "F32") return {{2}, 0x80};
  if (name == "BF16") return {{0}, 0x80};
  if (name == "Q6_K") return {{209}, 0x04};
  if (name == "Q4_1" || name == "Q5_1" || name == "Q4_K" || name == "Q5_K") return {{1, 3}, 0x04};
  return {{1}, 0x04};
}

TEST(GgmlTypesTest, RandomBlocksEqualTheGgufPackagesBitForBit) {
  constexpr size_t kBlocks = 64;
  for (const QuantGolden& golden : kQuantGoldens) {
    const GgmlType type = GgmlTypeOf(golden.id);
    ASSERT_NE(type.row, nullptr) << golden.name;
    EXPECT_STREQ(NameOf(type), golden.name);
    const auto block_bytes = static_cast<size_t>(type.row->block_bytes);
    std::vector<std::byte> bytes(kBlocks * block_bytes);
    uint64_t state = golden.id;
    for (std::byte& byte : bytes) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      byte = static_cast<std::byte>(state >> 56);
    }
    const Cleared cleared = ClearedBits(golden.name);
    for (size_t block = 0; block < kBlocks; ++block) {
      for (const size_t position : cleared.positions) {
        bytes[block * block_bytes + position] &= ~static_cast<std::byte>(cleared.bit);
      }
    }
    std::vector<float> values(kBlocks * static_cast<size_t>(type.row->block_elements));
    Dequantise(type, bytes, values);
    EXPECT_EQ(Sha256Of({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}).Hex(),
              golden.sha256)
        << golden.name;
  }
}

TEST(GgmlTypesTest, OtherTypesAreKnownByName) {
  EXPECT_STREQ(NameOf(GgmlTypeOf(10)), "Q2_K");
  EXPECT_EQ(GgmlTypeOf(10).row, nullptr);
  EXPECT_STREQ(NameOf(GgmlTypeOf(4)), "unknown");
  EXPECT_EQ(SupportedGgmlTypes(), "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K");
}

}  // namespace
}  // namespace iha::checkpoint
