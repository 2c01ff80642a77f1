// Cached rows whose files do not fit together count as absent, whatever their digests say.
#include "benchmarks/ruler/rows_cache.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "tests/support/temp_dir.h"

namespace iha::benchmarks::ruler {
namespace {

using Json = nlohmann::json;

class RulerRowsCache : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int64_t i = 0; i < 3; ++i) {
      lines_.push_back(ToJsonLine({.number = i, .index = i, .input = "in", .outputs = {"out"}, .answer_prefix = "a"}));
    }
    ASSERT_TRUE(cache_.Store(lines_, RowsEnd{.kind = EndKind::kDataExhausted, .row = 3, .cause = "no more"}).ok());
  }

  // The index's "rows" with a pointer's value replaced, under a digest that fits.
  void Replace(const std::string& pointer, const Json& value) {
    Json file = Json::parse(*ReadFile(index_));
    file["rows"][Json::json_pointer(pointer)] = value;
    file["sha256"] = Sha256Of(file["rows"].dump()).Hex();
    ASSERT_TRUE(WriteFileAtomic(index_, file.dump()).ok());
  }
  // Of three rows; -1: the cache has them not.
  int64_t Known() const {
    const auto rows = cache_.Read(0, 4);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && rows->has_value() ? static_cast<int64_t>((*rows)->rows.size()) : -1;
  }

  const testing::TempDir folder_;
  const RowsCache cache_{folder_.path(), Sha256Of("rows")};
  const std::string index_ = folder_.File(Sha256Of("rows").Hex() + ".json");
  std::vector<std::string> lines_;
};

TEST_F(RulerRowsCache, GivesBackWhatWasStored) {
  ASSERT_EQ(Known(), 3);
  const auto rows = **cache_.Read(0, 4);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ToJsonLine(rows.rows[i]), lines_[i]);
  EXPECT_EQ(rows.end->row, 3);
}

TEST_F(RulerRowsCache, SizesThatNoFileHasAreDamage) {
  const auto size = static_cast<int64_t>(lines_[0].size());
  for (const Json& wrong : {Json(-1), Json(INT64_MIN), Json(INT64_MAX), Json(UINT64_MAX), Json(size + 1), Json("x"),
                            Json(nullptr), Json(1e300), Json(size + 0.5)}) {
    Replace("/sizes/0", wrong);
    EXPECT_EQ(Known(), -1) << wrong;
  }
  Replace("/sizes/0", size);
  EXPECT_EQ(Known(), 3);
}

TEST_F(RulerRowsCache, AnEndBeforeOrBehindTheRowsIsDamage) {
  for (const Json& wrong :
       {Json(-1), Json(0), Json(2), Json(4), Json(INT64_MAX), Json(UINT64_MAX), Json(3.0), Json(1e96), Json("3")}) {
    Replace("/end/row", wrong);
    EXPECT_EQ(Known(), -1) << wrong;
  }
  Replace("/end/row", 3);
  EXPECT_EQ(Known(), 3);
  Replace("/end/kind", "another");
  EXPECT_EQ(Known(), -1);
}

TEST_F(RulerRowsCache, NumbersOfARowAreWhole) {
  const Json row = Json::parse(lines_[0]);
  ASSERT_TRUE(ParseRow(row.dump(), 0).has_value());
  for (const char* field : {"index", "length", "length_w_model_temp", "token_position_answer"}) {
    for (const Json& wrong : {Json(1.37778e+96), Json(-1e300), Json(1.5), Json(UINT64_MAX), Json("1"), Json(nullptr)}) {
      Json damaged = row;
      damaged[field] = wrong;
      EXPECT_FALSE(ParseRow(damaged.dump(), 0).has_value()) << damaged;
    }
  }
}

// Another process has stored more rows and not yet their index.
TEST_F(RulerRowsCache, ALongerBodyBeginsWithTheSameRows) {
  const std::string body = folder_.File(Sha256Of("rows").Hex() + ".jsonl");
  ASSERT_TRUE(WriteFileAtomic(body, *ReadFile(body) + lines_[0] + "\n").ok());
  EXPECT_EQ(Known(), 3);
  ASSERT_TRUE(WriteFileAtomic(body, lines_[0] + "\n").ok());
  EXPECT_EQ(Known(), -1);
}

TEST_F(RulerRowsCache, ADeepIndexIsDamage) {
  ASSERT_TRUE(WriteFileAtomic(index_, std::string(100000, '[') + std::string(100000, ']')).ok());
  EXPECT_EQ(Known(), -1);
  EXPECT_FALSE(ParseRow(std::string(100000, '[') + std::string(100000, ']'), 0).has_value());
}

}  // namespace
}  // namespace iha::benchmarks::ruler
