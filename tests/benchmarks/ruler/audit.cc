#include "tests/benchmarks/ruler/audit.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "benchmarks/ruler/haystack.h"
#include "benchmarks/ruler/text.h"
#include "benchmarks/ruler/token_counter.h"
#include "tests/benchmarks/ruler/ruler_support.h"

namespace iha::benchmarks::ruler {
namespace {

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

// What stands between the first `begin` and the last `end`.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin), to = text.rfind(end);
  if (from == std::string::npos || to == std::string::npos || from + begin.size() > to) return "";
  return text.substr(from + begin.size(), to - from - begin.size());
}

struct Needle {
  std::string key, value;
};

// Takes all needles out of `text`.
std::vector<Needle> TakeNeedles(std::string& text) {
  std::vector<Needle> needles;
  const std::string begin = "One of the special magic ";
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    const size_t key = text.find(" for ", at) + 5, middle = text.find(" is: ", key), end = text.find('.', middle);
    if (end == std::string::npos) break;
    needles.push_back({text.substr(key, middle - key), text.substr(middle + 5, end - middle - 5)});
    text.erase(at, end + 1 - at);
  }
  return needles;
}

void AuditNiah(const RulerRow& row, const NiahParameters& parameters, const Haystack& essays) {
  std::string context = Between(row.input, " afterwards.\n", "\nWhat ");
  const std::vector<std::string> lines = Split(context, '\n');
  const std::vector<Needle> needles = TakeNeedles(context);
  std::map<std::string, std::vector<std::string>> values_of;
  std::set<std::string> all;
  for (const Needle& needle : needles) {
    EXPECT_TRUE(all.insert(needle.value).second) << needle.value << " comes twice";
    values_of[needle.key].push_back(needle.value);
  }
  std::set<std::string> answers(row.outputs.begin(), row.outputs.end());
  ASSERT_EQ(answers.size(), static_cast<size_t>(parameters.queries * parameters.values));
  const std::string question = row.input.substr(row.input.rfind("\nWhat "));
  for (const auto& [key, values] : values_of) {
    const bool hidden = parameters.haystack == HaystackKind::kNeedle && values.size() == 1;
    if (!hidden) {
      EXPECT_EQ(values.size(), static_cast<size_t>(parameters.values)) << key;
    }
    const bool queried =
        question.find(" " + key + " ") != std::string::npos || question.find(" " + key + ",") != std::string::npos;
    for (const std::string& value : values) EXPECT_EQ(answers.contains(value), queried) << key << " " << value;
  }
  if (parameters.haystack == HaystackKind::kEssay) {
    EXPECT_EQ(values_of.size(), static_cast<size_t>(parameters.keys));
    const std::string text = CollapseSpace(context);
    const std::string rest = text.substr(text.starts_with(" ") ? 1 : 0);
    const size_t length = rest.ends_with(" ") ? rest.size() - 1 : rest.size();
    EXPECT_EQ(rest.substr(0, length), essays.joined().substr(0, length));
  } else {
    EXPECT_EQ(lines.back().find(row.outputs[0]), std::string::npos) << "a needle behind the last line";
  }
}

void AuditVt(const RulerRow& row) {
  // The example stands before the row's own words.
  const size_t own = row.input.rfind("Memorize and track the chain(s)");
  const std::string context = Between(row.input.substr(own), "following text.\n\n", "\nQuestion: ");
  const std::string value = Between(row.input, "assigned the value ", " in the text above");
  ASSERT_EQ(row.outputs.size(), 5u);
  std::vector<std::string> expected;
  for (size_t i = 0; i < 5; ++i) {
    expected.push_back(i == 0 ? "VAR " + row.outputs[0] + " = " + value.substr(value.size() - 5)
                              : "VAR " + row.outputs[i] + " = VAR " + row.outputs[i - 1] + " ");
  }
  std::vector<std::string> chain;
  const std::vector<std::string> lines = Split(context, '\n');
  for (const std::string& line : lines) {
    if (line != kNoiseLine) chain.push_back(line);
  }
  EXPECT_EQ(chain, expected);
  EXPECT_EQ(lines.back(), kNoiseLine);
  EXPECT_EQ(std::set<std::string>(row.outputs.begin(), row.outputs.end()).size(), 5u);
}

void AuditCwe(const RulerRow& row, bool short_form) {
  const size_t own = row.input.rfind("Below is a numbered list");
  const std::string list = Between(row.input.substr(own), "appear most often.\n", "\nQuestion: ");
  std::map<std::string, int> counts;
  size_t at = 0;
  for (int number = 1; at < list.size(); ++number) {
    const std::string mark = std::to_string(number) + ". ", next = " " + std::to_string(number + 1) + ". ";
    ASSERT_EQ(list.substr(at, mark.size()), mark);
    const size_t end = std::min(list.find(next, at), list.size());
    ++counts[list.substr(at + mark.size(), end - at - mark.size())];
    at = end + 1;
  }
  const std::set<std::string> common(row.outputs.begin(), row.outputs.end());
  EXPECT_EQ(common.size(), 10u);
  for (const auto& [word, count] : counts) {
    EXPECT_EQ(count, common.contains(word) ? (short_form ? 6 : 30) : (short_form ? 1 : 3)) << word;
  }
}

void AuditFwe(const RulerRow& row) {
  const std::string context = Between(row.input, "appeared coded words. ", "\nQuestion: ");
  std::map<std::string, int64_t> counts;
  for (const std::string& word : Split(context, ' ')) ++counts[word];
  std::vector<std::pair<int64_t, std::string>> by_count;
  for (const auto& [word, count] : counts) by_count.emplace_back(count, word);
  std::sort(by_count.rbegin(), by_count.rend());
  ASSERT_GT(by_count.size(), 4u);
  EXPECT_EQ(by_count[0].second, "...");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(by_count[i + 1].second, row.outputs[i]);
  EXPECT_GT(by_count[3].first, by_count[4].first);
}

void AuditQa(const RulerRow& row, const QaData& data) {
  const QaQuestion& question = data.questions[static_cast<size_t>(row.number)];
  EXPECT_EQ(row.outputs, question.outputs);
  EXPECT_TRUE(row.input.ends_with("Question: " + question.query));
  std::set<std::string> seen;
  std::string context = Between(row.input, "given documents.\n\nDocument 1:\n", "\n\nAnswer the question");
  for (int number = 2; !context.empty(); ++number) {
    const std::string mark = "\n\nDocument " + std::to_string(number) + ":\n";
    const size_t end = std::min(context.find(mark), context.size());
    EXPECT_TRUE(seen.insert(context.substr(0, end)).second) << "a document comes twice";
    context = end == context.size() ? "" : context.substr(end + mark.size());
  }
  for (const int32_t own : question.own) {
    EXPECT_TRUE(seen.contains(data.documents[static_cast<size_t>(own)])) << "an own document is missing";
  }
}

// How much of the length a task's rows leave free at most: one of its smallest steps.
int64_t Slack(const Task& task, int64_t length) {
  if (task.family == Family::kQa) return length / 25;
  if (task.niah.haystack == HaystackKind::kNeedle && task.niah.uuid_keys) return 120;
  return std::max<int64_t>(length / 100, 30);
}

void AuditTask(const std::string& data, const std::string& cases, const Task& task, int64_t length, int64_t count) {
  SCOPED_TRACE(task.name);
  RulerOptions options = SmolLm2Options(data, cases, std::string(task.name), length);
  options.mode = Mode::kSeeded;
  options.seed = 7;
  options.threads = 2;
  const absl::StatusOr<RulerRows> rows = MakeRows(options, 0, count);
  ASSERT_TRUE(rows.ok()) << rows.status();
  if (task.family == Family::kQa && task.qa == QaSource::kHotpot) count = std::min<int64_t>(count, 100);
  ASSERT_EQ(static_cast<int64_t>(rows->rows.size()), count) << (rows->end ? rows->end->cause : "");
  const TokenCounter counter(options.tokenizer);
  const auto essays = SharedTexts(data)->Essays(Sentences::kPunkt);
  std::set<std::string> inputs;
  for (const RulerRow& row : rows->rows) {
    SCOPED_TRACE(row.number);
    EXPECT_EQ(row.length, counter.Whole(row.input + row.answer_prefix) + task.tokens_to_generate);
    EXPECT_LE(row.length, length);
    EXPECT_GE(row.length, length - Slack(task, length));
    EXPECT_TRUE(inputs.insert(row.input).second);
    EXPECT_EQ(row.index, row.number);
    if (task.family == Family::kNiah) AuditNiah(row, task.niah, **essays);
    if (task.family == Family::kVt) AuditVt(row);
    if (task.family == Family::kCwe) AuditCwe(row, length < 4096);
    if (task.family == Family::kFwe) AuditFwe(row);
    if (task.family == Family::kQa) AuditQa(row, **SharedTexts(data)->Qa(task.qa));
    if (::testing::Test::HasFailure()) return;  // one row tells
  }
}

}  // namespace

void AuditSeededRows(const std::string& data, const std::string& cases, int64_t length, int64_t rows) {
  for (const Task& task : Tasks()) AuditTask(data, cases, task, length, rows);
}

}  // namespace iha::benchmarks::ruler
