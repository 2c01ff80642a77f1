#include "common/json.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::ElementsAre;
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
  EXPECT_EQ(ParseError("1e999"), "f.json: number overflow parsing '1e999'");
  EXPECT_THAT(ParseError("[NaN]"), HasSubstr("f.json:1:2"));
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

TEST(Json, TypedFields) {
  const Json object = *ParseJson(
      R"({"s": "x", "b": true, "i": -5, "u": 18446744073709551615, "d": 1, "e": 2.5, "v": [1, 2], "w": ["a"], "n": null,
          "o": {}, "big": 3000000000})",
      "f");
  EXPECT_EQ(*Get<std::string>(object, "s"), "x");
  EXPECT_EQ(*Get<bool>(object, "b"), true);
  EXPECT_EQ(*Get<int32_t>(object, "i"), -5);
  EXPECT_EQ(*Get<uint64_t>(object, "u"), 18446744073709551615u);
  EXPECT_EQ(*Get<double>(object, "d"), 1.0);
  EXPECT_EQ(*Get<int64_t>(object, "big"), 3000000000);
  EXPECT_THAT(*Get<std::vector<int32_t>>(object, "v"), ElementsAre(1, 2));
  EXPECT_THAT(*Get<std::vector<std::string>>(object, "w"), ElementsAre("a"));
  EXPECT_EQ(*GetOr<int64_t>(object, "absent", 7), 7);
  EXPECT_EQ(*GetOr<int64_t>(object, "i", 7), -5);
  EXPECT_TRUE((*GetObject(object, "o"))->empty());
  EXPECT_EQ((*GetArray(object, "v"))->size(), 2u);

  const auto message = [](const absl::Status& status) { return std::string(status.message()); };
  EXPECT_EQ(message(Get<int64_t>(object, "s").status()), "field \"s\": found \"x\", expected an integer");
  EXPECT_EQ(message(Get<int64_t>(object, "e").status()), "field \"e\": found 2.5, expected an integer");
  EXPECT_EQ(message(Get<int64_t>(object, "absent").status()), "field \"absent\": missing, expected an integer");
  EXPECT_EQ(message(Get<int32_t>(object, "big").status()),
            "field \"big\": found 3000000000, expected an integer of 32 bits");
  EXPECT_FALSE(Get<int64_t>(object, "u").ok());
  EXPECT_FALSE(Get<uint64_t>(object, "i").ok());
  EXPECT_FALSE(Get<bool>(object, "i").ok());
  EXPECT_FALSE(Get<double>(object, "s").ok());
  EXPECT_FALSE(Get<std::vector<std::string>>(object, "v").ok());
  EXPECT_FALSE(GetOr<std::string>(object, "n", "x").ok());
  EXPECT_FALSE(GetObject(object, "v").ok());
  EXPECT_FALSE(GetArray(object, "o").ok());
  EXPECT_EQ(message(Get<bool>(Json::array(), "x").status()),
            "found an empty array, expected an object with the field \"x\"");
}

TEST(Json, UnknownKeysAreNamed) {
  const std::vector<std::string> known = {"limit", "models"};
  EXPECT_TRUE(CheckKeys({{"limit", 1}}, known).ok());
  EXPECT_EQ(CheckKeys({{"limt", 1}}, known).message(), "unknown field \"limt\" (did you mean \"limit\"?)");
  EXPECT_FALSE(CheckKeys(Json::array(), known).ok());
}

TEST(Json, CanonicalBytes) {
  const Json value =
      *ParseJson("{\"b\": [1, 0.1, 1e100, -0.0, \"\\u00e9\\n\"],\n \"a\": {\"z\": null, \"y\": true}}", "f");
  EXPECT_EQ(CanonicalJson(value), "{\"a\":{\"y\":true,\"z\":null},\"b\":[1,0.1,1e+100,-0.0,\"\xC3\xA9\\n\"]}");
  EXPECT_EQ(CanonicalJson(Json("\xFF")), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(*ParseJson(CanonicalJson(value), "f"), value);
}

TEST(Json, FilesNameThemselves) {
  const testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a.json"), "{\n}\n]").ok());
  EXPECT_THAT(std::string(ReadJsonFile(dir.File("a.json")).status().message()), HasSubstr(dir.File("a.json") + ":3:1"));
  EXPECT_EQ(ReadJsonFile(dir.File("b.json")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace iha
