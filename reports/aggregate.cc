#include "reports/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "benchmarks/scoring/ruler_means.h"
#include "benchmarks/scoring/stats_fixed_list.h"

namespace iha::reports {
namespace {

using scoring::Rational;

void CountOverLength(int64_t length, const JobRows& job, Cell& cell) {
  for (const ItemRow& item : job.items) {
    const int64_t over = item.prompt_tokens + job.spec.entry.sampling.max_new_tokens - length;
    if (item.samples == 0 || over <= 0) continue;
    ++cell.over_length;
    cell.most_over_length = std::max(cell.most_over_length, over);
  }
}

bool DrawnAtRandom(const SamplingParams& sampling) { return sampling.draws() && sampling.temperature > 0; }

std::optional<scoring::Interval> IntervalOf(const SweepEntry& entry, const std::string& metric,
                                            const std::vector<Score>& values, std::optional<int64_t> list_items) {
  const scoring::IntervalOptions options{.single_sample = entry.sampling.samples == 1};
  if (!list_items.has_value()) return scoring::CellInterval(values, options);
  if (!NoListInterval(entry, metric).empty()) return std::nullopt;
  const scoring::FixedList list{
      .items = *list_items, .samples = entry.sampling.samples, .drawn = DrawnAtRandom(entry.sampling)};
  return scoring::FixedListInterval(values, list, options);
}

Cell CellOf(const JobRows& job, size_t metric_index, std::optional<int64_t> list_items) {
  Cell cell;
  cell.metric = job.spec.entry.metrics[metric_index];
  cell.planned = job.spec.items;
  const auto ruler = scoring::ParseRulerCell(job.spec.entry.benchmark.name);
  cell.over_context = ruler.has_value() && job.context_tokens > 0 && ruler->length > job.context_tokens;
  if (ruler.has_value()) CountOverLength(ruler->length, job, cell);
  std::vector<Score> values;
  values.reserve(job.items.size());
  Rational sum;
  Rational ties;
  for (const ItemRow& item : job.items) {
    const bool has_value = item.unscored == Unscored::kScored && metric_index < item.values.size();
    const Unscored reason = has_value ? item.values[metric_index].unscored : item.unscored;
    cell.samples += item.samples;
    cell.truncated += item.truncated;
    cell.empty += item.empty;
    if (reason == Unscored::kScored) {
      cell.scored++;
    } else {
      cell.unscored[reason]++;
    }
    switch (ContributionOf(reason)) {
      case Contribution::kScore: {
        const ItemValue& value = item.values[metric_index];
        values.push_back(value.score);
        ties += Rational(value.tie);
        cell.invalid += value.invalid;
        break;
      }
      case Contribution::kWrong:
        values.push_back({});
        break;
      case Contribution::kNothing:
        continue;
    }
    sum += Rational(values.back());
  }
  const int64_t pending = job.spec.items - static_cast<int64_t>(job.items.size());
  if (pending > 0) cell.unscored[job.cancelled ? Unscored::kCancelled : Unscored::kPending] += pending;
  if (values.empty()) return cell;
  const Rational count(static_cast<int64_t>(values.size()));
  cell.value = sum / count;
  cell.tie_rate = ties / count;
  cell.interval = IntervalOf(job.spec.entry, cell.metric, values, list_items);
  return cell;
}

}  // namespace

Contribution ContributionOf(Unscored reason) {
  switch (reason) {
    case Unscored::kScored:
      return Contribution::kScore;
    case Unscored::kPromptTooLong:
    case Unscored::kQuarantined:
    case Unscored::kGraderError:
      return Contribution::kWrong;
    case Unscored::kPending:
    case Unscored::kCancelled:
    case Unscored::kGraderUnavailable:
    case Unscored::kUndefined:
    case Unscored::kGeneratorDeadEnd:
    case Unscored::kDataExhausted:
      return Contribution::kNothing;
  }
  return Contribution::kNothing;
}

std::optional<Score> Contributed(Unscored item, const ItemValue& value) {
  switch (ContributionOf(item == Unscored::kScored ? value.unscored : item)) {
    case Contribution::kScore:
      return value.score;
    case Contribution::kWrong:
      return Score{};
    case Contribution::kNothing:
      return std::nullopt;
  }
  return std::nullopt;
}

bool Cell::complete() const {
  // Whatever left the denominator makes the mean one over other items than planned.
  return value.has_value() && std::none_of(unscored.begin(), unscored.end(), [](const auto& count) {
           return ContributionOf(count.first) == Contribution::kNothing;
         });
}

std::optional<Bounds> BoundsOfMean(const std::vector<WeightedCell>& cells) {
  if (cells.empty()) return std::nullopt;
  double mean = 0, below = 0, above = 0;
  for (const auto& [cell, weight] : cells) {
    if (!cell->complete() || !cell->interval.has_value()) return std::nullopt;
    const double value = cell->value->ToDouble();
    mean += weight * value;
    const double down = weight * (value - cell->interval->low), up = weight * (cell->interval->high - value);
    below += down * down;
    above += up * up;
  }
  return Bounds{std::max(0.0, mean - std::sqrt(below)), std::min(1.0, mean + std::sqrt(above))};
}

std::string NoListInterval(const SweepEntry& entry, const std::string& metric) {
  if (!DrawnAtRandom(entry.sampling)) return "";
  if (metric.starts_with("maj@") || (metric.starts_with("pass@") && !metric.starts_with("pass@1?"))) {
    return "its value is no mean of samples, so that these don't show how much it would vary";
  }
  if (entry.sampling.samples > 1) return "";
  return fmt::format("one sample an item, drawn at T={}, does not show how much it would vary; two or more do",
                     entry.sampling.temperature);
}

std::vector<Cell> CellsOf(const JobRows& job, std::optional<int64_t> list_items) {
  std::vector<Cell> cells;
  for (size_t i = 0; i < job.spec.entry.metrics.size(); i++) {
    Cell& cell = cells.emplace_back(CellOf(job, i, list_items));
    // When a sequential gate stops, and which samples its votes took, depends on what it saw.
    if (!job.sequential || (cell.complete() && !job.spec.entry.stop_settled_votes)) continue;
    cell.value.reset();
    cell.interval.reset();
    cell.tie_rate = {};
  }
  return cells;
}

}  // namespace iha::reports
