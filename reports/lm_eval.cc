#include "reports/lm_eval.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/digest.h"
#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "reports/ruler_summary.h"

namespace iha::reports {
namespace {

using Json = nlohmann::ordered_json;
using scoring::Rational;

constexpr LmEvalName kNames[] = {
    {"gsm8k", "exact_match", "strict-match", "gsm8k", "gsm8k.strict_match"},
    {"gsm8k", "exact_match", "flexible-extract", "gsm8k", "gsm8k.flexible_extract"},
    {"gsm8k_cot", "exact_match", "strict-match", "gsm8k_cot", "gsm8k_cot.strict_match"},
    {"gsm8k_cot", "exact_match", "flexible-extract", "gsm8k_cot", "gsm8k_cot.flexible_extract"},
    {"gsm8k_cot_llama", "exact_match", "strict-match", "gsm8k_cot_llama", "gsm8k_cot_llama.strict_match"},
    {"gsm8k_cot_llama", "exact_match", "flexible-extract", "gsm8k_cot_llama", "gsm8k_cot_llama.flexible_extract"},
    {"gsm8k_cot_zeroshot", "exact_match", "strict-match", "gsm8k_cot_zeroshot", "gsm8k_cot.strict_match"},
    {"gsm8k_cot_zeroshot", "exact_match", "flexible-extract", "gsm8k_cot_zeroshot", "gsm8k_cot.flexible_extract"},
    {"minerva_math500", "exact_match", "none", "math500", "math.minerva"},
    {"hendrycks_math500", "exact_match", "none", "math500_hendrycks", "math.hendrycks"},
    {"mbpp", "pass_at_1", "none", "mbpp", "mbpp.lm_eval.pass@1"},
    {"mbpp_instruct", "pass_at_1", "extract_code", "mbpp_instruct", "mbpp.lm_eval.pass@1"},
    {"humaneval", "pass@1", "create_test", "humaneval", "humaneval.official.pass@1"},
    {"humaneval_instruct", "pass@1", "create_test", "humaneval_instruct", "humaneval.official.pass@1"},
};

std::string TextOr(const Json& object, const char* key, const std::string& otherwise) {
  if (!object.is_object()) return otherwise;
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : otherwise;
}

const Json& FieldOf(const Json& object, const std::string& key) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto at = object.find(key);
  return at == object.end() ? kNone : *at;
}

// That tool writes with Python's json module, which has words for numbers that JSON has not: null in their place, which
// is no score either.
std::string WithoutPythonNumbers(std::string_view text) {
  constexpr std::string_view kWords[] = {"NaN", "-Infinity", "Infinity"};
  std::string out;
  bool inside = false;  // of a string
  while (!text.empty()) {
    size_t length = 1;
    const bool word = !inside && std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view known) {
      if (!text.starts_with(known)) return false;
      length = known.size();
      return true;
    });
    if (!word && inside && text[0] == '\\') length = std::min<size_t>(2, text.size());
    if (!word && text[0] == '"') inside = !inside;
    out += word ? std::string_view("null") : text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

// Its RULER tasks whose rule is ours; that of its questions (qa) divides by the number of references.
constexpr std::pair<const char*, const char*> kRulerTasks[] = {
    {"niah_single_1", "niah_single_1"},
    {"niah_single_2", "niah_single_2"},
    {"niah_single_3", "niah_single_3"},
    {"niah_multikey_1", "niah_multikey_1"},
    {"niah_multikey_2", "niah_multikey_2"},
    {"niah_multikey_3", "niah_multikey_3"},
    {"niah_multivalue", "niah_multivalue"},
    {"niah_multiquery", "niah_multiquery"},
    {"ruler_vt", "vt"},
    {"ruler_cwe", "cwe"},
    {"ruler_fwe", "fwe"},
};

// A metric of RULER's tasks is called by its length in tokens, and is -1 where the task or document has another.
bool IsLength(const std::string& metric) {
  return !metric.empty() && metric.find_first_not_of("0123456789") == std::string::npos;
}
bool NotOfThisLength(const std::string& metric, const Rational& value) {
  return IsLength(metric) && value == Rational(-1);
}

// "1/3" as export writes it, if it is what stands beside it as a number.
std::optional<Rational> ExactOf(const Json& text, const Json& number) {
  if (!text.is_string() || !number.is_number()) return std::nullopt;
  const std::string& fraction = text.get_ref<const std::string&>();
  const size_t slash = std::min(fraction.find('/'), fraction.size());
  const auto num = Rational::ParseDecimal(fraction.substr(0, slash));
  const auto den = slash == fraction.size() ? Rational(1) : Rational::ParseDecimal(fraction.substr(slash + 1));
  if (!num.has_value() || !den.has_value() || den->Sign() <= 0) return std::nullopt;
  Rational exact = *num / *den;
  if (exact.Sign() < 0 || exact > Rational(1) || exact.ToDouble() != number.get<double>()) return std::nullopt;
  return exact;
}

// The number as it is written, exactly.
std::optional<Rational> NumberOf(const Json& value) {
  return value.is_number() ? Rational::ParseDecimal(value.dump()) : std::nullopt;
}

ImportedValue ValueOf(const std::string& task, const std::string& metric, const std::string& filter, Rational value) {
  ImportedValue out{.column = fmt::format("{} {},{}", task, metric, filter),
                    .benchmark = "",
                    .metric = "",
                    .value = std::move(value),
                    .decimals = 2,
                    .interval = std::nullopt};
  if (filter == "none") {  // as export writes what that tool has no name for
    out.benchmark = task;
    out.metric = metric;
  }
  for (const auto& [theirs, ours] : kRulerTasks) {
    if (task != theirs || filter != "none" || !IsLength(metric)) continue;
    out.benchmark = fmt::format("ruler:{}@{}", ours, metric);
    out.metric = kRulerMetric;
  }
  for (const LmEvalName& name : kNames) {
    if (task != name.task || metric != name.metric || filter != name.filter) continue;
    out.benchmark = name.benchmark;
    out.metric = name.name;
  }
  return out;
}

// What export says of a value beside what that tool would say.
void TakeOwn(const Json& entry, const Json& metric, ImportedValue& value) {
  if (!metric.is_string()) return;
  value.benchmark = TextOr(entry, "benchmark", "");
  value.entry = TextOr(entry, "entry", "");
  value.metric = metric.get<std::string>();
}

// "gsm8k exact_match,none: over 3 of 6 planned items", where export says that some are missing.
void NotePart(const Json& entry, const std::string& column, int64_t items, ImportedRow& row) {
  const auto planned = JsonInteger(FieldOf(entry, "planned"));
  if (!planned.has_value() || *planned <= items) return;
  row.notes.push_back(fmt::format("{}: over {} of {} planned items", column, items, *planned));
}

// A mean of n grades of 0 or 1 is written as a double: the fraction that it stands for, so that equal counts are equal.
Rational Counted(const Rational& value, int64_t items) {
  if (items < 1) return value;
  const double count = value.ToDouble() * static_cast<double>(items);
  const auto whole = static_cast<int64_t>(std::llround(count));
  constexpr double kNear = 1e-6;
  return std::fabs(count - static_cast<double>(whole)) < kNear ? Rational(whole, items) : value;
}

std::string ModelOf(const Json& file) {
  const std::string name = TextOr(file, "model_name", "");
  if (!name.empty()) return name;
  const std::string arguments = TextOr(FieldOf(file, "config"), "model_args", "");
  const size_t at = arguments.find("pretrained=");
  if (at == std::string::npos) return arguments;
  const size_t begin = at + std::string_view("pretrained=").size();
  return arguments.substr(begin, std::min(arguments.find(',', begin), arguments.size()) - begin);
}

// "gsm8k: 5-shot, 100 of 1319 items"
std::string TaskSource(const Json& file, const std::string& task) {
  std::string out = task;
  const auto shots = JsonInteger(FieldOf(FieldOf(file, "n-shot"), task));
  if (shots.has_value()) out += fmt::format(": {}-shot", *shots);
  const Json& items = FieldOf(FieldOf(file, "n-samples"), task);
  const auto effective = JsonInteger(FieldOf(items, "effective"));
  const auto original = JsonInteger(FieldOf(items, "original"));
  if (effective.has_value() && original.has_value()) {
    out += fmt::format("{} {} of {} items", shots.has_value() ? "," : ":", *effective, *original);
  }
  return out;
}

void AddTask(const Json& file, const std::string& task, const Json& numbers, ImportedRow& row) {
  // A group of tasks has no entry among n-samples.
  const int64_t items = JsonInteger(FieldOf(FieldOf(FieldOf(file, "n-samples"), task), "effective"))
                            .value_or(JsonInteger(FieldOf(numbers, "sample_len")).value_or(0));
  const Json& better = FieldOf(FieldOf(file, "higher_is_better"), task);
  const auto shots = JsonInteger(FieldOf(FieldOf(file, "n-shot"), task));
  const Json& own = FieldOf(FieldOf(FieldOf(file, "configs"), task), kIhaEval);
  for (const auto& [key, number] : numbers.items()) {
    const size_t comma = key.find(',');
    const std::string metric = key.substr(0, comma);
    if (metric.ends_with("_stderr")) continue;
    const std::optional<Rational> value = NumberOf(number);
    if (number.is_null()) row.notes.push_back(fmt::format("{} {} is left out: not a number", task, key));
    if (!value.has_value() || metric == "alias" || metric == "sample_len" || NotOfThisLength(metric, *value)) continue;
    const std::string filter = comma == std::string::npos ? "none" : key.substr(comma + 1);
    const Json& higher = FieldOf(better, metric);
    const bool share = value->Sign() >= 0 && *value <= Rational(1);
    if (!share || (higher.is_boolean() && !higher.get<bool>())) {
      row.notes.push_back(
          fmt::format("{} {} is left out: {}", task, key, share ? "lower is better" : "not a share between 0 and 1"));
      continue;
    }
    const Json& said = FieldOf(FieldOf(own, "metrics"), key);
    const std::optional<Rational> exact = ExactOf(FieldOf(said, "value"), number);
    ImportedValue& added =
        row.values.emplace_back(ValueOf(task, metric, filter, exact.has_value() ? *exact : Counted(*value, items)));
    added.shots = shots;
    TakeOwn(own, FieldOf(said, "metric"), added);
    NotePart(own, added.column, JsonInteger(FieldOf(said, "items")).value_or(INT64_MAX), row);
  }
}

// The grades of one metric and filter, by document.
struct Grades {
  std::set<int64_t> documents;
  std::vector<Score> scores;
  Rational sum;
  std::optional<int64_t> no_share;  // the first document whose grade is no number between 0 and 1
  Json own;                         // what export says of it, in the first of its lines
};

std::vector<std::string> MetricsOf(const Json& line) {
  std::vector<std::string> metrics;
  const Json& named = FieldOf(line, "metrics");
  if (named.is_array()) {
    for (const Json& name : named) {
      if (name.is_string()) metrics.push_back(name.get<std::string>());
    }
    return metrics;
  }
  // Files of earlier versions do not name them.
  for (const char* known : {"exact_match", "acc", "acc_norm", "pass_at_1", "pass@1", "f1", "em"}) {
    if (line.contains(known)) metrics.emplace_back(known);
  }
  return metrics;
}

using GradesByName = std::map<std::pair<std::string, std::string>, Grades>;  // metric, filter

absl::Status AddLine(std::string_view text, const std::string& here, GradesByName& all) {
  IHA_ASSIGN_OR_RETURN(const Json line, ParseUniqueJson<Json>(WithoutPythonNumbers(text), here));
  const std::optional<int64_t> document = JsonInteger(FieldOf(line, "doc_id"));
  if (!document.has_value()) {
    return InvalidArgument("{}: no whole number \"doc_id\"; expected samples_*.jsonl of lm-evaluation-harness", here);
  }
  const std::string filter = TextOr(line, "filter", "none");
  for (const std::string& metric : MetricsOf(line)) {
    const Json& grade = FieldOf(line, metric);
    const std::optional<Rational> value = grade.is_boolean() ? Rational(grade.get<bool>() ? 1 : 0) : NumberOf(grade);
    if (value.has_value() && NotOfThisLength(metric, *value)) continue;
    const Json& own = FieldOf(line, kIhaEval);
    const std::optional<Rational> exact = ExactOf(FieldOf(own, "score"), grade);
    Grades& grades = all[{metric, filter}];
    if (grades.documents.empty()) grades.own = own;
    if (!grades.documents.insert(*document).second) {
      return InvalidArgument("{}: doc_id {} has a second {} with filter {}", here, *document, TerminalSafe(metric, 80),
                             TerminalSafe(filter, 80));
    }
    if (!value.has_value() || value->Sign() < 0 || *value > Rational(1)) {
      if (!grades.no_share.has_value()) grades.no_share = *document;
      continue;
    }
    grades.scores.push_back((exact.has_value() ? exact : value)->ToScore());
    grades.sum += exact.has_value() ? *exact : *value;
  }
  return absl::OkStatus();
}

absl::StatusOr<GradesByName> ReadGrades(std::string_view text, std::string_view where) {
  GradesByName all;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    number++;
    if (line.find_first_not_of(" \r\t") == std::string_view::npos) continue;
    IHA_RETURN_IF_ERROR(AddLine(line, fmt::format("{}:{}", where, number), all));
  }
  return all;
}

}  // namespace

std::span<const LmEvalName> LmEvalNames() { return kNames; }

absl::StatusOr<ImportedRow> ImportLmEvalResults(std::string_view text, std::string_view where) {
  IHA_ASSIGN_OR_RETURN(const Json file, ParseUniqueJson<Json>(WithoutPythonNumbers(text), where));
  const Json& results = FieldOf(file, "results");
  if (!results.is_object() || results.empty()) {
    return InvalidArgument("{}: no object \"results\"; expected results_*.json of lm-evaluation-harness", where);
  }
  ImportedRow row;
  row.model = ModelOf(file);
  std::string tasks;
  for (const auto& [task, numbers] : results.items()) {
    if (!numbers.is_object()) return InvalidArgument("{}: results.{} is no object", where, TerminalSafe(task, 80));
    AddTask(file, task, numbers, row);
    tasks += (tasks.empty() ? "" : "; ") + TaskSource(file, task);
  }
  const std::string version = TextOr(file, "lm_eval_version", "");
  row.source = fmt::format("lm-evaluation-harness{}{}, results {} ({})", version.empty() ? "" : " ", version,
                           Sha256Of(text).Hex().substr(0, 16), tasks);
  return row;
}

absl::StatusOr<ImportedRow> ImportLmEvalSamples(std::string_view text, const std::string& task,
                                                const std::string& model, std::string_view where) {
  IHA_ASSIGN_OR_RETURN(GradesByName all, ReadGrades(text, where));
  std::vector<std::string> notes;
  // A mean over the documents whose grade happens to lie between 0 and 1 would be one of nothing.
  std::erase_if(all, [&](const auto& named) {
    const auto& [key, grades] = named;
    if (!grades.no_share.has_value()) return false;
    notes.push_back(fmt::format("{} {},{} is left out: no share between 0 and 1 for document {}", task, key.first,
                                key.second, *grades.no_share));
    return true;
  });
  if (all.empty()) return InvalidArgument("{}: no line has a grade between 0 and 1", where);
  const auto& [first, grades_of_first] = *all.begin();
  const size_t items = grades_of_first.scores.size();
  size_t most = 0;
  for (const auto& [key, grades] : all) most = std::max(most, grades.scores.size());
  ImportedRow row{.model = model,
                  .source = fmt::format("lm-evaluation-harness, samples {} ({}, {} items)",
                                        Sha256Of(text).Hex().substr(0, 16), task, most),
                  .values = {},
                  .notes = std::move(notes)};
  for (const auto& [key, grades] : all) {
    // Of another length there may be more documents, and export says itself what is missing.
    const bool may_differ = IsLength(key.first) || grades.own.is_object();
    if (grades.scores.size() != items && !may_differ) {
      return InvalidArgument("{}: {} documents have {} with filter {}, {} have {} with filter {}", where,
                             grades.scores.size(), TerminalSafe(key.first, 80), TerminalSafe(key.second, 80), items,
                             TerminalSafe(first.first, 80), TerminalSafe(first.second, 80));
    }
    const auto count = static_cast<int64_t>(grades.scores.size());
    ImportedValue value = ValueOf(task, key.first, key.second, grades.sum / Rational(count));
    TakeOwn(grades.own, FieldOf(grades.own, "metric"), value);
    NotePart(grades.own, value.column, count, row);
    const bool whole =
        std::all_of(grades.scores.begin(), grades.scores.end(), [](const Score& score) { return score.den == 1; });
    value.interval = scoring::CellInterval(grades.scores, {.single_sample = whole});
    row.values.push_back(std::move(value));
  }
  return row;
}

}  // namespace iha::reports
