#include "benchmarks/own/jsonl.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "benchmarks/free_text.h"
#include "benchmarks/graders/graders.h"
#include "benchmarks/options.h"
#include "benchmarks/own/rows.h"
#include "benchmarks/own/template_text.h"
#include "benchmarks/scoring/math/math_robust.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks {
namespace {

using Json = nlohmann::json;

struct Row {
  std::string id;
  std::string prompt;
  std::string gold;
};

absl::StatusOr<Row> ReadRow(const Json& json, const std::vector<TemplatePart>& prompt, const std::string& gold) {
  Row row;
  IHA_ASSIGN_OR_RETURN(row.prompt, FillTemplate(prompt, json));
  if (row.prompt.empty()) return InvalidArgument("its prompt is empty");
  IHA_ASSIGN_OR_RETURN(row.gold, PlainField(json, gold));
  return row;
}

absl::StatusOr<std::vector<Row>> ReadRows(const std::string& path, const std::string& bytes, const BenchmarkRef& ref) {
  std::vector<Row> rows;
  const auto read = [&](const Json& json, const auto& prompt, const std::string& id) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(Row row, ReadRow(json, prompt, ref.options.at("gold")));
    row.id = id;
    rows.push_back(std::move(row));
    return absl::OkStatus();
  };
  IHA_RETURN_IF_ERROR(ForEachRow(path, bytes, ref, read));
  return rows;
}

class JsonlBenchmark final : public Benchmark {
 public:
  JsonlBenchmark(BenchmarkInfo info, BenchmarkRef ref, std::vector<Row> rows, const Digest& data_digest,
                 std::shared_ptr<Graders> graders, std::optional<std::string> chat_date, FreeText answers)
      : info_(std::move(info)),
        ref_(std::move(ref)),
        rows_(std::move(rows)),
        data_digest_(data_digest),
        graders_(std::move(graders)),
        chat_date_(std::move(chat_date)),
        answers_(std::move(answers)) {}

  const BenchmarkInfo& info() const override { return info_; }
  const BenchmarkRef& ref() const override { return ref_; }
  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  std::string ItemId(int64_t index) const override { return rows_[static_cast<size_t>(index)].id; }
  std::string Gold(int64_t index) const override { return rows_[static_cast<size_t>(index)].gold; }
  Digest data_digest() const override { return data_digest_; }

  Prompt Render(int64_t index) const override {
    Prompt prompt;
    prompt.stops = answers_.GenerationStops();
    const std::string& text = rows_[static_cast<size_t>(index)].prompt;
    if (chat_date_) {
      prompt.messages.push_back({"user", text});
      prompt.template_date = *chat_date_;
    } else {
      prompt.text = text;
    }
    return prompt;
  }

  std::vector<std::vector<SampleGrade>> Grade(int64_t index, const std::vector<std::string>& texts,
                                              const std::vector<MetricInfo>& metrics) const override {
    return GradeTexts(*graders_, answers_, texts, metrics, [&](const std::string&) { return Gold(index); });
  }

 private:
  const BenchmarkInfo info_;
  const BenchmarkRef ref_;
  const std::vector<Row> rows_;
  const Digest data_digest_;
  const std::shared_ptr<Graders> graders_;
  const std::optional<std::string> chat_date_;  // nullopt: plain
  const FreeText answers_;
};

}  // namespace

BenchmarkInfo JsonlInfo(const std::string& name) {
  BenchmarkInfo info;
  info.name = name;
  info.version = "jsonl/1";
  info.grader_version = fmt::format("jsonl/1+{}", scoring::kMathRobustVersion);
  info.summary = "your own questions: FILE holds one JSON object a line";
  info.protocol = "the template with {field} replaced by the row's field; greedy, 256 tokens";
  info.options = {
      {"form", "plain", "plain; chat: the prompt as one user turn"},
      {"gold", "answer", "the row's field with the reference answer (regex: the pattern)"},
      {"metric", "exact", "the metric of the table when none is asked for; any that is listed here"},
      {"prompt", "{question}", "template: {field} is the row's field, {{ and }} are braces"},
      {"stop", "", "generation is cut before this text"},
      TemplateDateOption(),
      {"think", "auto", "strip: what stands before the last </think> is dropped; keep; auto: strip in chat"},
  };
  for (const GraderInfo& grader : Graders::List()) {
    info.metrics.push_back({grader.name, grader.description, grader.pure});
  }
  info.default_metrics = {"exact"};
  return info;
}

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenJsonl(const BenchmarkRef& ref, std::shared_ptr<Graders> graders) {
  BenchmarkInfo info = JsonlInfo(ref.name);
  IHA_ASSIGN_OR_RETURN(BenchmarkRef full, WithDefaults(info, ref));
  IHA_ASSIGN_OR_RETURN(const std::string form, ChoiceOption(full, "form", {"plain", "chat"}));
  FreeText answers;
  IHA_ASSIGN_OR_RETURN(answers.strip_thinking, StripsThinking(full, form == "chat"));
  IHA_ASSIGN_OR_RETURN(std::optional<std::string> chat_date, DayOption(full, kTemplateDateOption));
  if (form != "chat") chat_date.reset();
  if (!full.options.at("stop").empty()) answers.stops = {full.options.at("stop")};
  const absl::StatusOr<GraderInfo> metric = Graders::Find(full.options.at("metric"));
  if (!metric.ok()) return Annotate(metric.status(), ref.name);
  info.default_metrics = {metric->name};
  const std::string path = ref.name.substr(std::string_view(kJsonlPrefix).size());
  IHA_ASSIGN_OR_RETURN(const std::string bytes, ReadRowsFile(ref.name, kJsonlPrefix));
  absl::StatusOr<std::vector<Row>> rows = ReadRows(path, bytes, full);
  if (!rows.ok()) return rows.status();
  return std::make_unique<const JsonlBenchmark>(std::move(info), std::move(full), *std::move(rows), Sha256Of(bytes),
                                                std::move(graders), std::move(chat_date), std::move(answers));
}

}  // namespace iha::benchmarks
