#include "reports/gate_render.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/counted.h"
#include "common/text.h"
#include "reports/html_text.h"
#include "reports/render.h"
#include "reports/table.h"

namespace iha::reports {
namespace {

using Json = nlohmann::ordered_json;

std::string Percents(double fraction) { return fmt::format("{:.2f}", 100.0 * fraction); }
std::string Points(double fraction) { return fmt::format("{:+.2f}", 100.0 * fraction); }

std::string TestLine(const MetricVerdict& v) {
  if (v.identical) return fmt::format("{}, nothing to test", Counted(v.test.items, "item"));
  return fmt::format("bounds {} and {}, each one-sided ({}); {}, {} better, {} worse", Points(v.test.lower),
                     Points(v.test.upper), NameOf(v.test.method), Counted(v.test.items, "item"), v.test.better,
                     v.test.worse);
}

std::string MarginLine(const MetricVerdict& v) {
  std::string out = fmt::format("margin {} ({}); ", Percents(v.margin.value), v.margin.rule);
  if (v.detectable.has_value() && v.power.has_value()) {
    out += fmt::format("smallest loss that would be seen: {}; an unchanged candidate passes with probability {:.2f}; ",
                       Percents(*v.detectable), *v.power);
  } else if (!v.identical) {
    out += "no scatter tells what loss would be seen; ";
  }
  return out + fmt::format("{:.1f} % of the items differ", 100.0 * v.discordance());
}

// What the verdicts hold at.
std::string LevelLine(const GateReport& report) {
  return fmt::format(
      "alpha {}, one-sided; power {}; FAIL is corrected over the metrics by Holm, PASS needs every metric",
      report.alpha, report.target_power);
}

std::string Side(const char* role, const GateRun& run) {
  return fmt::format("{}: {} · sweep {} · weights {} · numerics {}", role, run.model, run.sweep.substr(0, 16),
                     run.weights.empty() ? "not bound" : run.weights.Hex().substr(0, 16), run.numerics_id);
}

// XML 1.0 has no form for most control characters, so they are spelled out first, line ends too.
std::string Xml(const std::string& text) { return HtmlText(TerminalSafe(text)); }

// docs.github.com, "Workflow commands for GitHub Actions": % and line ends in data, and , and : in properties.
std::string Github(const std::string& text, bool property) {
  std::string out;
  for (const char c : TerminalSafe(text)) {
    if (c == '%' || (property && (c == ':' || c == ','))) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

Json SideJson(const GateRun& run) {
  return {{"model", run.model},
          {"sweep", run.sweep},
          {"weights_digest", run.weights.empty() ? "" : run.weights.Hex()},
          {"tokenizer_digest", run.tokenizer.empty() ? "" : run.tokenizer.Hex()},
          {"numerics_id", run.numerics_id},
          {"iha_eval_version", run.iha_eval_version}};
}

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json MetricJson(const MetricVerdict& v) {
  Json json = {{"name", v.name},
               {"benchmark", v.benchmark},
               {"metric", v.metric},
               {"verdict", NameOf(v.verdict)},
               {"reason", v.reason},
               {"candidate", v.candidate.ToDouble()},
               {"baseline", v.baseline.ToDouble()},
               {"delta", v.test.delta},
               {"lower", v.identical ? Json(nullptr) : Json(v.test.lower)},
               {"upper", v.identical ? Json(nullptr) : Json(v.test.upper)},
               {"method", v.identical ? "identical" : NameOf(v.test.method)},
               {"p_worse", v.test.p_worse},
               {"adjusted_p", v.adjusted_p},
               {"margin", v.margin.value},
               {"margin_rule", v.margin.rule},
               {"items", v.test.items},
               {"better", v.test.better},
               {"worse", v.test.worse},
               {"discordance", v.discordance()},
               {"sd", v.test.sd},
               {"detectable", OrNull(v.detectable)},
               {"power", OrNull(v.power)}};
  json["more_items"] = OrNull(v.more_items);
  json["samples_needed"] = OrNull(v.samples_needed);
  return json;
}

}  // namespace

std::string RenderGateText(const GateReport& report) {
  std::string out = fmt::format("{}: {}\n", NameOf(report.verdict), TerminalSafe(report.reason));
  out +=
      TerminalSafe(Side("candidate", report.candidate)) + "\n" + TerminalSafe(Side("baseline", report.baseline)) + "\n";
  out += LevelLine(report) + "\n";
  for (const MetricVerdict& v : report.metrics) {
    out += fmt::format("\n{}\n  {}\n", TerminalSafe(fmt::format("{}: {}", v.name, NameOf(v.verdict))),
                       TerminalSafe(v.reason));
    out += fmt::format("  candidate {} %, baseline {} %, Delta {} points\n  {}\n  {}\n", Percent(v.candidate, 2),
                       Percent(v.baseline, 2), SignedPercent(v.delta(), 2), TestLine(v), MarginLine(v));
  }
  for (const std::string& note : report.notes) out += fmt::format("note: {}\n", TerminalSafe(note));
  return out;
}

std::string RenderGateMarkdown(const GateReport& report) {
  std::string out =
      fmt::format("### Evaluation gate: {}\n\n{}.\n\n", NameOf(report.verdict), MarkdownText(report.reason));
  out += "| metric | verdict | candidate % | baseline % | Δ points | lower | upper | margin | p (Holm) | items |\n";
  out += "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const MetricVerdict& v : report.metrics) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {:.2g} | {} |\n", MarkdownText(v.name),
                       NameOf(v.verdict), Percent(v.candidate, 2), Percent(v.baseline, 2), SignedPercent(v.delta(), 2),
                       v.identical ? "–" : Points(v.test.lower), v.identical ? "–" : Points(v.test.upper),
                       Percents(v.margin.value), v.adjusted_p, v.test.items);
  }
  out += "\n";
  for (const MetricVerdict& v : report.metrics) {
    out += fmt::format("- {}: {}. {}.\n", MarkdownText(v.name), MarkdownText(v.reason), MarkdownText(MarginLine(v)));
  }
  for (const std::string& note : report.notes) out += fmt::format("- Note: {}.\n", MarkdownText(note));
  out += fmt::format("\n{}\n{}\n\n{}.\n", MarkdownText(Side("candidate", report.candidate)) + "  ",
                     MarkdownText(Side("baseline", report.baseline)), LevelLine(report));
  return out;
}

std::string RenderGateJson(const GateReport& report) {
  Json json;
  json["schema"] = "iha-eval/gate/1";
  json["verdict"] = NameOf(report.verdict);
  json["reason"] = report.reason;
  json["alpha"] = report.alpha;
  json["target_power"] = report.target_power;
  json["candidate"] = SideJson(report.candidate);
  json["baseline"] = SideJson(report.baseline);
  json["metrics"] = Json::array();
  for (const MetricVerdict& v : report.metrics) json["metrics"].push_back(MetricJson(v));
  json["notes"] = report.notes;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string RenderGateJunit(const GateReport& report, bool inconclusive_passes) {
  int failures = 0, errors = 0;
  std::string cases;
  for (const MetricVerdict& v : report.metrics) {
    cases += fmt::format("  <testcase classname=\"iha-eval.gate\" name=\"{}\">\n", Xml(v.name));
    if (v.verdict == Verdict::kFail) {
      failures++;
      cases += fmt::format("    <failure message=\"{}\">{}</failure>\n", Xml(v.reason), Xml(MarginLine(v)));
    } else if (v.verdict == Verdict::kInconclusive && !inconclusive_passes) {
      errors++;
      cases += fmt::format("    <error type=\"inconclusive\" message=\"{}\">{}</error>\n", Xml(v.reason),
                           Xml(MarginLine(v)));
    }
    cases += fmt::format("    <system-out>{}: {}. {}. {}.</system-out>\n  </testcase>\n", NameOf(v.verdict),
                         Xml(v.reason), Xml(TestLine(v)), Xml(MarginLine(v)));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"iha-eval gate\" tests=\"{}\" "
      "failures=\"{}\" errors=\"{}\">\n  <properties>\n    <property name=\"alpha\" value=\"{}\"/>\n    <property "
      "name=\"power\" value=\"{}\"/>\n  </properties>\n{}</testsuite>\n",
      report.metrics.size(), failures, errors, report.alpha, report.target_power, cases);
}

std::string RenderGateGithub(const GateReport& report) {
  std::string out;
  for (const MetricVerdict& v : report.metrics) {
    const char* level = v.verdict == Verdict::kFail ? "error" : (v.verdict == Verdict::kPass ? "notice" : "warning");
    out += fmt::format(
        "::{} title={}::{}\n", level, Github(fmt::format("iha-eval gate {} {}", NameOf(v.verdict), v.name), true),
        Github(fmt::format("{} (alpha {}, power {})", v.reason, report.alpha, report.target_power), false));
  }
  return out;
}

}  // namespace iha::reports
