#include "cli/gate/gate_flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "absl/strings/match.h"
#include "cli/command.h"
#include "cli/gate/stored_run.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"
#include "reports/baseline_json.h"
#include "reports/gate_render.h"

namespace iha::cli {
namespace {

// What exists as a file is one; everything else must be SWEEP/MODEL.
bool IsFile(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(name, ignored);
}

constexpr char kHowToExport[] = "write one with iha-eval export --baseline SWEEP/MODEL --db FILE --out FILE";

absl::StatusOr<reports::Baseline> ReadBundle(const std::string& path, const std::string& flag) {
  const auto wrong = [&](const std::string& found) {
    return InvalidArgument("{}: {}: found {}, expected a baseline bundle; {}", flag, path, found, kHowToExport);
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return wrong("a folder");
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path));
  if (text.empty()) return wrong("an empty file");
  // Its first bytes: https://www.sqlite.org/fileformat.html, "Magic Header String".
  if (text.starts_with("SQLite format 3")) {
    return wrong("a database (for a run of --db give SWEEP/MODEL alone)");
  }
  auto bundle = reports::ParseBaseline(text, path);
  if (bundle.ok() || absl::StrContains(bundle.status().message(), "export")) return bundle;
  return InvalidArgument("{}: {}; expected a whole baseline bundle; {}", flag, std::string(bundle.status().message()),
                         kHowToExport);
}

}  // namespace

void AddMarginRule(CLI::App& app, reports::MarginRule& rule) {
  app.add_option("--alpha", rule.alpha, "error rate of each one-sided claim; default 0.05")
      ->check(RealNumber(1e-6, 0.4));
  app.add_option("--power", rule.power, "of the test that an unchanged candidate passes; default 0.8")
      ->check(RealNumber(0.5, 0.999));
  app.add_option("--discordance", rule.discordance,
                 "share of items assumed to change where one sample an item can't tell; default 0.10")
      ->check(RealNumber(0.001, 1));
}

void AddGateFlags(CLI::App& app, GateFlags& flags) {
  app.add_option("--metrics", flags.metrics, "these metrics only, separated by commas; default all of the baseline")
      ->delimiter(',');
  app.add_option("--margin", flags.margin,
                 "largest loss that still passes, in points; default auto: the baseline's own");
  AddMarginRule(app, flags.rule);
  app.add_option("--inconclusive", flags.inconclusive, "what INCONCLUSIVE means: exit6 (default), pass or fail")
      ->check(CLI::IsMember({"exit6", "pass", "fail"}));
  app.add_option("--target", flags.target,
                 "of a sequential gate: population (default) or benchmark, its own items alone")
      ->check(CLI::IsMember({"population", "benchmark"}));
}

absl::StatusOr<std::optional<double>> MarginOf(const GateFlags& flags) {
  const std::string& text = flags.margin;
  if (text == "auto") return std::nullopt;
  double points = 0.0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, points);
  if (error != std::errc() || at != end || !(points > 0.0) || points > 100.0) {
    return InvalidArgument("--margin: found \"{}\", expected auto or points above 0, at most 100", text);
  }
  return points / 100.0;
}

absl::Status CheckBaseline(const reports::GateRun& run) {
  return reports::CheckUnstopped(run.item_order, "the baseline's sweep", "take one without an item_order");
}

absl::StatusOr<reports::GateRun> ReadGateBaseline(const GateFlags& flags, const std::string& flag,
                                                  coordinator::Store& store) {
  if (IsFile(flags.baseline)) {
    IHA_ASSIGN_OR_RETURN(reports::Baseline bundle, ReadBundle(flags.baseline, flag));
    return std::move(bundle.run);
  }
  IHA_ASSIGN_OR_RETURN(const RunName name, ParseRunName(flags.baseline, flag + " (no file of that name)"));
  IHA_ASSIGN_OR_RETURN(reports::GateRun run, ReadStoredRun(store, name));
  IHA_RETURN_IF_ERROR(CheckBaseline(run));
  reports::FixMargins(run, flags.rule);
  return run;
}

reports::GateOptions GateOptionsOf(const GateFlags& flags, const std::optional<double>& margin) {
  return {.metrics = flags.metrics, .alpha = flags.rule.alpha, .power = flags.rule.power, .margin = margin};
}

void PrintSequential(const reports::SequentialReport& report, bool json) {
  (json ? std::cerr : std::cout) << reports::RenderSequentialText(report);
  if (json) std::cout << reports::RenderSequentialJson(report);
}

int ExitCodeOf(reports::Verdict verdict, const std::string& inconclusive) {
  if (verdict == reports::Verdict::kPass) return kExitOk;
  if (verdict == reports::Verdict::kFail) return kExitCheckFailed;
  if (inconclusive == "pass") return kExitOk;
  return inconclusive == "fail" ? kExitCheckFailed : kExitInconclusive;
}

}  // namespace iha::cli
