#include "common/json.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string ParseError(std::string_view text) {
  const absl::StatusOr<Json> parsed = ParseJson(text, "f.json");
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(parsed.status().message());
}

TEST(Json, ErrorsNameLineAndColumn) {
  EXPECT_EQ(ParseError("{\"a\": 1,\n  \"b\": x}"), "f.json:2:8: not valid JSON at \"x}\"");
  EXPECT_EQ(ParseError("{\"a\": "), "f.json:1:7: JSON ends too early");
  EXPECT_EQ(ParseError(""), "f.json:1:1: JSON ends too early");
  EXPECT_EQ(ParseError("{} {}"), "f.json:1:4: not valid JSON at \"{}\"");
  EXPECT_THAT(ParseError("[\"\x1b[31m\"]"), HasSubstr("\\x1B[31m"));
  EXPECT_THAT(ParseError("\"\xC3(\""), HasSubstr("f.json:1:"));
  EXPECT_EQ(ParseError("1e999"), "f.json:1:1: number overflow parsing '1e999'");
  EXPECT_EQ(ParseError("{\"1e999\": [\"1e999\",\n 1e999]}"), "f.json:2:2: number overflow parsing '1e999'");
  EXPECT_THAT(ParseError("[NaN]"), HasSubstr("f.json:1:2"));
  EXPECT_EQ(ParseError("\xef\xbb\xbf{}"), "f.json:1:1: begins with a byte order mark; save it as UTF-8 without one");
}

TEST(Json, RefusesWhatReadersReadDifferently) {
  EXPECT_THAT(ParseError(std::string("{}\0 {\"a\": 1}", 13)), HasSubstr("f.json:1:3: not valid JSON at \"\\x00"));
  const auto commented = [](std::string_view text) {
    return std::string(ParseCommentedJson(text, "f.json").status().message());
  };
  EXPECT_EQ(commented(R"({"a": {"b": 1}, /* "b": 2 */ "c": [{"b": 1}, {"b": 2}]})"), "");
  EXPECT_EQ(commented(R"({"a": [1, {"b": 1, "c": 2, "b": 3}]})"),
            "f.json: field \"b\" is there twice in one object; keep one");
  EXPECT_EQ(commented("{\"a\": 1, // \"b\"\n \"a\": 1}"), "f.json: field \"a\" is there twice in one object; keep one");
}

TEST(Json, RefusesDeepNesting) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth), "f").ok());
  EXPECT_THAT(ParseError(nested(kMaxJsonDepth + 1)), HasSubstr("nested 201 deep"));
  EXPECT_THAT(ParseError(std::string(10'000'000, '[')), HasSubstr("nested"));
  EXPECT_TRUE(ParseJson("[\"" + std::string(1000, '[') + "\\\"[\"]", "f").ok());  // brackets within a string
}

TEST(Json, IntegersThatFit) {
  const auto of = [](std::string_view text) { return JsonInteger(*ParseJson(text, "f")); };
  EXPECT_EQ(of("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(of("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(of("0"), 0);
  EXPECT_EQ(of("9223372036854775808"), std::nullopt);
  EXPECT_EQ(of("18446744073709551615"), std::nullopt);  // not -1
  EXPECT_EQ(of("-9223372036854775809"), std::nullopt);
  EXPECT_EQ(of("1.0"), std::nullopt);
  EXPECT_EQ(of("\"1\""), std::nullopt);
  EXPECT_EQ(of("true"), std::nullopt);
  EXPECT_EQ(of("null"), std::nullopt);
  EXPECT_EQ(of("1e96"), std::nullopt);
}

TEST(Json, IntegersThatFitTheirType) {
  const auto of = [](std::string_view text) { return *ParseJson(text, "f"); };
  EXPECT_EQ(JsonInteger<int32_t>(of("-2147483648")), INT32_MIN);
  EXPECT_EQ(JsonInteger<int32_t>(of("2147483648")), std::nullopt);
  EXPECT_EQ(JsonInteger<int32_t>(of("-2147483649")), std::nullopt);
  EXPECT_EQ(JsonInteger<int32_t>(of("4294967297")), std::nullopt);  // not 1
  EXPECT_EQ(JsonInteger<uint64_t>(of("18446744073709551615")), UINT64_MAX);
  EXPECT_EQ(JsonInteger<uint64_t>(of("-1")), std::nullopt);
  EXPECT_EQ(JsonInteger<uint64_t>(of("1e3")), std::nullopt);
}

TEST(Json, FilesNameThemselves) {
  const testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a.json"), "{\n}\n]").ok());
  EXPECT_THAT(std::string(ReadJsonFile(dir.File("a.json")).status().message()), HasSubstr(dir.File("a.json") + ":3:1"));
  EXPECT_EQ(ReadJsonFile(dir.File("b.json")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace iha
