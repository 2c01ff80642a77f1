#include "reports/render_ruler.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/render.h"
#include "reports/ruler_summary.h"

namespace iha::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDecimals = 2;  // of NVIDIA's scores
constexpr const char* kMeans[] = {"Avg", "wAvg inc", "wAvg dec"};

const scoring::Rational& MeanAt(const scoring::RulerMeans& means, size_t i) {
  return i == 0 ? means.average : i == 1 ? means.weighted_increasing : means.weighted_decreasing;
}

// "4096" where all 13 tasks are there, else "4096 (2 tasks)".
std::string LengthHeader(const RulerSummary& summary, size_t i) {
  constexpr int kAllTasks = 13;
  if (summary.tasks[i] == kAllTasks) return fmt::format("{}", summary.lengths[i]);
  return fmt::format("{} ({} task{})", summary.lengths[i], summary.tasks[i], summary.tasks[i] == 1 ? "" : "s");
}

// "71.88 [60.1, 80.2]", or with a * instead where it is of a part.
std::string MeanText(const scoring::Rational& value, bool complete, const std::optional<Bounds>& bounds) {
  const std::string text = Percent(value, kDecimals) + (complete ? "" : "*");
  if (!bounds.has_value()) return text;
  return fmt::format("{} [{:.1f}, {:.1f}]", text, 100 * bounds->low, 100 * bounds->high);
}

Json BoundsJson(const std::optional<Bounds>& bounds) {
  if (!bounds.has_value()) return nullptr;
  return {{"low", bounds->low}, {"high", bounds->high}, {"level", 0.95}};
}

std::string EffectiveText(const scoring::RulerMeans& means) {
  return means.effective_length.has_value() ? fmt::format("{}", *means.effective_length) : "none";
}

std::vector<std::string> TextsOf(const std::string& model, const RulerRowSummary& row) {
  std::vector<std::string> texts = {model};
  for (const RulerLength& length : row.lengths) {
    texts.push_back(length.mean.has_value() ? MeanText(*length.mean, length.complete, length.bounds) : "–");
  }
  for (size_t i = 0; i < std::size(kMeans); i++) {
    texts.push_back(row.means.has_value() ? MeanText(MeanAt(*row.means, i), row.complete, row.bounds[i]) : "–");
  }
  texts.push_back(row.means.has_value() ? EffectiveText(*row.means) : "–");
  return texts;
}

// What stands behind the model's name is ours.
std::string MarkdownLine(const std::vector<std::string>& texts) {
  std::string out = "|";
  for (size_t i = 0; i < texts.size(); i++) out += fmt::format(" {} |", i == 0 ? MarkdownText(texts[i]) : texts[i]);
  return out + "\n";
}

// Settings are told apart only where there are several.
std::string CsvPrefix(const Table& table, size_t summary) {
  return table.ruler.size() == 1 ? "ruler" : fmt::format("ruler[{}]", summary);
}

}  // namespace

std::vector<RulerTable> RulerTables(const Table& table) {
  std::vector<RulerTable> tables;
  for (const RulerSummary& summary : table.ruler) {
    RulerTable& out = tables.emplace_back();
    out.title = fmt::format("RULER, mean of the tasks at each length ({})", summary.setting);
    out.headers = {"Model"};
    for (size_t i = 0; i < summary.lengths.size(); i++) out.headers.push_back(LengthHeader(summary, i));
    out.headers.insert(out.headers.end(), std::begin(kMeans), std::end(kMeans));
    out.headers.emplace_back("Effective length");
    for (size_t m = 0; m < summary.rows.size(); m++) {
      out.rows.push_back(TextsOf(table.rows[m].model, summary.rows[m]));
    }
  }
  return tables;
}

std::string RulerMarkdown(const Table& table) {
  std::string out;
  for (const RulerTable& ruler : RulerTables(table)) {
    out += MarkdownText(ruler.title) + ":\n\n" + MarkdownLine(ruler.headers) + "|---|";
    for (size_t i = 1; i < ruler.headers.size(); i++) out += "---:|";
    out += "\n";
    for (const std::vector<std::string>& row : ruler.rows) out += MarkdownLine(row);
    out += "\n";
  }
  return out;
}

std::vector<std::string> RulerCsvHeaders(const Table& table) {
  std::vector<std::string> headers;
  for (size_t s = 0; s < table.ruler.size(); s++) {
    const std::string prefix = CsvPrefix(table, s);
    const auto add = [&](const std::string& mean) {
      for (const char* part : {"", " low", " high"}) headers.push_back(mean + part);
    };
    for (const int64_t length : table.ruler[s].lengths) add(fmt::format("{}@{} mean", prefix, length));
    for (const char* mean : kMeans) add(fmt::format("{} {}", prefix, mean));
    headers.push_back(prefix + " effective length");
  }
  return headers;
}

std::vector<std::string> RulerCsvFields(const Table& table, size_t row) {
  std::vector<std::string> fields;
  const auto add = [&](const scoring::Rational* value, const std::optional<Bounds>& bounds) {
    fields.push_back(value == nullptr ? "" : Percent(*value, kDecimals));
    fields.push_back(bounds.has_value() ? fmt::format("{:.4f}", 100 * bounds->low) : "");
    fields.push_back(bounds.has_value() ? fmt::format("{:.4f}", 100 * bounds->high) : "");
  };
  for (const RulerSummary& summary : table.ruler) {
    const RulerRowSummary none;
    const RulerRowSummary& values = row < summary.rows.size() ? summary.rows[row] : none;
    for (size_t i = 0; i < summary.lengths.size(); i++) {
      const bool known = i < values.lengths.size() && values.lengths[i].mean.has_value();
      add(known ? &*values.lengths[i].mean : nullptr, known ? values.lengths[i].bounds : std::nullopt);
    }
    for (size_t i = 0; i < std::size(kMeans); i++) {
      add(values.means.has_value() ? &MeanAt(*values.means, i) : nullptr, values.bounds[i]);
    }
    const bool effective = values.means.has_value() && values.means->effective_length.has_value();
    fields.push_back(effective ? fmt::format("{}", *values.means->effective_length) : "");
  }
  return fields;
}

Json RulerJson(const Table& table) {
  Json all = Json::array();
  for (const RulerSummary& summary : table.ruler) {
    Json rows = Json::array();
    for (size_t m = 0; m < summary.rows.size(); m++) {
      const RulerRowSummary& row = summary.rows[m];
      Json lengths = Json::array();
      for (const RulerLength& length : row.lengths) {
        lengths.push_back({{"mean", length.mean.has_value() ? Json(length.mean->ToDouble()) : Json(nullptr)},
                           {"interval", BoundsJson(length.bounds)},
                           {"complete", length.complete}});
      }
      Json out = {{"model", table.rows[m].model}, {"lengths", std::move(lengths)}, {"complete", row.complete}};
      const char* const keys[] = {"average", "weighted_increasing", "weighted_decreasing"};
      for (size_t i = 0; i < std::size(keys); i++) {
        out[keys[i]] = row.means.has_value() ? Json(MeanAt(*row.means, i).ToDouble()) : Json(nullptr);
        out[fmt::format("{}_interval", keys[i])] = BoundsJson(row.bounds[i]);
      }
      const bool effective = row.means.has_value() && row.means->effective_length.has_value();
      out["effective_length"] = effective ? Json(*row.means->effective_length) : Json(nullptr);
      rows.push_back(std::move(out));
    }
    all.push_back({{"setting", summary.setting},
                   {"lengths", summary.lengths},
                   {"tasks", summary.tasks},
                   {"rows", std::move(rows)}});
  }
  return all;
}

}  // namespace iha::reports
