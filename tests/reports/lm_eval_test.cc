// Results of lm-evaluation-harness as imported rows.
#include "reports/lm_eval.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.h"
#include "reports/render.h"
#include "tests/reports/two_models.h"

namespace iha::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The shape of a real file of 0.4.13, cut to what matters.
constexpr const char* kResults = R"({
  "results": {
    "gsm8k": {"alias": "gsm8k", "exact_match,strict-match": 0.3333333333333333,
              "exact_match_stderr,strict-match": 0.2, "exact_match,flexible-extract": 0.5},
    "wikitext": {"alias": "wikitext", "word_perplexity,none": 0.9, "bits_per_byte,none": 12.5}
  },
  "n-shot": {"gsm8k": 5, "wikitext": 0},
  "higher_is_better": {"gsm8k": {"exact_match": true}, "wikitext": {"word_perplexity": false, "bits_per_byte": false}},
  "n-samples": {"gsm8k": {"original": 1319, "effective": 6}},
  "config": {"model": "hf", "model_args": "pretrained=some/model,dtype=float32"},
  "lm_eval_version": "0.4.13"
})";

TEST(ImportLmEval, ReadsResults) {
  const auto row = ImportLmEvalResults(kResults, "results.json");
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->model, "some/model");
  EXPECT_THAT(row->source, HasSubstr("lm-evaluation-harness 0.4.13, results "));
  EXPECT_THAT(row->source, HasSubstr("(gsm8k: 5-shot, 6 of 1319 items; wikitext: 0-shot)"));
  ASSERT_EQ(row->values.size(), 2u);
  EXPECT_EQ(row->values[0].metric, "gsm8k.strict_match");
  EXPECT_EQ(row->values[0].value->ToString(), "1/3");  // 2 of 6, not the double's own digits
  EXPECT_EQ(row->values[1].metric, "gsm8k.flexible_extract");
  EXPECT_THAT(row->notes, ElementsAre("wikitext word_perplexity,none is left out: lower is better",
                                      "wikitext bits_per_byte,none is left out: not a share between 0 and 1"));
}

TEST(ImportLmEval, TakesTheColumnOfTheSameRuleAndNoOther) {
  const auto row = ImportLmEvalResults(kResults, "results.json");
  ASSERT_TRUE(row.ok()) << row.status();
  const auto table = BuildTable(TwoModels({{1, 0, 0, 0}}), {}, {*row});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(Percent(*table->rows[1].cells[0].cell.value, 2), "33.33");
  EXPECT_FALSE(table->rows[1].cells[1].cell.value.has_value());  // gsm8k.robust votes: no rule of that tool's
  const std::string md = RenderMarkdown(*table);
  EXPECT_THAT(md, HasSubstr("some/model (imported)"));
  EXPECT_THAT(md, HasSubstr("imported values without a column here: gsm8k exact_match,flexible-extract"));
  const auto alone = BuildImportedTable({*row}, {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->columns[0].header, "gsm8k exact_match,strict-match");
  EXPECT_THAT(RenderMarkdown(*alone), Not(HasSubstr("exact)")));
}

TEST(ImportLmEval, ReadsSamplesWithAnInterval) {
  std::string lines;
  for (int i = 0; i < 4; i++) {
    for (const char* filter : {"strict-match", "flexible-extract"}) {
      lines += fmt::format(R"({{"doc_id": {}, "filter": "{}", "metrics": ["exact_match"], "exact_match": {}}})", i,
                           filter, i == 0 ? "1.0" : "0.0");
      lines += "\n";
    }
  }
  const auto row = ImportLmEvalSamples(lines, "gsm8k", "m", "samples.jsonl");
  ASSERT_TRUE(row.ok()) << row.status();
  ASSERT_EQ(row->values.size(), 2u);
  EXPECT_EQ(row->values[1].metric, "gsm8k.strict_match");
  EXPECT_EQ(row->values[1].value->ToString(), "1/4");
  EXPECT_EQ(row->values[1].interval->method, scoring::IntervalMethod::kWilson);
  EXPECT_THAT(row->source, HasSubstr("(gsm8k, 4 items)"));
  EXPECT_THAT(row->notes, IsEmpty());
}

std::string TestData(const std::string& name) {
  return ReadFile("tests/reports/testdata/" + name).value_or("(unreadable)");
}

std::vector<std::string> Values(const ImportedRow& row) {
  std::vector<std::string> out;
  for (const ImportedValue& value : row.values) {
    out.push_back(
        fmt::format("{} = {} of {} {}", value.column, value.value->ToString(), value.benchmark, value.metric));
  }
  return out;
}

// Files that lm-evaluation-harness 0.4.13 itself wrote, of made-up documents (its environment and paths cut out).
TEST(ImportLmEval, TakesAllTasksOfAFileThatTheToolWrote) {
  const auto row = ImportLmEvalResults(TestData("lm_eval_results.json"), "r.json");
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->model, "org/fake");
  EXPECT_THAT(row->notes, IsEmpty());
  EXPECT_THAT(Values(*row),
              ElementsAre("gsm8k exact_match,strict-match = 0 of gsm8k gsm8k.strict_match",
                          "gsm8k exact_match,flexible-extract = 0 of gsm8k gsm8k.flexible_extract",
                          "minerva_math_algebra exact_match,none = 4/7 of minerva_math_algebra exact_match",
                          "minerva_math_algebra math_verify,none = 2/7 of minerva_math_algebra math_verify",
                          "minerva_math500 exact_match,none = 3/7 of math500 math.minerva",
                          "minerva_math500 math_verify,none = 5/7 of minerva_math500 math_verify",
                          "hendrycks_math_algebra exact_match,none = 6/7 of hendrycks_math_algebra exact_match",
                          "hendrycks_math_algebra math_verify,none = 1/7 of hendrycks_math_algebra math_verify",
                          "mbpp pass_at_1,none = 3/7 of mbpp mbpp.lm_eval.pass@1",
                          "humaneval pass@1,create_test = 4/7 of humaneval humaneval.official.pass@1",
                          "niah_single_1 4096,none = 3/10 of ruler:niah_single_1@4096 ruler.string_match",
                          "niah_single_1 8192,none = 1/10 of ruler:niah_single_1@8192 ruler.string_match",
                          "ruler_vt 4096,none = 1/5 of ruler:vt@4096 ruler.string_match",
                          "ruler_vt 8192,none = 1/5 of ruler:vt@8192 ruler.string_match",
                          "minerva_math exact_match,none = 4/7 of minerva_math exact_match",
                          "ruler 4096,none = 1/4 of ruler 4096"));
  EXPECT_EQ(row->values[0].shots, 5);
  EXPECT_EQ(row->values[4].shots, 0);
}

// A document of RULER has -1 at all lengths but its own.
TEST(ImportLmEval, SamplesOfRulerCountForTheirOwnLength) {
  const auto ruler =
      ImportLmEvalSamples(TestData("lm_eval_samples_niah_single_1.jsonl"), "niah_single_1", "m", "s.jsonl");
  ASSERT_TRUE(ruler.ok()) << ruler.status();
  EXPECT_THAT(ruler->notes, IsEmpty());
  EXPECT_THAT(Values(*ruler),
              ElementsAre("niah_single_1 4096,none = 3/10 of ruler:niah_single_1@4096 ruler.string_match",
                          "niah_single_1 8192,none = 1/10 of ruler:niah_single_1@8192 ruler.string_match"));
  const auto math =
      ImportLmEvalSamples(TestData("lm_eval_samples_minerva_math500.jsonl"), "minerva_math500", "m", "s.jsonl");
  ASSERT_TRUE(math.ok()) << math.status();
  EXPECT_THAT(Values(*math), ElementsAre("minerva_math500 exact_match,none = 3/7 of math500 math.minerva",
                                         "minerva_math500 math_verify,none = 5/7 of minerva_math500 math_verify"));
}

// Of two entries of one benchmark a value goes to the one whose settings its source tells.
TEST(ImportLmEval, TakesTheColumnOfItsShots) {
  Snapshot snapshot = TwoModels({{1, 0, 0, 0}});
  for (auto* metrics : {&snapshot.spec.entries[0].metrics, &snapshot.jobs[0].spec.entry.metrics}) {
    *metrics = {"gsm8k.strict_match", "gsm8k.robust"};
  }
  snapshot.spec.entries.insert(snapshot.spec.entries.begin(), snapshot.spec.entries[0]);
  snapshot.spec.entries[0].benchmark.options["fewshot"] = "8";
  snapshot.jobs.push_back(snapshot.jobs[0]);
  const auto row = ImportLmEvalResults(kResults, "r.json").value();
  const auto five = BuildTable(snapshot, {}, {row});
  ASSERT_TRUE(five.ok()) << five.status();
  EXPECT_FALSE(five->rows[1].cells[0].cell.value.has_value());
  EXPECT_EQ(Percent(*five->rows[1].cells[2].cell.value, 2), "33.33");
  snapshot.spec.entries[1].benchmark.options["fewshot"] = "4";  // none has five: the first
  const auto none = BuildTable(snapshot, {}, {row});
  EXPECT_EQ(Percent(*none->rows[1].cells[0].cell.value, 2), "33.33");
}

// What export adds is taken where it is what the number beside it says, and not where somebody changed that.
TEST(ImportLmEval, TakesTheFractionThatExportWrote) {
  const auto results = [](const std::string& number) {
    const auto row = ImportLmEvalResults(
        R"({"model_name": "m", "results": {"t": {"exact_match,none": )" + number +
            R"(}}, "configs": {"t": {"iha_eval": {"entry": "b?x=1", "benchmark": "b", "planned": 9, "metrics":
            {"exact_match,none": {"metric": "b.robust", "value": "1/3", "items": 6}}}}}})",
        "r.json");
    EXPECT_TRUE(row.ok()) << row.status();
    return *row;
  };
  const ImportedRow same = results("0.3333333333333333");
  EXPECT_THAT(Values(same), ElementsAre("t exact_match,none = 1/3 of b b.robust"));
  EXPECT_EQ(same.values[0].entry, "b?x=1");
  EXPECT_THAT(same.notes, ElementsAre("t exact_match,none: over 6 of 9 planned items"));
  EXPECT_THAT(Values(results("0.25")), ElementsAre("t exact_match,none = 1/4 of b b.robust"));
  const auto samples = ImportLmEvalSamples(
      R"({"doc_id": 0, "metrics": ["m"], "m": 0.6666666666666666, "iha_eval": {"metric": "b.m", "benchmark": "b", "score": "2/3"}})",
      "t", "m", "s.jsonl");
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(Values(*samples), ElementsAre("t m,none = 2/3 of b b.m"));
}

// As Python's json module writes them; the words inside strings are text.
TEST(ImportLmEval, ReadsPythonsWordsForNumbers) {
  const auto row = ImportLmEvalResults(
      R"({"model_name": "a \"NaN\" b", "results": {"t": {"alias": "Infinity", "acc,none": 0.5, "acc_stderr,none": NaN,
          "f1,none": NaN, "mcc,none": -Infinity}}})",
      "r.json");
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->model, "a \"NaN\" b");
  ASSERT_EQ(row->values.size(), 1u);
  EXPECT_EQ(row->values[0].column, "t acc,none");
  EXPECT_THAT(row->notes, ElementsAre("t f1,none is left out: not a number", "t mcc,none is left out: not a number"));
  const auto nothing = ImportLmEvalResults(R"({"model_name": "m", "results": {"t": {"acc,none": NaN}}})", "r.json");
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_EQ(std::string(BuildImportedTable({*nothing}, {}).status().message()), "the imported rows have no values");
}

// BLEU is 0 to 100: its documents below 1 are no sample of it.
TEST(ImportLmEval, AMetricThatIsNoShareForOneDocumentIsLeftOut) {
  const auto row = ImportLmEvalSamples(
      "{\"doc_id\": 0, \"metrics\": [\"bleu\", \"acc\", \"f1\"], \"bleu\": 0.0, \"acc\": 1, \"f1\": 0.5}\n"
      "{\"doc_id\": 1, \"metrics\": [\"bleu\", \"acc\", \"f1\"], \"bleu\": 45.2, \"acc\": 0, \"f1\": NaN}\n",
      "t", "m", "s.jsonl");
  ASSERT_TRUE(row.ok()) << row.status();
  ASSERT_EQ(row->values.size(), 1u);
  EXPECT_EQ(row->values[0].column, "t acc,none");
  EXPECT_EQ(row->values[0].value->ToString(), "1/2");
  EXPECT_THAT(row->notes, ElementsAre("t bleu,none is left out: no share between 0 and 1 for document 1",
                                      "t f1,none is left out: no share between 0 and 1 for document 1"));
}

TEST(ImportLmEval, NamesWhatIsWrong) {
  const auto results = [](const std::string& text) {
    return std::string(ImportLmEvalResults(text, "r.json").status().message());
  };
  EXPECT_THAT(results("{"), HasSubstr("r.json:1:"));
  EXPECT_THAT(results("[]"), HasSubstr("r.json: no object \"results\""));
  EXPECT_THAT(results(R"({"results": {"a": 1}})"), HasSubstr("r.json: results.a is no object"));
  const auto samples = [](const std::string& text) {
    return std::string(ImportLmEvalSamples(text, "t", "m", "s.jsonl").status().message());
  };
  EXPECT_THAT(samples("{\"a\": 1}\n"), HasSubstr("s.jsonl:1: no whole number \"doc_id\""));
  EXPECT_THAT(samples("{\"doc_id\": 1, \"acc\": 1}\n\n{\"doc_id\": 1, \"acc\": 0}\n"),
              HasSubstr("s.jsonl:3: doc_id 1 has a second acc with filter none"));
  EXPECT_THAT(samples("{\"doc_id\": 1, \"acc\": 1}\n{\"doc_id\": 2, \"acc_norm\": 0, \"acc\": 0}\n"),
              HasSubstr("1 documents have acc_norm with filter none, 2 have acc"));
  EXPECT_THAT(samples("{\"doc_id\": 1}\n"), HasSubstr("no line has a grade"));
  EXPECT_THAT(samples("{\"doc_id\": 1, \"doc_id\": 2}\n"), HasSubstr("s.jsonl:1"));
}

TEST(MergedRows, OneRowForEachModelAndNoColumnTwice) {
  const auto row = ImportLmEvalResults(kResults, "r.json").value();
  ImportedRow other = row;
  for (ImportedValue& value : other.values) value.column = "other " + value.column;
  const auto merged = MergedRows({row, other});
  ASSERT_TRUE(merged.ok()) << merged.status();
  ASSERT_EQ(merged->size(), 1u);
  EXPECT_EQ(merged->front().values.size(), 4u);
  EXPECT_THAT(std::string(MergedRows({row, row}).status().message()),
              HasSubstr("column \"gsm8k exact_match,strict-match\" comes from "));
}

}  // namespace
}  // namespace iha::reports
