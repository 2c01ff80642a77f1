#include <CLI/CLI.hpp>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "benchmarks/scoring/answer_metric.h"
#include "benchmarks/scoring/lines.h"
#include "benchmarks/scoring/math/math_robust.h"
#include "cli/command.h"
#include "common/errors.h"
#include "common/jsonl_tool.h"
#include "common/nearest.h"
#include "common/status_macros.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string metric;
  std::string rule = "ns_tie_mean";
  int64_t k = 0;  // 0: all outputs of the line
  std::string file = "-";
};

constexpr const char* kMathRobust = "math.robust";

// Whole numbers print as such.
Json NumberOf(const scoring::Rational& value) {
  if (value.IsInteger()) return std::stoll(value.ToString());
  return value.ToDouble();
}

Json TextOrNull(const std::optional<std::string>& text) { return text.has_value() ? Json(*text) : Json(nullptr); }

absl::Status ScoreStep(const Flags& flags, const Json& in, Json& out) {
  std::string gold;
  std::string output;
  IHA_RETURN_IF_ERROR(GetString(in, "gold", gold));
  IHA_RETURN_IF_ERROR(GetString(in, "output", output));
  IHA_ASSIGN_OR_RETURN(const scoring::ScoreLineResult result, scoring::ScoreLine(flags.metric, gold, output));
  out["extracted"] = TextOrNull(result.extracted);
  out["correct"] = result.correct;
  out["reason"] = result.reason;
  return absl::OkStatus();
}

std::string ReasonOf(const scoring::MathVerdict& verdict) {
  return fmt::format("{}: {}", scoring::NameOf(verdict.outcome), verdict.rule);
}

absl::Status MathStep(const Json& in, Json& out) {
  std::string gold;
  std::string output;
  IHA_RETURN_IF_ERROR(GetString(in, "gold", gold));
  IHA_RETURN_IF_ERROR(GetString(in, "output", output));
  const scoring::MathAnswer answer = scoring::ExtractMathAnswer(output);
  const scoring::MathVerdict verdict = scoring::JudgeMath(gold, output);
  out["extracted"] = answer.found() ? Json(answer.text) : Json(nullptr);
  out["correct"] = verdict.equal();
  out["reason"] = fmt::format("{}; {}", answer.step, ReasonOf(verdict));
  return absl::OkStatus();
}

absl::Status EquivStep(const Json& in, Json& out) {
  std::string gold;
  std::string answer;
  IHA_RETURN_IF_ERROR(GetString(in, "gold", gold));
  IHA_RETURN_IF_ERROR(GetString(in, "answer", answer));
  const scoring::MathVerdict verdict = scoring::JudgeMath(gold, answer);
  out["equal"] = verdict.equal();
  out["reason"] = ReasonOf(verdict);
  return absl::OkStatus();
}

absl::Status VoteStep(const Flags& flags, scoring::VoteRule rule, const Json& in, Json& out) {
  std::string gold;
  std::vector<std::string> outputs;
  IHA_RETURN_IF_ERROR(GetString(in, "gold", gold));
  IHA_RETURN_IF_ERROR(GetStrings(in, "outputs", outputs));
  const int64_t k = flags.k == 0 ? static_cast<int64_t>(outputs.size()) : flags.k;
  IHA_ASSIGN_OR_RETURN(const scoring::VoteLineResult result, scoring::VoteLine(flags.metric, rule, k, gold, outputs));
  out["winner"] = TextOrNull(result.winner);
  out["correct"] = NumberOf(result.correct);
  out["tie"] = NumberOf(result.tie);
  out["invalid"] = result.invalid;
  return absl::OkStatus();
}

// For --help, which indents each line.
std::string KnownMetrics() {
  constexpr size_t kWidth = 80;
  std::string names;
  size_t line = 0;
  for (const scoring::AnswerMetric& metric : scoring::AnswerMetrics()) {
    if (!names.empty()) names += ",";
    if (!names.empty()) names += names.size() - line + std::strlen(metric.name) > kWidth ? "\n" : " ";
    if (names.ends_with("\n")) line = names.size();
    names += metric.name;
  }
  return names;
}

// An unknown metric is a mistake of the command, not of each line.
absl::Status CheckMetric(const std::string& metric) {
  if (scoring::FindAnswerMetric(metric) != nullptr) return absl::OkStatus();
  return scoring::ScoreLine(metric, "", "").status();
}

int RunScore(const std::string& benchmark, const Flags& flags) {
  const std::string name = "score " + benchmark;
  if (const absl::Status status = CheckMetric(flags.metric); !status.ok()) return FailUsage(name, status);
  return RunJsonlToolOnFile({.name = "iha-eval " + name,
                             .consumes = {"gold", "output"},
                             .step = [&](const Json& in, Json& out) { return ScoreStep(flags, in, out); }},
                            flags.file);
}

absl::Status CheckMathMetric(const std::string& metric) {
  if (metric == kMathRobust) return absl::OkStatus();
  static const std::string known[] = {kMathRobust};
  return UnknownName("metric", metric, known);
}

int RunMath(const std::string& name, const std::string& answer_field, const Flags& flags,
            const std::function<absl::Status(const Json&, Json&)>& step) {
  if (const absl::Status status = CheckMathMetric(flags.metric); !status.ok()) return FailUsage(name, status);
  return RunJsonlToolOnFile({.name = "iha-eval " + name, .consumes = {"gold", answer_field}, .step = step}, flags.file);
}

int RunVote(const Flags& flags) {
  if (const absl::Status status = CheckMetric(flags.metric); !status.ok()) return FailUsage("vote", status);
  const auto rule = scoring::ParseVoteRule(flags.rule);
  if (!rule.ok()) return FailUsage("vote", rule.status());
  return RunJsonlToolOnFile({.name = "iha-eval vote",
                             .consumes = {"gold", "outputs"},
                             .step = [&](const Json& in, Json& out) { return VoteStep(flags, *rule, in, out); }},
                            flags.file);
}

}  // namespace

void AddScore(CLI::App& app, Command& command) {
  CLI::App* score = app.add_subcommand("score", "Grade outputs: JSON Lines in, JSON Lines out");
  score->require_subcommand(1);
  score->footer("Example:\n  iha-eval score gsm8k --metric gsm8k.strict_match outputs.jsonl");
  const auto flags = std::make_shared<Flags>();
  CLI::App* gsm8k =
      score->add_subcommand("gsm8k", "{\"id\",\"gold\",\"output\"} to {\"id\",\"extracted\",\"correct\",\"reason\"}");
  gsm8k->add_option("--metric", flags->metric, KnownMetrics())->required();
  gsm8k->add_option("file", flags->file, "JSON Lines file; - = stdin");
  gsm8k->footer(
      "Example:\n  echo '{\"id\":1,\"gold\":\"18\",\"output\":\"#### 18\"}' | iha-eval score gsm8k --metric "
      "gsm8k.strict_match");
  gsm8k->callback([flags, &command] { command.exit_code = RunScore("gsm8k", *flags); });

  CLI::App* math =
      score->add_subcommand("math", "{\"id\",\"gold\",\"output\"} to {\"id\",\"extracted\",\"correct\",\"reason\"}");
  math->add_option("--metric", flags->metric, "math.robust")->required();
  math->add_option("file", flags->file, "JSON Lines file; - = stdin");
  math->footer(
      "Example:\n  echo '{\"id\":1,\"gold\":\"1/2\",\"output\":\"so 0.5\"}' | iha-eval score math --metric "
      "math.robust");
  math->callback([flags, &command] { command.exit_code = RunMath("score math", "output", *flags, MathStep); });
  CLI::App* equiv = score->add_subcommand("equiv", "{\"id\",\"gold\",\"answer\"} to {\"id\",\"equal\",\"reason\"}");
  equiv->add_option("--metric", flags->metric, "math.robust")->required();
  equiv->add_option("file", flags->file, "JSON Lines file; - = stdin");
  equiv->footer(
      "Example:\n  echo '{\"id\":1,\"gold\":\"\\\\frac12\",\"answer\":\"0.5\"}' | iha-eval score equiv --metric "
      "math.robust");
  equiv->callback([flags, &command] { command.exit_code = RunMath("score equiv", "answer", *flags, EquivStep); });

  CLI::App* vote = app.add_subcommand("vote", "Majority vote over an item's outputs: JSON Lines in, JSON Lines out");
  vote->add_option("--metric", flags->metric, "extracts and grades:\n" + KnownMetrics())->required();
  vote->add_option("--rule", flags->rule, "ns_tie_mean or lm_eval");
  vote->add_option("--k", flags->k, "samples that vote; 0 = all of the line")->check(CLI::NonNegativeNumber);
  vote->add_option("file", flags->file, "JSON Lines file; - = stdin");
  vote->footer(
      "Example:\n  echo '{\"id\":1,\"gold\":\"7\",\"outputs\":[\"#### 7\",\"#### 7\",\"#### 8\"]}' | "
      "iha-eval vote --metric gsm8k.robust --rule ns_tie_mean --k 3");
  for (CLI::App* sub : {gsm8k, math, equiv, vote})
    sub->add_flag("--json")->description("no effect: prints JSON Lines anyway");
  vote->callback([flags, &command] { command.exit_code = RunVote(*flags); });
}

}  // namespace iha::cli
