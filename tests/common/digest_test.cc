#include "common/digest.h"

#include <cstdio>
#include <limits>

#include "common/canonical.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

// FIPS 180-4 examples.
constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kMillionA[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Digest, KnownAnswers) {
  EXPECT_EQ(Sha256Of("").Hex(), kEmpty);
  EXPECT_EQ(Sha256Of("abc").Hex(), kAbc);
  Sha256 pieces;
  for (int i = 0; i < 1000; i++) pieces.Update(std::string(1000, 'a'));
  EXPECT_EQ(pieces.Finish().Hex(), kMillionA);
}

TEST(Digest, FileEqualsBytesAndNamesMissingPath) {
  const testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), std::string(1000000, 'a')).ok());
  EXPECT_EQ(Sha256OfFile(dir.File("a"))->Hex(), kMillionA);
  const absl::Status missing = Sha256OfFile(dir.File("b")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), ::testing::HasSubstr(dir.File("b")));
}

TEST(Digest, ParsesHexOfEitherCaseOnly) {
  const absl::StatusOr<Digest> upper = ParseDigest("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD");
  ASSERT_TRUE(upper.ok());
  EXPECT_EQ(upper->Hex(), kAbc);
  EXPECT_EQ(upper->Prefix64(), 0xba7816bf8f01cfeaULL);
  EXPECT_FALSE(upper->empty());
  EXPECT_TRUE(Digest().empty());
  std::vector<std::string> all_bad;
  for (const size_t length : {0, 63, 65}) all_bad.emplace_back(length, 'a');
  all_bad.push_back(all_bad[1] + "g");
  all_bad.push_back(all_bad[1] + '\0');
  for (const std::string& bad : all_bad) {
    EXPECT_EQ(ParseDigest(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

// Python: hashlib.sha256 over the layout in canonical.h, written with struct.pack.
TEST(Canonical, MatchesTheDocumentedLayout) {
  CanonicalWriter w("iha.test", 7);
  Digest counting;
  for (size_t i = 0; i < counting.bytes.size(); i++) counting.bytes[i] = static_cast<uint8_t>(i);
  w.String(std::string_view("a\0b", 3)).Int(-2).Uint(std::numeric_limits<uint64_t>::max()).Double(0.1).Double(-0.0);
  const std::vector<int32_t> tokens = {1, -1};
  w.Bool(true).Bytes(counting).Tokens(tokens).List(3);
  EXPECT_EQ(w.Hash().Hex(), "5171e121e209fee6a1e76bf56e899f5efc20cd06026d6020ac05911be4c85a66");
}

// A list of calls can be told from every other list: moving a byte over a border changes the bytes.
TEST(Canonical, BordersAreUnambiguous) {
  const auto bytes = [](const auto& fill) {
    CanonicalWriter w("r", 1);
    fill(w);
    return w.bytes();
  };
  const std::vector<std::string> all = {
      bytes([](CanonicalWriter& w) { w.String("ab").String(""); }),
      bytes([](CanonicalWriter& w) { w.String("a").String("b"); }),
      bytes([](CanonicalWriter& w) { w.String("").String("ab"); }),
      bytes([](CanonicalWriter& w) { w.String("ab"); }),
      bytes([](CanonicalWriter& w) { w.Int(1).Int(2); }),
      bytes([](CanonicalWriter& w) { w.Uint(1).Uint(2); }),
      bytes([](CanonicalWriter& w) { w.List(2).Int(1).Int(2); }),
      bytes([](CanonicalWriter& w) { w.List(1).Int(1).List(1).Int(2); }),
      bytes([](CanonicalWriter& w) { w.Bool(true).Int(2); }),
  };
  for (size_t i = 0; i < all.size(); i++) {
    for (size_t j = i + 1; j < all.size(); j++) EXPECT_NE(all[i], all[j]) << i << " " << j;
  }
}

TEST(CanonicalDeathTest, RefusesNan) {
  CanonicalWriter w("r", 1);
  EXPECT_DEATH(w.Double(std::numeric_limits<double>::quiet_NaN()), "NaN has no canonical form");
}

}  // namespace
}  // namespace iha
