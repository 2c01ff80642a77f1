#include "reports/figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "benchmarks/scoring/ruler_means.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "reports/aggregate.h"
#include "reports/layout.h"
#include "reports/table.h"

namespace iha::reports {
namespace {

using scoring::Rational;
using scoring::RulerCell;

bool Has(const std::vector<RulerCell>& keys, const RulerCell& wanted) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const RulerCell& key) { return key.task == wanted.task && key.length == wanted.length; });
}

// RULER's cells of a sweep: [model][task at length].
struct RulerCells {
  std::vector<RulerCell> keys;
  std::vector<std::vector<Cell>> cells;
  std::vector<int64_t> lengths;    // ascending
  std::vector<std::string> tasks;  // in order of appearance
};

absl::StatusOr<RulerCells> CellsOfRuler(const Snapshot& snapshot) {
  RulerCells out;
  out.cells.resize(snapshot.spec.models.size());
  std::set<int64_t> lengths;
  for (size_t e = 0; e < snapshot.spec.entries.size(); e++) {
    const auto key = scoring::ParseRulerCell(snapshot.spec.entries[e].benchmark.name);
    // The same cell in another way (samples, prompt) is another column, not another task.
    if (!key.has_value() || Has(out.keys, *key)) continue;
    out.keys.push_back(*key);
    lengths.insert(key->length);
    if (std::find(out.tasks.begin(), out.tasks.end(), key->task) == out.tasks.end()) out.tasks.push_back(key->task);
    for (size_t m = 0; m < out.cells.size(); m++) {
      out.cells[m].push_back(CellsOf(snapshot.jobs[m * snapshot.spec.entries.size() + e]).front());
    }
  }
  if (out.keys.empty()) {
    return InvalidArgument("the sweep has no entry of ruler; iha-eval sweep example ruler prints one");
  }
  out.lengths.assign(lengths.begin(), lengths.end());
  return out;
}

// The mean of complete cells with the interval of the head comment; nullopt if one is incomplete or there is none.
std::optional<FigureValue> MeanOf(const std::vector<const Cell*>& cells) {
  const auto count = static_cast<double>(cells.size());
  std::vector<WeightedCell> weighted;
  for (const Cell* cell : cells) weighted.push_back({cell, 1.0 / count});
  const auto bounds = BoundsOfMean(weighted);
  if (!bounds.has_value()) return std::nullopt;
  Rational sum;
  for (const Cell* cell : cells) sum += *cell->value;
  const Rational mean = sum / Rational(static_cast<int64_t>(cells.size()));
  return FigureValue{.percent = 100 * mean.ToDouble(),
                     .low = 100 * bounds->low,
                     .high = 100 * bounds->high,
                     .label = Percent(mean, 1)};
}

// "4k" for 4096, "5000" for what is no whole number of 1024 tokens.
std::string LengthName(int64_t tokens) {
  return tokens % 1024 == 0 ? fmt::format("{}k", tokens / 1024) : fmt::format("{}", tokens);
}

using Wanted = std::function<bool(const RulerCell&)>;

std::vector<const Cell*> Chosen(const RulerCells& ruler, size_t model, const Wanted& wanted) {
  std::vector<const Cell*> cells;
  for (size_t i = 0; i < ruler.keys.size(); i++) {
    if (wanted(ruler.keys[i])) cells.push_back(&ruler.cells[model][i]);
  }
  return cells;
}

Panel ByLength(const RulerCells& ruler, Panel::Kind kind, const Wanted& wanted) {
  Panel panel;
  panel.kind = kind;
  panel.x_title = "length in tokens";
  std::vector<int64_t> lengths;
  for (const int64_t length : ruler.lengths) {
    const bool any = std::any_of(ruler.keys.begin(), ruler.keys.end(),
                                 [&](const RulerCell& key) { return key.length == length && wanted(key); });
    if (any) lengths.push_back(length);
  }
  for (const int64_t length : lengths) panel.x_names.push_back(LengthName(length));
  for (size_t m = 0; m < ruler.cells.size(); m++) {
    auto& values = panel.values.emplace_back();
    for (const int64_t length : lengths) {
      values.push_back(
          MeanOf(Chosen(ruler, m, [&](const RulerCell& key) { return key.length == length && wanted(key); })));
    }
  }
  return panel;
}

std::vector<std::string> ModelNames(const Snapshot& snapshot) {
  std::vector<std::string> names;
  for (const ModelRef& model : snapshot.spec.models) names.push_back(model.name);
  return names;
}

std::string TasksNote(const RulerCells& ruler) {
  return fmt::format("means over {} task{}: {}", ruler.tasks.size(), ruler.tasks.size() == 1 ? "" : "s",
                     fmt::join(ruler.tasks, ", "));
}

std::string ProvenanceNote(const Snapshot& snapshot) {
  return fmt::format("sweep {} · iha-eval {} · numerics {}; bars: 95 % intervals; – : incomplete",
                     snapshot.sweep.Hex().substr(0, 16), snapshot.iha_eval_version, snapshot.spec.numerics.Id());
}

// "iha" of "iha/step-1000"; "" without a folder.
std::string FamilyOf(const std::string& model) {
  const size_t slash = model.rfind('/');
  return slash == std::string::npos ? "" : model.substr(0, slash);
}

// "1.5B", "240B", "800": as published tables name token counts.
std::string TokensName(int64_t tokens) {
  constexpr std::pair<int64_t, char> kUnits[] = {
      {1'000'000'000'000, 'T'}, {1'000'000'000, 'B'}, {1'000'000, 'M'}, {1000, 'k'}};
  for (const auto& [unit, letter] : kUnits) {
    if (tokens < unit) continue;
    std::string text = Rational(tokens, unit).ToFixed(1);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text + letter;
  }
  return fmt::format("{}", tokens);
}

// Which line and position each model has.
struct TokenAxis {
  std::vector<int64_t> tokens;      // ascending
  std::vector<std::string> series;  // folders, in order of appearance
  std::vector<std::string> without;
  struct Place {
    size_t model = 0;
    size_t series = 0;
    size_t x = 0;
  };
  std::vector<Place> places;
};

size_t IndexOf(std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at != names.end()) return static_cast<size_t>(at - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

absl::StatusOr<TokenAxis> AxisOf(const Snapshot& snapshot, const std::map<std::string, int64_t>& train_tokens) {
  TokenAxis axis;
  std::set<int64_t> positions;
  std::map<std::pair<std::string, int64_t>, std::string> taken;
  for (const ModelRef& model : snapshot.spec.models) {
    const auto tokens = train_tokens.find(model.name);
    if (tokens == train_tokens.end()) continue;
    positions.insert(tokens->second);
    const auto [other, is_new] = taken.try_emplace({FamilyOf(model.name), tokens->second}, model.name);
    if (!is_new) {
      return InvalidArgument(
          "{} and {} have the same train_tokens, {}, and are one line; give each line a folder of its own",
          other->second, model.name, tokens->second);
    }
  }
  if (positions.empty()) return InvalidArgument("no model of the sweep has train_tokens in its config.json");
  axis.tokens.assign(positions.begin(), positions.end());
  for (size_t m = 0; m < snapshot.spec.models.size(); m++) {
    const std::string& name = snapshot.spec.models[m].name;
    const auto tokens = train_tokens.find(name);
    if (tokens == train_tokens.end()) {
      axis.without.push_back(name);
      continue;
    }
    const auto x = std::lower_bound(axis.tokens.begin(), axis.tokens.end(), tokens->second);
    axis.places.push_back({m, IndexOf(axis.series, FamilyOf(name)), static_cast<size_t>(x - axis.tokens.begin())});
  }
  return axis;
}

Panel TokenPanel(const Snapshot& snapshot, const Column& column, const TokenAxis& axis) {
  Panel panel;
  panel.kind = Panel::Kind::kLines;
  panel.title = column.header;
  panel.x_title = "training tokens";
  for (const int64_t tokens : axis.tokens) {
    panel.x.push_back(static_cast<double>(tokens));
    panel.x_names.push_back(TokensName(tokens));
  }
  panel.values.assign(axis.series.size(), std::vector<std::optional<FigureValue>>(axis.tokens.size()));
  for (const TokenAxis::Place& place : axis.places) {
    const JobRows& job = snapshot.jobs[place.model * snapshot.spec.entries.size() + column.entry];
    for (const Cell& cell : CellsOf(job)) {
      if (cell.metric == column.metric) panel.values[place.series][place.x] = MeanOf({&cell});
    }
  }
  return panel;
}

absl::StatusOr<std::vector<Column>> ChosenColumns(const SweepSpec& spec, const std::string& metric) {
  IHA_ASSIGN_OR_RETURN(std::vector<Column> columns, ColumnsOf(spec, "generic"));
  if (metric.empty()) return columns;
  std::vector<std::string> known;
  for (const Column& column : columns) {
    if (column.header == metric) return std::vector<Column>{column};
    known.push_back(column.header);
  }
  return InvalidArgument("--metric \"{}\": no such column; the sweep has {}", metric, fmt::join(known, ", "));
}

}  // namespace

absl::StatusOr<Figure> RulerFigure(const Snapshot& snapshot) {
  IHA_ASSIGN_OR_RETURN(const RulerCells ruler, CellsOfRuler(snapshot));
  Figure figure;
  figure.series = ModelNames(snapshot);
  std::vector<std::string> multikey;
  for (const std::string& task : ruler.tasks) {
    if (task.starts_with("niah_multikey")) multikey.push_back(task);
  }
  if (!multikey.empty()) {
    Panel panel =
        ByLength(ruler, Panel::Kind::kBars, [](const RulerCell& key) { return key.task.starts_with("niah_multikey"); });
    panel.title = "Multi-key retrieval";
    figure.panels.push_back(std::move(panel));
    figure.notes.push_back(fmt::format("multi-key retrieval: mean of {}", fmt::join(multikey, ", ")));
  }
  Panel overall;
  overall.title = "RULER overall";
  overall.x_names = {ruler.lengths.size() == 1 ? LengthName(ruler.lengths.front()) : "mean of all lengths"};
  for (size_t m = 0; m < ruler.cells.size(); m++) {
    overall.values.push_back({MeanOf(Chosen(ruler, m, [](const RulerCell&) { return true; }))});
  }
  figure.panels.push_back(std::move(overall));
  figure.notes.push_back("overall: " + TasksNote(ruler));
  figure.notes.push_back(ProvenanceNote(snapshot));
  return figure;
}

absl::StatusOr<Figure> LengthFigure(const Snapshot& snapshot) {
  IHA_ASSIGN_OR_RETURN(const RulerCells ruler, CellsOfRuler(snapshot));
  Figure figure;
  figure.series = ModelNames(snapshot);
  Panel panel = ByLength(ruler, Panel::Kind::kLines, [](const RulerCell&) { return true; });
  panel.title = "RULER by length";
  figure.panels.push_back(std::move(panel));
  figure.notes = {TasksNote(ruler), ProvenanceNote(snapshot)};
  return figure;
}

absl::StatusOr<Figure> TrainTokensFigure(const Snapshot& snapshot, const std::map<std::string, int64_t>& train_tokens,
                                         const std::string& metric) {
  IHA_ASSIGN_OR_RETURN(std::vector<Column> columns, ChosenColumns(snapshot.spec, metric));
  IHA_ASSIGN_OR_RETURN(const TokenAxis axis, AxisOf(snapshot, train_tokens));
  Figure figure;
  figure.series = axis.series == std::vector<std::string>{""} ? std::vector<std::string>{"checkpoints"} : axis.series;
  if (columns.size() > kMostTokenPanels) {
    figure.notes.push_back(
        fmt::format("the first {} of {}; --metric chooses one", kMostTokenPanels, CountedSize(columns, "column")));
    columns.resize(kMostTokenPanels);
  }
  for (const Column& column : columns) figure.panels.push_back(TokenPanel(snapshot, column, axis));
  if (!axis.without.empty())
    figure.notes.push_back(fmt::format("without train_tokens: {}", fmt::join(axis.without, ", ")));
  figure.notes.push_back(ProvenanceNote(snapshot));
  return figure;
}

}  // namespace iha::reports
