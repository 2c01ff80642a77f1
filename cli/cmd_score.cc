#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "benchmarks/graders/lines.h"
#include "cli/command.h"
#include "common/errors.h"
#include "common/eval_types.h"
#include "common/flag_checks.h"
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

// Whole numbers print as such.
Json NumberOf(const scoring::Rational& value) {
  if (value.IsInteger()) return std::stoll(value.ToString());
  return value.ToDouble();
}

Json TextOrNull(const std::optional<std::string>& text) { return text.has_value() ? Json(*text) : Json(nullptr); }

// A grader that gives no verdict within its limits, also alone: unscored, never wrong. What the line says of itself, a
// gold that can't be read for one, makes it a bad line.
bool NoVerdict(const absl::Status& status) {
  return !status.ok() && !absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status);
}

absl::Status Unscore(const char* verdict, const absl::Status& status, Json& out) {
  out[verdict] = nullptr;
  out["unscored"] = NameOf(Unscored::kGraderError);
  out["reason"] = "grader error: no verdict within its limits, also alone: " + std::string(status.message());
  return absl::OkStatus();
}

absl::Status ScoreStep(benchmarks::Graders& graders, const Flags& flags, const Json& in, Json& out) {
  std::string gold;
  std::string output;
  IHA_RETURN_IF_ERROR(GetString(in, "gold", gold));
  IHA_RETURN_IF_ERROR(GetString(in, "output", output));
  const absl::StatusOr<benchmarks::ScoreLineResult> scored = benchmarks::ScoreLine(graders, flags.metric, gold, output);
  if (NoVerdict(scored.status())) {
    out["extracted"] = nullptr;
    return Unscore("correct", scored.status(), out);
  }
  IHA_ASSIGN_OR_RETURN(const benchmarks::ScoreLineResult result, scored);
  out["extracted"] = TextOrNull(result.extracted);
  out["correct"] = result.correct;
  out["reason"] = result.reason;
  return absl::OkStatus();
}

absl::Status EquivStep(benchmarks::Graders& graders, const Flags& flags, const Json& in, Json& out) {
  std::string gold;
  std::string answer;
  IHA_RETURN_IF_ERROR(GetString(in, "gold", gold));
  IHA_RETURN_IF_ERROR(GetString(in, "answer", answer));
  const absl::StatusOr<scoring::Equality> compared = graders.Equal(flags.metric, gold, answer);
  if (NoVerdict(compared.status())) return Unscore("equal", compared.status(), out);
  IHA_ASSIGN_OR_RETURN(const scoring::Equality equality, compared);
  out["equal"] = equality.equal;
  out["reason"] = equality.reason;
  return absl::OkStatus();
}

absl::Status VoteStep(benchmarks::Graders& graders, const Flags& flags, const Json& in, Json& out) {
  IHA_ASSIGN_OR_RETURN(const scoring::VoteRule rule, scoring::ParseVoteRule(flags.rule));
  std::string gold;
  std::vector<std::string> outputs;
  IHA_RETURN_IF_ERROR(GetString(in, "gold", gold));
  IHA_RETURN_IF_ERROR(GetStrings(in, "outputs", outputs));
  if (outputs.empty()) return InvalidArgument("field \"outputs\": is empty; expected one output or more");
  const int64_t k = flags.k == 0 ? static_cast<int64_t>(outputs.size()) : flags.k;
  IHA_ASSIGN_OR_RETURN(const benchmarks::VoteLineResult result,
                       benchmarks::VoteLine(graders, flags.metric, rule, k, gold, outputs));
  const bool voted = result.given_up == 0;
  out["winner"] = TextOrNull(result.winner);
  out["correct"] = voted ? NumberOf(result.correct) : Json(nullptr);
  out["tie"] = voted ? NumberOf(result.tie) : Json(nullptr);
  out["invalid"] = result.invalid;
  if (voted) return absl::OkStatus();
  out["unscored"] = NameOf(Unscored::kGraderError);
  out["given_up"] = result.given_up;
  out["reason"] = fmt::format("grader error: no verdict within its limits, also alone, on {} of {} outputs",
                              result.given_up, outputs.size());
  return absl::OkStatus();
}

using LineStep = absl::Status (*)(benchmarks::Graders&, const Flags&, const Json&, Json&);

// What one of these commands is: its name, the field beside "gold", which metrics it takes.
struct LineCommand {
  std::string name;
  std::string field;
  std::string family;  // metrics that begin so
  LineStep step;
  std::string without = "";  // a metric that it can't take
};

std::vector<std::string> MetricsOf(const std::string& family, const std::string& without = "") {
  std::vector<std::string> names;
  for (const benchmarks::GraderInfo& metric : benchmarks::Graders::List()) {
    if (metric.name.starts_with(family) && metric.name != without) names.push_back(metric.name);
  }
  return names;
}

// For --help, which indents each line.
std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kWidth = 80;
  std::string text;
  size_t line = 0;
  for (const std::string& name : names) {
    if (!text.empty()) text += ",";
    if (!text.empty()) text += text.size() - line + name.size() > kWidth ? "\n" : " ";
    if (text.ends_with("\n")) line = text.size();
    text += name;
  }
  return text;
}

// An unknown metric is a mistake of the command, not of each line.
absl::Status CheckMetric(const std::string& metric, const LineCommand& line) {
  if (!line.without.empty() && metric == line.without) {
    return InvalidArgument("metric {}: its gold is a pattern, no answer to compare with another; expected one of {}",
                           metric, fmt::join(MetricsOf(line.family, line.without), ", "));
  }
  const std::vector<std::string> known = MetricsOf(line.family, line.without);
  if (std::find(known.begin(), known.end(), metric) != known.end()) return absl::OkStatus();
  return UnknownName("metric", metric, known);
}

// Unavailable: a part of the installation that `metric` needs is missing; said once, not of each line.
absl::StatusOr<std::unique_ptr<benchmarks::Graders>> OpenGraders(const Command& command, const std::string& metric) {
  IHA_ASSIGN_OR_RETURN(const std::string guard, benchmarks::FindMathGuard());
  auto graders =
      std::make_unique<benchmarks::Graders>(benchmarks::GraderOptions{.libraries = command.graders, .guard = guard});
  IHA_ASSIGN_OR_RETURN(const benchmarks::GraderInfo info, benchmarks::Graders::Find(metric));
  if (info.pure) return graders;
  const absl::Status asked = graders->Equal(metric, "1", "1").status();
  if (absl::IsFailedPrecondition(asked)) return Unavailable("{}", std::string(asked.message()));
  return graders;
}

int RunLines(const LineCommand& line, const Flags& flags, const Command& command) {
  if (const absl::Status status = CheckMetric(flags.metric, line); !status.ok()) {
    return FailUsage(line.name, status);
  }
  const auto graders = OpenGraders(command, flags.metric);
  if (!graders.ok()) return Fail(line.name, graders.status());
  return RunJsonlToolOnFile({.name = "iha-eval " + line.name,
                             .consumes = {"gold", line.field},
                             .step = [&](const Json& in, Json& out) { return line.step(**graders, flags, in, out); }},
                            flags.file);
}

int RunVote(const Flags& flags, const Command& command) {
  if (const auto rule = scoring::ParseVoteRule(flags.rule); !rule.ok()) return FailUsage("vote", rule.status());
  return RunLines({"vote", "outputs", "", VoteStep, ""}, flags, command);
}

CLI::App* AddLines(CLI::App& parent, Command& command, const std::shared_ptr<Flags>& flags, LineCommand line,
                   const std::string& example) {
  const std::string name = line.name.substr(line.name.rfind(' ') + 1);
  const std::string gives = line.field == "answer" ? "\"equal\"" : "\"extracted\",\"correct\"";
  CLI::App* sub = parent.add_subcommand(
      name, fmt::format("{{\"id\",\"gold\",\"{}\"}} to {{\"id\",{},\"reason\"}}", line.field, gives));
  sub->add_option("--metric", flags->metric, Listed(MetricsOf(line.family, line.without)))->required();
  sub->footer("Example:\n  " + example);
  sub->callback([flags, &command, line = std::move(line)] { command.exit_code = RunLines(line, *flags, command); });
  return sub;
}

}  // namespace

void AddScore(CLI::App& app, Command& command) {
  CLI::App* score = app.add_subcommand("score", "Grade outputs: JSON Lines in, JSON Lines out");
  score->require_subcommand(1);
  score->footer("Example:\n  iha-eval score gsm8k --metric gsm8k.strict_match outputs.jsonl");
  const auto flags = std::make_shared<Flags>();
  CLI::App* gsm8k = AddLines(*score, command, flags, {"score gsm8k", "output", "gsm8k", ScoreStep},
                             "echo '{\"id\":1,\"gold\":\"18\",\"output\":\"#### 18\"}' | iha-eval score gsm8k --metric "
                             "gsm8k.strict_match");
  CLI::App* math = AddLines(*score, command, flags, {"score math", "output", "math", ScoreStep},
                            "echo '{\"id\":1,\"gold\":\"1/2\",\"output\":\"so 0.5\"}' | iha-eval score math --metric "
                            "math.robust");
  CLI::App* equiv =
      AddLines(*score, command, flags, {"score equiv", "answer", "", EquivStep, "regex"},
               "echo '{\"id\":1,\"gold\":\"\\\\frac12\",\"answer\":\"0.5\"}' | iha-eval score equiv --metric "
               "math.robust");

  AddScoreRuler(*score, command);
  AddToolCommand(*score, command, "score", "humaneval",
                 "{\"task_id\",\"completion\"} to {\"task_id\",\"passed\",...}: programs, run in the sandbox");
  AddToolCommand(*score, command, "score", "mbpp", "the same for MBPP's tasks");

  CLI::App* vote = app.add_subcommand("vote", "Majority vote over an item's outputs: JSON Lines in, JSON Lines out");
  vote->add_option("--metric", flags->metric, "extracts and grades:\n" + Listed(MetricsOf("")))->required();
  vote->add_option("--rule", flags->rule, "ns_tie_mean, first_seen or lm_eval");
  vote->add_option("--k", flags->k, "samples that vote; default: all of the line")->check(WholeNumber(1, INT64_MAX));
  vote->footer(
      "Example:\n  echo '{\"id\":1,\"gold\":\"7\",\"outputs\":[\"#### 7\",\"#### 7\",\"#### 8\"]}' | "
      "iha-eval vote --metric gsm8k.robust --rule ns_tie_mean --k 3");
  for (CLI::App* sub : {gsm8k, math, equiv, vote}) {
    sub->add_option("file", flags->file, "JSON Lines file; - = stdin");
    sub->add_option("--graders", command.graders, "folder with the libraries of math.minerva and math.prm800k");
    sub->add_flag("--json")->description("no effect: prints JSON Lines anyway");
  }
  vote->callback([flags, &command] { command.exit_code = RunVote(*flags, command); });
}

}  // namespace iha::cli
