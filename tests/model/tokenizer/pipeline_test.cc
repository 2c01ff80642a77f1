// Components and options that the labelled families do not use. Expected values: tokenizers 0.23.3.
#include <nlohmann/json.hpp>
#include <thread>

#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

// One-character tokens, so that the text of the ids with a bar between pieces shows the cuts: every piece ends in the
// suffix "|", which belongs to a character of its own kind.
std::unique_ptr<const Tokenizer> WithParts(const std::string& normalizer, const std::string& pre_tokenizer) {
  Json vocab = Json::object();
  int id = 0;
  for (const char* c :
       {"a", "b", "c", "A", "1", "2", " ", "\n", ",", "-", "_", "\xE2\x96\x81", "\xC4\xA0", "\xC2\xBD"}) {
    vocab[c] = id++;
    vocab[std::string(c) + "|"] = id++;
  }
  const Json json = {
      {"added_tokens", Json::array()},
      {"normalizer", Json::parse(normalizer)},
      {"pre_tokenizer", Json::parse(pre_tokenizer)},
      {"decoder", {{"type", "Fuse"}}},
      {"model", {{"type", "BPE"}, {"end_of_word_suffix", "|"}, {"vocab", vocab}, {"merges", Json::array()}}}};
  auto tokenizer = Tokenizer::FromJson(json.dump(), "");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}
std::string Cut(const std::string& pre_tokenizer, const std::string& text, const std::string& normalizer = "null") {
  const auto tokenizer = WithParts(normalizer, pre_tokenizer);
  return tokenizer == nullptr ? "" : tokenizer->Decode(tokenizer->Encode(text), false);
}
std::string Split(const std::string& pattern, const std::string& behavior, bool invert, const std::string& text) {
  return Cut(R"({"type": "Split", "pattern": )" + pattern + R"(, "behavior": ")" + behavior + R"(", "invert": )" +
                 (invert ? "true}" : "false}"),
             text);
}

TEST(Pipeline, SplitBehaviours) {
  const std::string dash = R"({"String": "-"})", letters = R"({"Regex": "[a-c]+"})";
  EXPECT_EQ(Split(dash, "Removed", false, "a-b--c"), "a|b|c|");
  EXPECT_EQ(Split(dash, "Isolated", false, "a-b--c"), "a|-|b|-|-|c|");
  EXPECT_EQ(Split(dash, "MergedWithPrevious", false, "a-b--c"), "a-|b-|-|c|");
  EXPECT_EQ(Split(dash, "MergedWithNext", false, "a-b--c"), "a|-b|-|-c|");
  EXPECT_EQ(Split(dash, "Contiguous", false, "a-b--c"), "a|-|b|--|c|");
  EXPECT_EQ(Split(letters, "Removed", true, "ab1,c"), "ab|c|");
  EXPECT_EQ(Split(letters, "MergedWithPrevious", true, "ab1,c"), "ab1,|c|");
}

TEST(Pipeline, OtherPreTokenizers) {
  EXPECT_EQ(Cut(R"({"type": "Digits", "individual_digits": false})",
                "a12\xC2\xBD"
                "b"),
            "a|12\xC2\xBD|b|");
  EXPECT_EQ(Cut(R"({"type": "Digits", "individual_digits": true})", "a12"), "a|1|2|");
  EXPECT_EQ(Cut(R"({"type": "Whitespace"})", "ab, c\n-1"), "ab|,|c|-|1|");
  EXPECT_EQ(Cut(R"({"type": "WhitespaceSplit"})", "ab, c\n-1"), "ab,|c|-1|");
  EXPECT_EQ(Cut(R"({"type": "Punctuation"})", "ab,-c"), "ab|,|-|c|");
  EXPECT_EQ(Cut(R"({"type": "CharDelimiterSplit", "delimiter": "b"})", "abbc"), "a|c|");
  EXPECT_EQ(Cut(R"({"type": "BertPreTokenizer"})", "a, b"), "a|,|b|");
  EXPECT_EQ(Cut(R"({"type": "ByteLevel", "add_prefix_space": true, "use_regex": false})", "a b"),
            "\xC4\xA0"
            "a\xC4\xA0"
            "b|");
  EXPECT_EQ(Cut(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})", "a b"), "_a|_b|");
  EXPECT_EQ(Cut(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})", "a b"), "a|_b|");
  EXPECT_EQ(Cut(R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                    {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]})",
                "a b"),
            "_a|b|");
}

TEST(Pipeline, Normalizers) {
  EXPECT_EQ(Cut("null", "A\xC3\x81", R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"},
                                         {"type": "Lowercase"}]})"),
            "aa|");
  EXPECT_EQ(Cut("null", " a b ", R"({"type": "Strip", "strip_left": true, "strip_right": false})"), "a b |");
  EXPECT_EQ(Cut("null", "a  b", R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "_"})"), "a_b|");
  EXPECT_EQ(Cut("null", "\xE2\x91\xA0", R"({"type": "NFKC"})"), "1|");
  // What went from the start takes the text's start along.
  EXPECT_EQ(Cut(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"})", " a",
                R"({"type": "Strip", "strip_left": true, "strip_right": false})"),
            "a|");
}

// The peer's normalization tables are older than the library's: marks that they do not know stay where they are and let
// nothing past, and 11935 and 11930 are not composed. What each form must give is what tokenizers 0.23.3 gives.
TEST(Pipeline, YoungMarksAreStartersToEveryNormalForm) {
  for (const NormalForm form : {NormalForm::kNfc, NormalForm::kNfd, NormalForm::kNfkc, NormalForm::kNfkd}) {
    SCOPED_TRACE(static_cast<int>(form));
    EXPECT_EQ(Normalize("x\u0345\u0334", form), "x\u0334\u0345") << "known marks are put in order";
    for (const char* young : {"\u07fd", "\u08ca", "\u1acb", "\U00011d97", "\U0001e4ef"}) {
      const std::string text = fmt::format("x\u0345{}\u0334", young);
      EXPECT_EQ(Normalize(text, form), text);
    }
    EXPECT_EQ(Normalize("\U00011935\U00011930", form), "\U00011935\U00011930");
    EXPECT_EQ(Normalize("\U00011938", form), "\U00011938");
  }
}

// Metaspace's "first" asks where the first character of the text went: whatever normalizers and earlier pre-tokenizers
// remove, put before it or make of it.
TEST(Pipeline, MetaspaceFirstFollowsTheFirstCharacter) {
  const std::string first = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": false})";
  const auto cut = [&](const std::string& normalizer, const std::string& text) { return Cut(first, text, normalizer); };
  const std::string drop = R"({"type": "Replace", "pattern": {"Regex": "1+"}, "content": ""})";
  EXPECT_EQ(cut(drop, "1a"), "a|");
  EXPECT_EQ(cut(drop, "a1"), "_a|");
  // A replacement stands for the last character that it replaces.
  const std::string shrink = R"({"type": "Replace", "pattern": {"Regex": "1+"}, "content": "b"})";
  EXPECT_EQ(cut(shrink, "1a"), "_ba|");
  EXPECT_EQ(cut(shrink, "11a"), "ba|");
  EXPECT_EQ(cut(R"({"type": "StripAccents"})",
                "\xCC\x81"
                "a"),
            "a|");
  EXPECT_EQ(cut(R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "b"}, )" + drop + "]}", "1a"),
            "_ba|");
  EXPECT_EQ(cut(R"({"type": "Sequence", "normalizers": [)" + drop + R"(, {"type": "Prepend", "prepend": "b"}]})", "1a"),
            "ba|");
  // Both the mark and the letter come from the first character.
  EXPECT_EQ(Cut(R"({"type": "Sequence", "pretokenizers": [
                {"type": "Metaspace", "replacement": "-", "prepend_scheme": "always", "split": false},
                {"type": "Split", "pattern": {"String": "-"}, "behavior": "Isolated", "invert": false}, )" +
                    first + "]}",
                "a b"),
            "_-|_a|-|b|");
}

// The crates' tables are of other Unicode versions than the library's: U+2E52 is no punctuation there, U+0897 and
// U+1AC0 are a mark and none, U+A7CB has a lower case.
TEST(Pipeline, CharacterTablesAreThoseOfTheCrates) {
  const auto tokenizer = [](const char* part, const char* value) {
    Json json = {
        {"decoder", {{"type", "Fuse"}}},
        {"model",
         {{"type", "BPE"}, {"end_of_word_suffix", "|"}, {"vocab", Json::object()}, {"merges", Json::array()}}}};
    int id = 0;
    for (const char* c : {"a", "\xE2\xB9\x92", "\xE2\xB8\xAE", "\xE1\xAB\x80", "\xC9\xA4", "\xEA\x9F\x8B"}) {
      json["model"]["vocab"][c] = id++;
      json["model"]["vocab"][std::string(c) + "|"] = id++;
    }
    json[part] = Json::parse(value);
    return *Tokenizer::FromJson(json.dump(), "");
  };
  const auto through = [](const auto& t, const std::string& text) { return t->Decode(t->Encode(text), false); };
  const auto punctuation = tokenizer("pre_tokenizer", R"({"type": "Punctuation"})");
  EXPECT_EQ(through(punctuation,
                    "a\xE2\xB9\x92"
                    "a"),
            "a\xE2\xB9\x92"
            "a|");
  EXPECT_EQ(through(punctuation,
                    "a\xE2\xB8\xAE"
                    "a"),
            "a|\xE2\xB8\xAE|a|");
  const auto accents = tokenizer("normalizer", R"({"type": "StripAccents"})");
  EXPECT_EQ(through(accents,
                    "a\xE1\xAB\x80"
                    "a\xCC\x81"
                    "a"),
            "a\xE1\xAB\x80"
            "aa|");
  EXPECT_EQ(through(tokenizer("normalizer", R"({"type": "Lowercase"})"),
                    "\xEA\x9F\x8B"
                    "A"),
            "\xC9\xA4"
            "a|");
}

// Sequences of processors hand on parts: a template makes several, a later one reads two as a pair.
TEST(Pipeline, PostProcessorsInSequence) {
  const auto with = [](const std::string& processors) {
    const std::string json = R"({"post_processor": {"type": "Sequence", "processors": [)" + processors +
                             R"(]}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})";
    auto tokenizer = Tokenizer::FromJson(json, "");
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return *std::move(tokenizer);
  };
  const std::string eos = R"({"type": "TemplateProcessing",
      "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "e", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "B", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"e": {"id": "e", "ids": [7, 8], "tokens": ["e", "f"]}}})";
  const EncodeOptions special{.add_special = true};
  EXPECT_EQ(with(eos)->Encode("ab", special), (Ids{0, 1, 7, 8}));
  EXPECT_EQ(with(eos + "," + eos)->Encode("ab", special), (Ids{7, 8, 0, 1}));
  EXPECT_EQ(with(eos + R"(, {"type": "BertProcessing", "cls": ["c", 5], "sep": ["s", 6]})")->Encode("ab", special),
            (Ids{5, 0, 1, 6, 7, 8, 6}));
  EXPECT_EQ(with(eos + R"(, {"type": "RobertaProcessing", "cls": ["c", 5], "sep": ["s", 6]})")->Encode("ab", special),
            (Ids{5, 0, 1, 6, 6, 7, 8, 6}));
  // Without special tokens a template still does what it does with the text.
  const std::string twice = R"({"type": "TemplateProcessing", "special_tokens": {}, "pair": [],
      "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]})";
  EXPECT_EQ(with(twice)->Encode("ab"), (Ids{0, 1, 0, 1}));
  EXPECT_EQ(with(eos)->Encode("ab"), (Ids{0, 1}));
}

// A special token whose normalized text differs is not told from ordinary text when decoding (tokenizers 0.23).
TEST(Pipeline, NormalizedSpecialTokensAreDecoded) {
  const auto tokenizer = Tokenizer::FromJson(R"({"normalizer": {"type": "Lowercase"}, "decoder": {"type": "Fuse"},
      "added_tokens": [
        {"id": 1, "content": "NUM", "single_word": false, "lstrip": false, "rstrip": false, "normalized": true, "special": true},
        {"id": 2, "content": "num2", "single_word": false, "lstrip": false, "rstrip": false, "normalized": true, "special": true}],
      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
                                             "");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Decode(Ids{0, 1, 2, 0}, true), "anuma");
}

std::unique_ptr<const Tokenizer> Merging(const char* extra) {
  const std::string json = std::string(R"({"decoder": {"type": "Fuse"}, "model": {"type": "BPE",)") + extra + "}}";
  auto tokenizer = Tokenizer::FromJson(json, "");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

TEST(Pipeline, UnknownCharacters) {
  const std::string vocab = R"("vocab": {"<unk>": 0, "a": 1, "b": 2}, "merges": [])";
  EXPECT_EQ(Merging((R"("unk_token": "<unk>",)" + vocab).c_str())->Encode("accb"), (Ids{1, 0, 0, 2}));
  EXPECT_EQ(Merging((R"("unk_token": "<unk>", "fuse_unk": true,)" + vocab).c_str())->Encode("accb"), (Ids{1, 0, 2}));
  EXPECT_EQ(Merging(vocab.c_str())->Encode("accb"), (Ids{1, 2}));
}

TEST(Pipeline, SubwordPrefix) {
  const auto tokenizer = Merging(R"("continuing_subword_prefix": "##",
      "vocab": {"a": 0, "##b": 1, "##c": 2, "ab": 3, "abc": 4}, "merges": ["a ##b", "ab ##c"])");
  EXPECT_EQ(tokenizer->Encode("abc"), Ids{4});
  EXPECT_EQ(tokenizer->Encode("ac"), (Ids{0, 2}));
}

// Both ways of merging, the scan of short words and the heap of long ones, on words of one kind: equal prefixes of ids.
TEST(Pipeline, LongWordsMergeLikeShortOnes) {
  const auto tokenizer = Merging(R"("vocab": {"a": 0, "b": 1, "aa": 2, "ab": 3, "aab": 4, "aabaab": 5},
      "merges": [["a", "b"], ["a", "ab"], ["aab", "aab"], ["a", "a"]])");
  Ids expected;
  std::string word;
  for (int i = 0; i < 50'000; ++i) word += "aabaab";
  for (int i = 0; i < 50'000; ++i) expected.push_back(5);
  EXPECT_EQ(tokenizer->Encode("aabaab"), Ids{5});
  EXPECT_EQ(tokenizer->Encode(word), expected);
  EXPECT_EQ(tokenizer->Encode(std::string(5, 'a')), (Ids{2, 2, 0}));
  EXPECT_EQ(tokenizer->Encode(std::string(101, 'a')).size(), 51u);
}

// Tokens of white space that swallow white space: the run beside them must not be walked again for each.
TEST(Pipeline, StrippingTokensTakeLinearTime) {
  const auto with = [](const char* flag) {
    Json json = Json::parse(R"({"decoder": {"type": "Fuse"}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
        "added_tokens": [{"id": 1, "content": "\n", "single_word": false, "lstrip": false, "rstrip": false,
                          "normalized": false, "special": false}]})");
    json["added_tokens"][0][flag] = true;
    return *Tokenizer::FromJson(json.dump(), "");
  };
  const std::string text = "a" + std::string(400'000, '\n') + "a";
  // Quadratic, this would be 8e10 steps. As in the crate every line end is found, swallowed before or not.
  EXPECT_EQ(with("lstrip")->Encode(text).size(), 400'002u);
  EXPECT_EQ(with("rstrip")->Encode(text).size(), 400'002u);
  EXPECT_EQ(with("lstrip")->Encode("a  \n \na"), (Ids{0, 1, 1, 0}));
}

// A token that strips to its left finds nothing of itself left inside spaces that one before it has taken.
TEST(Pipeline, SwallowedTokensThatStripToTheLeftAreDropped) {
  const auto tokenizer = Tokenizer::FromJson(
      R"({"decoder": {"type": "Fuse"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
          "added_tokens": [{"id": 2, "content": "<t>", "single_word": false, "lstrip": false, "rstrip": true,
                            "normalized": false, "special": false},
                           {"id": 3, "content": "\t", "single_word": false, "lstrip": true, "rstrip": true,
                            "normalized": false, "special": false}]})",
      "");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("a<t>\t\t b"), (Ids{0, 2, 1}));
  EXPECT_EQ((*tokenizer)->Encode("\t\tb"), (Ids{3, 1}));
  EXPECT_EQ((*tokenizer)->Encode("\tb\t<t>\t"), (Ids{3, 1, 3, 2}));
}

TEST(Pipeline, BrokenUtf8IsReplacedFirst) {
  const auto tokenizer = Merging(R"("vocab": {"a": 0, "\ufffd": 1}, "merges": [])");
  EXPECT_EQ(tokenizer->Encode("a\xFF\xE4\xB8"
                              "a\xED\xA0\x80"),
            (Ids{0, 1, 1, 0, 1, 1, 1}));
}

// What a stream returns early is what it may: nothing of an unfinished character, run of bytes or replaced text.
TEST(DecodeStreamTest, HoldsBackWhatCanChange) {
  const std::string json = R"({"decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "__"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Replace", "pattern": {"String": "xyz"}, "content": "!"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 1}]},
      "model": {"type": "BPE", "vocab": {"__a": 0, "x": 1, "yz": 2, "<0xE4>": 3, "<0xB8>": 4, "<0x96>": 5, "__": 6},
      "merges": []}})";
  const auto tokenizer = Tokenizer::FromJson(json, "");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto pushes = [&](const Ids& ids) {
    DecodeStream stream(**tokenizer, false);
    std::vector<std::string> out;
    for (const int32_t id : ids) out.push_back(stream.Push(id));
    out.push_back(stream.Flush());
    std::string joined;
    for (const std::string& part : out) joined += part;
    EXPECT_EQ(joined, (*tokenizer)->Decode(ids, false));
    return out;
  };
  using Parts = std::vector<std::string>;
  EXPECT_EQ(pushes({0, 0}), (Parts{"a", " a", ""}));
  EXPECT_EQ(pushes({0, 1, 2, 0}), (Parts{"a", "", "!", " a", ""}));
  EXPECT_EQ(pushes({0, 1, 0}), (Parts{"a", "", "x a", ""}));
  EXPECT_EQ(pushes({3, 4, 5, 0}), (Parts{"", "", "", "\xE4\xB8\x96 a", ""}));
  EXPECT_EQ(pushes({3, 4, 0}), (Parts{"", "", "\xEF\xBF\xBD\xEF\xBF\xBD a", ""}));
  EXPECT_EQ(pushes({0, 6, 6}), (Parts{"a", "", " ", ""}));
  EXPECT_EQ(pushes({3, 4, 5}), (Parts{"", "", "", "\xE4\xB8\x96"}));
}

// Threads share one tokenizer and its cache of words; each must see what a lone caller sees.
TEST(Pipeline, ManyThreads) {
  const auto tokenizer = WithParts("null", R"({"type": "WhitespaceSplit"})");
  ASSERT_NE(tokenizer, nullptr);
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int k = i; k > 0; k /= 3) text += std::string("abc12,-").substr(static_cast<size_t>(k) % 7) + " ";
    texts.push_back(text);
    expected.push_back(WithParts("null", R"({"type": "WhitespaceSplit"})")->Encode(text));
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        for (size_t i = 0; i < texts.size(); ++i) wrong[t] += tokenizer->Encode(texts[i]) != expected[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace iha::tokenizer
