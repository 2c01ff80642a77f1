// compare: what changed from one stored model to another: scores, flipped items with both texts, kinds of error.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/gate/comparison.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "coordinator/store/sqlite_store.h"
#include "reports/table.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string db;
  std::string a;
  std::string b;
  std::vector<std::string> metrics;
  int64_t flips = 10;
  bool json = false;
};

Json SideJson(const reports::GateRun& run) {
  return {{"model", run.model},
          {"sweep", run.sweep},
          {"weights_digest", run.weights.empty() ? "" : run.weights.Hex()},
          {"numerics_id", run.numerics_id}};
}

Json MetricJson(const ComparedMetric& m) {
  return {{"name", m.name},
          {"benchmark", m.benchmark},
          {"metric", m.metric},
          {"a", m.a.ToDouble()},
          {"b", m.b.ToDouble()},
          {"delta", m.test.delta},
          {"low", m.identical ? Json(nullptr) : Json(m.test.lower)},
          {"high", m.identical ? Json(nullptr) : Json(m.test.upper)},
          {"level", 0.95},
          {"method", m.identical ? "identical" : NameOf(m.test.method)},
          {"test", m.p_test},
          {"p", m.p},
          {"mid_p", m.mid_p.has_value() ? Json(*m.mid_p) : Json(nullptr)},
          {"items", m.test.items},
          {"better", m.test.better},
          {"worse", m.test.worse}};
}

Json FlipJson(const Flip& flip) {
  const auto side = [](const FlippedSide& s) {
    return Json{{"value", s.value}, {"outcome", s.outcome}, {"text", s.text}};
  };
  return {{"name", flip.name},       {"benchmark", flip.benchmark}, {"metric", flip.metric}, {"index", flip.index},
          {"item_id", flip.item_id}, {"sample", flip.sample},       {"a", side(flip.a)},     {"b", side(flip.b)}};
}

Json ToJson(const Comparison& c) {
  Json json = {{"schema", "iha-eval/compare/1"},   {"a", SideJson(c.a)},        {"b", SideJson(c.b)},
               {"metrics", Json::array()},         {"outcomes", Json::array()}, {"flipped", c.flipped},
               {"flipped_items", c.flipped_items}, {"flips", Json::array()},    {"exemplars", Json::array()}};
  for (const ComparedMetric& metric : c.metrics) json["metrics"].push_back(MetricJson(metric));
  for (const auto& [key, both] : c.taxonomy) {
    json["outcomes"].push_back(
        {{"benchmark", key.first}, {"metric", key.second}, {"a", both.first}, {"b", both.second}});
  }
  for (const Flip& flip : c.flips) json["flips"].push_back(FlipJson(flip));
  for (const auto& [spec, leaks] : c.leaks) {
    for (const benchmarks::ExemplarLeak& leak : leaks) {
      json["exemplars"].push_back({{"benchmark", spec},
                                   {"index", leak.item},
                                   {"item_id", leak.item_id},
                                   {"prompts", leak.prompts},
                                   {"in_its_own", leak.in_its_own}});
    }
  }
  json["notes"] = c.notes;
  return json;
}

// Cut into lines of at most `width` characters, whatever the text contains made safe.
std::vector<std::string> Wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string safe = TerminalSafe(std::string_view(text).substr(at, end - at));
    std::string line;
    size_t used = 0;
    for (size_t i = 0; i < safe.size();) {
      const size_t length = std::max<size_t>(1, Utf8Length(std::string_view(safe).substr(i), nullptr));
      if (used == width) {
        lines.push_back(std::move(line));
        line.clear();
        used = 0;
      }
      line += safe.substr(i, length);
      i += length;
      used++;
    }
    line += std::string(width - used, ' ');
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

void PrintSideBySide(const std::string& a, const std::string& b) {
  constexpr size_t kWidth = 56;
  const std::vector<std::string> left = Wrapped(a, kWidth), right = Wrapped(b, kWidth);
  for (size_t i = 0; i < std::max(left.size(), right.size()); i++) {
    std::string line = "  " + (i < left.size() ? left[i] : std::string(kWidth, ' ')) + " | ";
    if (i < right.size()) line += right[i];
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << "\n";
  }
}

std::string OutcomeText(const Taxonomy& taxonomy) {
  std::string text;
  for (const auto& [outcome, count] : taxonomy)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, outcome);
  return text.empty() ? "none" : text;
}

void PrintMetrics(const Comparison& c) {
  for (const ComparedMetric& m : c.metrics) {
    std::cout << TerminalSafe(m.name) << "\n";
    std::cout << fmt::format("  A {} %, B {} %, B - A {} points", reports::Percent(m.a, 2), reports::Percent(m.b, 2),
                             reports::SignedPercent(m.b - m.a, 2));
    if (m.identical) {
      std::cout << fmt::format("; bit-identical outputs on {}\n", Counted(m.test.items, "item"));
      continue;
    }
    std::cout << fmt::format(" [{:+.2f}, {:+.2f}] ({}, 95 %); {} of {} better, {} worse; p = {:.3g} ({}{})\n",
                             100 * m.test.lower, 100 * m.test.upper, NameOf(m.test.method), m.test.better,
                             Counted(m.test.items, "item"), m.test.worse, m.p, m.p_test,
                             m.mid_p.has_value() ? fmt::format(", mid-p {:.3g}", *m.mid_p) : "");
  }
}

void PrintText(const Comparison& c) {
  std::cout << TerminalSafe(fmt::format("A: {} (sweep {})", c.a.model, c.a.sweep.substr(0, 16))) << "\n"
            << TerminalSafe(fmt::format("B: {} (sweep {})", c.b.model, c.b.sweep.substr(0, 16))) << "\n\n";
  PrintMetrics(c);
  std::cout << "\nWhat became of the samples:\n";
  for (const auto& [key, both] : c.taxonomy) {
    std::cout << TerminalSafe(fmt::format("  {} {}", key.first, key.second.empty() ? "(no samples)" : key.second))
              << "\n"
              << "    A: " << TerminalSafe(OutcomeText(both.first)) << "\n"
              << "    B: " << TerminalSafe(OutcomeText(both.second)) << "\n";
  }
  // An item may change in several metrics, and stands below once for each.
  const std::string values =
      c.flipped == c.flipped_items ? "" : fmt::format(" (an item counts once for each metric: {})", c.flipped);
  std::cout << fmt::format("\nFlipped items: {}{}, shown {}\n", c.flipped_items, values, c.flips.size());
  for (const Flip& flip : c.flips) {
    std::cout << "\n"
              << TerminalSafe(fmt::format("{} · item {} ({}) · sample {}: A {} ({}), B {} ({})", flip.name, flip.index,
                                          flip.item_id, flip.sample, flip.a.value, flip.a.outcome, flip.b.value,
                                          flip.b.outcome))
              << "\n";
    PrintSideBySide(flip.a.text, flip.b.text);
  }
  for (const auto& [spec, leaks] : c.leaks) {
    for (const benchmarks::ExemplarLeak& leak : leaks) {
      std::cout << TerminalSafe(fmt::format("exemplar: {}: test item {} ({}) is shown, with its answer, before {}{}",
                                            spec, leak.item, leak.item_id, Counted(leak.prompts, "item"),
                                            leak.in_its_own ? ", itself among them" : ""))
                << "\n";
    }
  }
  for (const std::string& note : c.notes) std::cout << "note: " << TerminalSafe(note) << "\n";
}

absl::StatusOr<Comparison> Compare(const Flags& flags, const std::string& data_root) {
  IHA_ASSIGN_OR_RETURN(const RunName a, ParseRunName(flags.a, "A"));
  IHA_ASSIGN_OR_RETURN(const RunName b, ParseRunName(flags.b, "B"));
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  return CompareRuns(*store, a, b, {.metrics = flags.metrics, .flips = flags.flips, .data_root = data_root});
}

int RunCompare(const Flags& flags, const std::string& data_root) {
  for (const auto& [name, what] : {std::pair(flags.a, "A"), std::pair(flags.b, "B")}) {
    if (const auto parsed = ParseRunName(name, what); !parsed.ok()) return FailUsage("compare", parsed.status());
  }
  const auto comparison = Compare(flags, data_root);
  if (!comparison.ok()) return Fail("compare", comparison.status());
  if (flags.json) {
    std::cout << ToJson(*comparison).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    PrintText(*comparison);
  }
  return kExitOk;
}

}  // namespace

void AddCompare(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* compare = app.add_subcommand("compare", "What changed from A to B: scores, flipped items, kinds of error");
  compare->add_option("A", flags->a, "SWEEP/MODEL")->required();
  compare->add_option("B", flags->b, "SWEEP/MODEL, over the same items and settings")->required();
  compare->add_option("--db", flags->db, "database file")->required();
  compare->add_option("--metrics", flags->metrics, "these only, separated by commas; default all of A")->delimiter(',');
  compare->add_option("--flips", flags->flips, "flipped items shown, largest changes first; 0 = all; default 10")
      ->check(WholeNumber(0, INT32_MAX));
  compare->add_option("--data-root", command.data_root, "benchmark data, to look for exemplars among test items");
  compare->add_flag("--json", flags->json, "one JSON object");
  compare->footer("Example:\n  iha-eval compare --db sweeps.db 3f2a/step-8000 3f2a/step-9000");
  compare->callback([flags, &command] { command.exit_code = RunCompare(*flags, command.data_root); });
}

}  // namespace iha::cli
