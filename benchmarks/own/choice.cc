#include "benchmarks/own/choice.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "benchmarks/options.h"
#include "benchmarks/own/rows.h"
#include "benchmarks/own/template_text.h"
#include "benchmarks/scoring/choice_scores.h"
#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks {
namespace {

using Json = nlohmann::json;
using scoring::ChoiceScore;

constexpr size_t kMaxChoices = 1000;
constexpr size_t kShown = 80;  // bytes of a field in a message

struct Row {
  std::string id;
  std::string prompt;
  std::vector<std::string> choices;
  size_t gold = 0;
};

absl::StatusOr<const Json*> Field(const Json& row, const std::string& name, const char* expected) {
  const auto it = row.find(name);
  if (it != row.end()) return &*it;
  return InvalidArgument("field \"{}\": missing; expected {}", TerminalSafe(name, kShown), expected);
}

absl::StatusOr<std::vector<std::string>> ReadChoices(const Json& row, const std::string& name) {
  IHA_ASSIGN_OR_RETURN(const Json* const field, Field(row, name, "an array of texts"));
  const std::string where = fmt::format("field \"{}\"", TerminalSafe(name, kShown));
  if (!field->is_array()) return InvalidArgument("{}: found {}, expected an array of texts", where, Shown(*field));
  if (field->size() < 2 || field->size() > kMaxChoices) {
    return InvalidArgument("{}: found {} choices, expected 2 to {}", where, field->size(), kMaxChoices);
  }
  std::vector<std::string> choices;
  for (const Json& choice : *field) {
    if (!choice.is_string() || choice.get_ref<const std::string&>().empty()) {
      return InvalidArgument("{}: choice {}: found {}, expected a text that is not empty", where, choices.size(),
                             Shown(choice));
    }
    choices.push_back(choice.get<std::string>());
  }
  return choices;
}

// A number counts choices from 0. A text is the first choice that it equals, else a letter that counts them from A.
absl::StatusOr<size_t> ReadGold(const Json& row, const std::string& name, const std::vector<std::string>& choices) {
  const size_t letters = std::min<size_t>(choices.size(), 26);
  const std::string expected = fmt::format("the index of a choice (0 to {}), its text, or its letter (A to {})",
                                           choices.size() - 1, static_cast<char>('A' + letters - 1));
  IHA_ASSIGN_OR_RETURN(const Json* const field, Field(row, name, expected.c_str()));
  if (const auto index = JsonInteger(*field); index.has_value()) {
    if (*index >= 0 && static_cast<size_t>(*index) < choices.size()) return static_cast<size_t>(*index);
  } else if (field->is_string()) {
    const auto& text = field->get_ref<const std::string&>();
    const auto equal = std::find(choices.begin(), choices.end(), text);
    if (equal != choices.end()) return static_cast<size_t>(equal - choices.begin());
    if (text.size() == 1 && text[0] >= 'A' && static_cast<size_t>(text[0] - 'A') < letters) {
      return static_cast<size_t>(text[0] - 'A');
    }
  }
  return InvalidArgument("field \"{}\": found {}, expected {}", TerminalSafe(name, kShown), Shown(*field), expected);
}

absl::StatusOr<Row> ReadRow(const Json& json, const std::vector<TemplatePart>& prompt, const BenchmarkRef& ref) {
  Row row;
  for (const TemplatePart& part : prompt) {
    if (part.field) IHA_RETURN_IF_ERROR(Field(json, part.text, "it, for option prompt names it").status());
  }
  IHA_ASSIGN_OR_RETURN(row.prompt, FillTemplate(prompt, json));
  IHA_ASSIGN_OR_RETURN(row.choices, ReadChoices(json, ref.options.at("choices")));
  IHA_ASSIGN_OR_RETURN(row.gold, ReadGold(json, ref.options.at("gold"), row.choices));
  return row;
}

absl::StatusOr<std::vector<Row>> ReadRows(const std::string& path, const std::string& bytes, const BenchmarkRef& ref) {
  std::vector<Row> rows;
  const auto read = [&](const Json& json, const auto& prompt, const std::string& id) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(Row row, ReadRow(json, prompt, ref));
    row.id = id;
    rows.push_back(std::move(row));
    return absl::OkStatus();
  };
  IHA_RETURN_IF_ERROR(ForEachRow(path, bytes, ref, read));
  return rows;
}

class ChoiceBenchmark final : public Benchmark {
 public:
  ChoiceBenchmark(BenchmarkInfo info, BenchmarkRef ref, std::vector<Row> rows, const Digest& data_digest)
      : info_(std::move(info)), ref_(std::move(ref)), rows_(std::move(rows)), data_digest_(data_digest) {}

  const BenchmarkInfo& info() const override { return info_; }
  const BenchmarkRef& ref() const override { return ref_; }
  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  std::string ItemId(int64_t index) const override { return At(index).id; }
  std::string Gold(int64_t index) const override { return At(index).choices[At(index).gold]; }
  Digest data_digest() const override { return data_digest_; }

  Prompt Render(int64_t index) const override {
    Prompt prompt;
    prompt.text = At(index).prompt;
    const std::string& delimiter = ref_.options.at("delimiter");
    for (const std::string& choice : At(index).choices) prompt.choices.push_back(delimiter + choice);
    return prompt;
  }

  std::vector<std::vector<SampleGrade>> Grade(int64_t index, const std::vector<std::string>& texts,
                                              const std::vector<MetricInfo>& metrics) const override {
    std::vector<std::vector<SampleGrade>> grades;
    for (const std::string& text : texts) {
      const auto scores = scoring::ParseChoiceScores(text, At(index).choices.size());
      std::vector<SampleGrade>& sample = grades.emplace_back();
      for (const MetricInfo& metric : metrics) sample.push_back(GradeOne(At(index), metric.name, scores));
    }
    for (size_t s = 0; s < grades.size(); ++s) {
      for (size_t m = 0; m < metrics.size(); ++m) grades[s][m].group = GroupOf(grades, s, m);
    }
    return grades;
  }

 private:
  const Row& At(int64_t index) const { return rows_[static_cast<size_t>(index)]; }

  static SampleGrade GradeOne(const Row& row, const std::string& metric,
                              const absl::StatusOr<std::vector<ChoiceScore>>& scores) {
    SampleGrade grade;
    grade.metric = metric;
    if (!scores.ok()) {
      grade.unscored = Unscored::kGraderError;
      grade.reason = std::string(scores.status().message());
      return grade;
    }
    const bool by_length = metric == "acc_norm";
    const size_t chosen =
        by_length ? scoring::LikeliestByLength(*scores, row.choices) : scoring::LikeliestChoice(*scores);
    const auto value = [&](size_t i) {
      const double sum = (*scores)[i].loglikelihood;
      return by_length ? sum / static_cast<double>(scoring::CharacterCount(row.choices[i])) : sum;
    };
    grade.extracted = row.choices[chosen];
    grade.valid = true;
    grade.score = {chosen == row.gold ? 1 : 0, 1};
    const char* per = by_length ? " per character" : "";
    grade.reason = fmt::format("choice {}: {}{}", chosen, value(chosen), per);
    if (chosen != row.gold) grade.reason += fmt::format("; the right one is choice {}: {}", row.gold, value(row.gold));
    return grade;
  }

  // The first sample that chose the same; -1: it chose nothing.
  static int32_t GroupOf(const std::vector<std::vector<SampleGrade>>& grades, size_t sample, size_t metric) {
    const SampleGrade& grade = grades[sample][metric];
    if (!grade.valid) return -1;
    for (size_t s = 0; s < sample; ++s) {
      if (grades[s][metric].valid && grades[s][metric].extracted == grade.extracted) return static_cast<int32_t>(s);
    }
    return static_cast<int32_t>(sample);
  }

  const BenchmarkInfo info_;
  const BenchmarkRef ref_;
  const std::vector<Row> rows_;
  const Digest data_digest_;
};

}  // namespace

BenchmarkInfo ChoiceInfo(const std::string& name) {
  BenchmarkInfo info;
  info.name = name;
  info.version = "choice/1";
  info.grader_version = "choice/1";
  info.summary = "your own multiple-choice questions: FILE holds one JSON object a line";
  info.protocol =
      "lm-evaluation-harness 0.4.13, output_type multiple_choice: the log-likelihood of delimiter + choice behind the "
      "prompt, each choice by itself; nothing is drawn";
  info.options = {
      {"choices", "choices", "the row's field with the choices, an array of texts"},
      {"delimiter", " ", "stands between prompt and choice (target_delimiter)"},
      {"gold", "answer", "the row's field with the right choice: its index from 0, its text, or its letter from A"},
      {"prompt", "{question}", "template: {field} is the row's field, {{ and }} are braces"},
  };
  info.metrics = {
      {"acc", "lm-evaluation-harness' acc: the likeliest choice, the first among equals, is the right one"},
      {"acc_norm", "its acc_norm: the same of log-likelihood / characters of the choice, the delimiter not counted"},
  };
  info.default_metrics = {"acc", "acc_norm"};
  info.default_sampling.max_new_tokens = 0;
  info.likelihood = true;
  return info;
}

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenChoice(const BenchmarkRef& ref) {
  BenchmarkInfo info = ChoiceInfo(ref.name);
  IHA_ASSIGN_OR_RETURN(BenchmarkRef full, WithDefaults(info, ref));
  const std::string path = ref.name.substr(std::string_view(kChoicePrefix).size());
  IHA_ASSIGN_OR_RETURN(const std::string bytes, ReadRowsFile(ref.name, kChoicePrefix));
  absl::StatusOr<std::vector<Row>> rows = ReadRows(path, bytes, full);
  if (!rows.ok()) return rows.status();
  return std::make_unique<const ChoiceBenchmark>(std::move(info), std::move(full), *std::move(rows), Sha256Of(bytes));
}

}  // namespace iha::benchmarks
