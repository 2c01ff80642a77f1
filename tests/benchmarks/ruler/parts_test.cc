// The parts that rows are made of, against handed vectors: random numbers of CPython and NumPy, Punkt, word lists.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "benchmarks/python_random.h"
#include "benchmarks/ruler/punkt.h"
#include "benchmarks/ruler/text.h"
#include "benchmarks/ruler/texts.h"
#include "benchmarks/ruler/words.h"
#include "common/digest.h"
#include "tests/benchmarks/ruler/ruler_support.h"

namespace iha::benchmarks::ruler {
namespace {

using Json = nlohmann::json;

double HexDouble(const Json& text) { return std::strtod(text.get<std::string>().c_str(), nullptr); }

std::vector<int32_t> Numbers(int32_t count) {
  std::vector<int32_t> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

// A chain of draws in order of size.
std::map<int32_t, Json> BySize(const Json& object) {
  std::map<int32_t, Json> by_size;
  for (const auto& [n, expected] : object.items()) by_size[std::stoi(n)] = expected;
  return by_size;
}

void CheckSamples(const Json& row) {
  PythonRandom random(row["seed"].get<uint64_t>());
  for (const Json& expected : row["sample"]) {
    const std::vector<int32_t> drawn = random.Sample(expected["n"], expected["k"]);
    int64_t sum = 0;
    for (size_t i = 0; i < drawn.size(); ++i) sum += static_cast<int64_t>(i + 1) * drawn[i];
    EXPECT_EQ(sum, expected["sum_i_times"].get<int64_t>()) << expected;
    const auto head = expected["head"].get<std::vector<int32_t>>();
    EXPECT_TRUE(std::equal(head.begin(), head.end(), drawn.begin())) << expected;
  }
  EXPECT_EQ(random.GetRandBits(32), row["sample_next_getrandbits32"].get<uint32_t>());
}

TEST(RulerParts, RandomNumbersOfCPythonAndNumPy) {
  IHA_REQUIRE_CASES(cases);
  const std::vector<Json> rows = testing::JsonRows(cases + "/ruler_rows/parts/rng_cases.jsonl.gz");
  ASSERT_EQ(rows.size(), 5u);
  for (const Json& row : rows) {
    const auto seed = row["seed"].get<uint64_t>();
    const auto fresh = [&] { return PythonRandom(seed); };
    PythonRandom bits = fresh(), unit = fresh(), digits = fresh(), uuid = fresh(), names = fresh();
    for (const Json& expected : row["getrandbits32"]) EXPECT_EQ(bits.GetRandBits(32), expected.get<uint32_t>());
    for (const Json& expected : row["random"]) EXPECT_EQ(unit.Unit(), HexDouble(expected));
    for (const Json& expected : row["randint_7digits"]) EXPECT_EQ(digits.RandInt(1000000, 9999999), expected);
    for (const Json& expected : row["uuid4"]) EXPECT_EQ(uuid.Uuid4(), expected);
    for (const Json& expected : row["choices_upper_5"]) {
      EXPECT_EQ(names.Choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 5), expected);
    }
    PythonRandom choices = fresh();
    for (const auto& [n, expected] : BySize(row["choice_index"])) {
      for (const Json& index : expected) EXPECT_EQ(choices.RandBelow(static_cast<uint32_t>(n)), index) << n;
    }
    CheckSamples(row);
    if (seed <= UINT32_MAX) {
      NumpyRandom numpy(static_cast<uint32_t>(seed));
      for (const Json& expected : row["numpy_randint_10000_99999"]) EXPECT_EQ(numpy.RandInt(10000, 99999), expected);
    }
  }
}

TEST(RulerParts, ShufflesOfCPython) {
  IHA_REQUIRE_CASES(cases);
  for (const Json& row : testing::JsonRows(cases + "/ruler_rows/parts/rng_cases.jsonl.gz")) {
    PythonRandom random(row["seed"].get<uint64_t>());
    for (const auto& [n, expected] : BySize(row["shuffle"])) {
      std::vector<int32_t> list = Numbers(n);
      random.Shuffle(list);
      EXPECT_EQ(list, expected.get<std::vector<int32_t>>());
    }
    EXPECT_EQ(random.GetRandBits(32), row["shuffle_next_getrandbits32"].get<uint32_t>());
  }
}

TEST(RulerParts, PunktCutsAsNltk) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  const absl::StatusOr<Punkt> punkt = Punkt::Load(data);
  ASSERT_TRUE(punkt.ok()) << punkt.status();
  const std::vector<Json> rows = testing::JsonRows(cases + "/ruler_rows/parts/punkt_cases.jsonl.gz");
  ASSERT_EQ(rows.size(), 1500u);
  for (const Json& row : rows) {
    std::vector<std::vector<size_t>> spans;
    for (const SentenceSpan& span : punkt->Split(ToCodePoints(row["text"].get<std::string>()))) {
      spans.push_back({span.begin, span.end});
    }
    EXPECT_EQ(Json(spans), row["spans"]) << row["text"];
  }
}

TEST(RulerParts, SentencesOfTheEssays) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  const auto essays = SharedTexts(data)->Essays(Sentences::kPunkt);
  ASSERT_TRUE(essays.ok()) << essays.status();
  EXPECT_EQ((*essays)->words(), 525450);
  const std::vector<Json> file = testing::JsonRows(cases + "/ruler_rows/parts/punkt_essay_spans.json.gz");
  ASSERT_EQ(file.size(), 1u);
  ASSERT_EQ(file[0].size(), 31396u);
  const HaystackPrefix all = (*essays)->Prefix((*essays)->words());
  ASSERT_EQ(all.sentences, file[0].size());
  for (size_t i = 0; i < all.sentences; ++i) {
    const CountedPiece sentence = (*essays)->Sentences(all, i, i + 1);
    ASSERT_EQ(ToCodePoints(sentence.text).size(), file[0][i][1].get<size_t>()) << i << ": " << sentence.text;
  }
}

// Any first n words have a prefix of the sentences, cut behind the last word.
TEST(RulerParts, PrefixesOfTheEssaysAreSplitAsTheWhole) {
  IHA_REQUIRE_DATA(data);
  const auto essays = SharedTexts(data)->Essays(Sentences::kPunkt);
  ASSERT_TRUE(essays.ok()) << essays.status();
  for (const int64_t words : {1, 2, 17, 500, 743, 5001, 20000}) {
    const Haystack alone = (*essays)->Repeated(words);
    const HaystackPrefix prefix = (*essays)->Prefix(words), whole = alone.Prefix(words);
    ASSERT_EQ(prefix.sentences, whole.sentences) << words;
    EXPECT_EQ((*essays)->Sentences(prefix, 0, prefix.sentences).text, alone.joined()) << words;
  }
  const Haystack longer = (*essays)->Repeated((*essays)->words() + 3);
  EXPECT_EQ(longer.words(), (*essays)->words() + 3);
  EXPECT_TRUE(longer.joined().ends_with(longer.joined().substr(0, (*essays)->Prefix(3).end)));
}

TEST(RulerParts, KeysAndWords) {
  IHA_REQUIRE_DATA(data);
  const auto words = SharedTexts(data)->Words();
  ASSERT_TRUE(words.ok()) << words.status();
  const KeyList& keys = (*words)->keys;
  ASSERT_EQ(keys.size(), 6171620);
  EXPECT_EQ(keys.At(0), "Early-ATM");
  EXPECT_EQ(keys.At(3000000), "lackadaisical-finisher");
  EXPECT_EQ(keys.At(keys.size() - 1), "zonked-zucchini");
  Sha256 all;
  for (int64_t i = 0; i < keys.size(); ++i) all.Update((i == 0 ? "" : "\n") + keys.At(i));
  EXPECT_EQ(all.Finish().Hex(), "e5e6a09ed20903cb4abfcde8b89d1a40d4133a6fcff97001c690c21d97af3007");

  std::vector<std::string> list = (*words)->words;
  ASSERT_EQ(list.size(), 8166u);
  const auto joined = [&] {
    std::string text;
    for (const std::string& word : list) text += (text.empty() ? "" : "\n") + word;
    return Sha256Of(text).Hex();
  };
  EXPECT_EQ(joined(), "393572555cfe9c15fd065aa9df0e9e91368cff81418b4d78025e9a4f57fe2ac4");
  PythonRandom(42).Shuffle(list);
  EXPECT_EQ(joined(), "a00e8d460712574325718071bd2733e46a974a24371ccb0dfdb5d10dd8173f0c");
}

TEST(RulerParts, WordsOfAnObjectInTheirOrder) {
  const auto words = [](std::string_view json) { return WordsOfObject(json, "w.json"); };
  EXPECT_EQ(*words(R"({"b": "x", "a": "y", "b": "z", "": "\u00e9"})"), (std::vector<std::string>{"z", "y", "\u00e9"}));
  EXPECT_TRUE(words("{}")->empty());
  EXPECT_EQ(words("[1]").status().message(), "w.json: expected one object of words");
  EXPECT_EQ(words("[\"a\"]").status().message(), "w.json: expected one object of words");
  EXPECT_EQ(words("{\"a\": \"b\"").status().message(), "w.json: expected one object of words");
  for (const char* bad :
       {R"({"a": "b", "c\n": 1})", R"({"c\n": {"a": "b"}})", R"({"c\n": ["a"]})", R"({"c\n": null})"}) {
    EXPECT_EQ(words(bad).status().message(), "w.json: field \"c\\n\": expected a word") << bad;
  }
}

// As many as NVIDIA's file has: time grows with their number, not with its square.
TEST(RulerParts, ManyWordsAreReadInLinearTime) {
  std::string json = "{\"0\": \"w0\"";
  for (int i = 1; i < 400000; ++i) json += fmt::format(",\"{}\":\"w{}\"", i, i);
  const std::clock_t begin = std::clock();
  const auto words = WordsOfObject(json + "}", "w.json");
  ASSERT_TRUE(words.ok()) << words.status();
  ASSERT_EQ(words->size(), 400000u);
  EXPECT_EQ(words->back(), "w399999");
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 20.0);
}

}  // namespace
}  // namespace iha::benchmarks::ruler
