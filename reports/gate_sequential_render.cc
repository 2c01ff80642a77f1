#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/counted.h"
#include "common/text.h"
#include "reports/gate_render.h"

namespace iha::reports {

std::string RenderSequentialText(const SequentialReport& report) {
  std::string out =
      fmt::format("{} (sequential, alpha {}): {}\n", NameOf(report.verdict), report.alpha, TerminalSafe(report.reason));
  for (const SequentialMetric& m : report.metrics) {
    out += fmt::format(
        "\n{}\n  {} of {}; mean difference {:+.2f} points, margin {:.2f} ({})\n"
        "  evidence: within the margin {:.3g}, worse {:.3g}; certain at {:.3g}\n",
        TerminalSafe(fmt::format("{}: {}", m.name, NameOf(m.verdict))), m.used, Counted(m.planned, "item"),
        100.0 * m.delta, 100.0 * m.margin.value, m.margin.rule, m.e_pass, m.e_worse, 1.0 / report.alpha);
  }
  for (const std::string& note : report.notes) out += fmt::format("note: {}\n", TerminalSafe(note));
  return out;
}

std::string RenderSequentialJson(const SequentialReport& report) {
  using Json = nlohmann::ordered_json;
  // Evidence without bound (a null that the items contradict outright) has no number in JSON.
  const auto evidence = [](double e) { return e < 1e300 ? Json(e) : Json(nullptr); };
  Json json = {{"schema", "iha-eval/gate-sequential/1"},
               {"verdict", NameOf(report.verdict)},
               {"reason", report.reason},
               {"alpha", report.alpha},
               {"items_used", report.used},
               {"items_planned", report.planned},
               {"vote_samples", report.vote_samples},
               {"vote_samples_planned", report.vote_samples_planned},
               {"metrics", Json::array()}};
  for (const SequentialMetric& m : report.metrics) {
    json["metrics"].push_back({{"name", m.name},
                               {"benchmark", m.benchmark},
                               {"metric", m.metric},
                               {"verdict", NameOf(m.verdict)},
                               {"margin", m.margin.value},
                               {"margin_rule", m.margin.rule},
                               {"delta", m.delta},
                               {"e_within_margin", evidence(m.e_pass)},
                               {"e_worse", evidence(m.e_worse)},
                               {"items_used", m.used},
                               {"items_planned", m.planned}});
  }
  json["notes"] = report.notes;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace iha::reports
