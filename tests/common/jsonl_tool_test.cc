// The loop of line-in, line-out commands: order, carried keys, bad lines by number.
#include "common/jsonl_tool.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "common/errors.h"
#include "common/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using Json = nlohmann::ordered_json;

// Doubles "n"; refuses negative ones.
JsonlTool Doubler() {
  return {.name = "tool", .consumes = {"n"}, .step = [](const Json& input, Json& output) -> absl::Status {
            const auto at = input.find("n");
            if (at == input.end() || !at->is_number_integer()) return InvalidArgument("field \"n\": missing");
            if (*at < 0) return InvalidArgument("field \"n\": found {}; expected 0 or more", at->dump());
            output["twice"] = 2 * at->get<int64_t>();
            return absl::OkStatus();
          }};
}

struct Outcome {
  int64_t bad = 0;
  std::string out;
  std::string errors;
};
Outcome RunOn(const std::string& input) {
  const testing::TempDir dir;
  EXPECT_TRUE(WriteFileAtomic(dir.File("in.jsonl"), input).ok());
  auto in = LineReader::Open(dir.File("in.jsonl"));
  std::ostringstream out;
  std::ostringstream errors;
  const int64_t bad = RunJsonlTool(Doubler(), *in, out, errors);
  return {.bad = bad, .out = out.str(), .errors = errors.str()};
}

TEST(JsonlTool, CarriesOtherKeysInOrderAndDropsConsumedOnes) {
  const Outcome outcome = RunOn("{\"z\":[1,null],\"n\":3,\"a\":{\"n\":4}}\n{\"n\":0}\n");
  EXPECT_EQ(outcome.bad, 0);
  EXPECT_EQ(outcome.out, "{\"z\":[1,null],\"a\":{\"n\":4},\"twice\":6}\n{\"twice\":0}\n");
  EXPECT_EQ(outcome.errors, "");
}

TEST(JsonlTool, CarriedFieldsComeOutAsTheyAreWritten) {
  const Outcome outcome = RunOn(
      "{\"id\":12345678901234567890123,\"n\":1,\"a\":1.10,\"b\":[1.0, 2e5,\"},\\\"\"],\"c\":\"\\u00e9\",\"d\":{\"e\" : "
      "-0}, "
      "\"f\" : null }\n{\"twice\":1.10,\"n\":2}\n");
  EXPECT_EQ(outcome.errors, "");
  EXPECT_EQ(
      outcome.out,
      "{\"id\":12345678901234567890123,\"a\":1.10,\"b\":[1.0, 2e5,\"},\\\"\"],\"c\":\"\\u00e9\",\"d\":{\"e\" : -0},"
      "\"f\":null,\"twice\":2}\n{\"twice\":4}\n");
}

TEST(JsonlTool, WhatIsNoJsonObjectSaysWhatAndWhere) {
  const std::pair<const char*, const char*> lines[] = {
      {"{\"n\":1,\"s\":\"a\xff\"}", "line 1: not a JSON object: column 14: not valid JSON at \"\\xFF"},
      {"{\"n\":1,\"s\":\"\\ud800\"}", "line 1: not a JSON object: column 1"},
      {"{\"n\":1e400}", "line 1: not a JSON object: column 6: number overflow parsing '1e400'"},
      {"\xef\xbb\xbf{\"n\":1}", "line 1: not a JSON object: column 1: begins with a byte order mark"},
      {"{\"n\":1,\"n\":2}", "line 1: field \"n\" is there twice in one object; keep one"},
      {"{\"n\":1,\"o\":{\"p\":1,\"p\":2}}", "line 1: field \"p\" is there twice in one object; keep one"},
      {"{\"n\":1", "line 1: not a JSON object: column 7: JSON ends too early"},
  };
  for (const auto& [line, said] : lines) {
    const Outcome outcome = RunOn(line);
    EXPECT_EQ(outcome.bad, 1) << line;
    EXPECT_THAT(outcome.errors, ::testing::HasSubstr(said)) << line;
  }
}

TEST(JsonlTool, BadLinesAreNumberedAndTheLoopGoesOn) {
  // Blank lines count, carry nothing and are no error; the last line needs no newline; Windows line ends are fine.
  const Outcome outcome = RunOn("\n{\"n\":1}\r\n[1]\n{\"n\":-1}\n \t\nnot json\n{\"n\":2}");
  EXPECT_EQ(outcome.bad, 3);
  EXPECT_EQ(outcome.out, "{\"twice\":2}\n{\"twice\":4}\n");
  EXPECT_EQ(outcome.errors,
            "tool: line 3: not a JSON object: found array\n"
            "tool: line 4: field \"n\": found -1; expected 0 or more\n"
            "tool: line 6: not a JSON object: column 2: not valid JSON at \"ot json\"\n");
}

// Carried keys are copied and printed by recursion, which overflowed the stack.
TEST(JsonlTool, DeepLinesAreRefused) {
  const auto nested = [](int depth) { return std::string(size_t(depth), '[') + std::string(size_t(depth), ']'); };
  const Outcome outcome =
      RunOn("{\"x\":" + nested(1'000'000) + ",\"n\":1}\n{\"x\":" + nested(kMaxJsonDepth - 1) + ",\"n\":1}");
  EXPECT_EQ(outcome.errors, "tool: line 1: JSON nested 1000001 deep, expected at most 200\n");
  EXPECT_EQ(outcome.out, "{\"x\":" + nested(kMaxJsonDepth - 1) + ",\"twice\":2}\n");
}

TEST(JsonlTool, FilesGiveTheExitCode) {
  const testing::TempDir dir;
  EXPECT_EQ(RunJsonlToolOnFile(Doubler(), dir.File("absent.jsonl")), kExitBadInput);
  EXPECT_EQ(RunJsonlToolOnFile(Doubler(), dir.path()), kExitBadInput);  // a folder has no line, and is no empty file
}

TEST(JsonlTool, TypedAccessNamesTheField) {
  const Json object = Json::parse(R"({"s":"x","ids":[0,2147483647],"bad":[1,-1],"big":[2147483648],"t":["a",1]})");
  std::string text;
  std::vector<int32_t> ids;
  std::vector<std::string> texts;
  EXPECT_TRUE(GetString(object, "s", text).ok());
  EXPECT_EQ(text, "x");
  EXPECT_EQ(GetString(object, "ids", text).message(), "field \"ids\": found array; expected a string");
  EXPECT_EQ(GetString(object, "none", text).message(), "field \"none\": missing; expected a string");
  EXPECT_TRUE(GetTokenIds(object, "ids", ids).ok());
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 2147483647}));
  EXPECT_EQ(GetTokenIds(object, "bad", ids).message(), "field \"bad\"[1]: found -1; expected a token id");
  EXPECT_EQ(GetTokenIds(object, "big", ids).message(), "field \"big\"[0]: found 2147483648; expected a token id");
  EXPECT_EQ(GetStrings(object, "t", texts).message(), "field \"t\"[1]: expected a string");
}

TEST(JsonlTool, OutputLinesAreValidUtf8) {
  EXPECT_EQ(JsonLine(Json{{"t", "a\xFF\n"}}), "{\"t\":\"a\xEF\xBF\xBD\\n\"}\n");
}

}  // namespace
}  // namespace iha
