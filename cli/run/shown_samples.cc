#include "cli/run/shown_samples.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "benchmarks/scoring/rational.h"
#include "cli/choices_json.h"
#include "common/status_macros.h"
#include "coordinator/store/snapshot_reader.h"

namespace iha::cli {
namespace {

std::string VerdictOf(const SampleResult& sample) {
  std::string out;
  for (const SampleGrade& grade : sample.grades) {
    out += fmt::format("{}{} {}", out.empty() ? "" : " · ", grade.metric,
                       grade.unscored != Unscored::kScored ? std::string(NameOf(grade.unscored))
                                                           : scoring::Rational(grade.score).ToString());
    if (grade.valid) out += fmt::format(" ({})", grade.extracted);
  }
  return out;
}

std::string TextOf(const Generation& generation, bool drawn) {
  const auto choices = drawn ? std::nullopt : ChoicesJson(generation.text, {});
  return choices.has_value() ? choices->dump(1, ' ', false, nlohmann::json::error_handler_t::replace) : generation.text;
}

}  // namespace

absl::StatusOr<std::vector<reports::SampleGroup>> ShownSamples(coordinator::Store& store, const SweepId& sweep,
                                                               int64_t items) {
  std::map<std::pair<size_t, size_t>, reports::SampleGroup> groups;
  std::map<std::pair<size_t, size_t>, std::pair<int64_t, int64_t>> taken;  // wrong, right
  IHA_RETURN_IF_ERROR(coordinator::ReadSamples(store, sweep, [&](const coordinator::SampleRow& row) {
    const JobSpec& job = row.job.spec;
    const std::pair key(static_cast<size_t>(job.model_index), static_cast<size_t>(job.entry_index));
    if (row.item.samples.empty()) return absl::OkStatus();
    reports::SampleGroup& group = groups[key];
    group.row = key.first;
    group.entry = key.second;
    group.total += static_cast<int64_t>(row.item.samples.size());
    const SampleResult& sample = row.item.samples.front();
    const bool right = !sample.grades.empty() && sample.grades.front().score == Score{1, 1};
    int64_t& count = right ? taken[key].second : taken[key].first;
    if (count >= (right ? items / 2 : items - items / 2)) return absl::OkStatus();
    count++;
    group.shown.push_back({.item_id = row.item.item_id,
                           .sample = 0,
                           .text = TextOf(row.generations.front(), job.entry.sampling.draws()),
                           .verdict = VerdictOf(sample)});
    return absl::OkStatus();
  }));
  std::vector<reports::SampleGroup> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

}  // namespace iha::cli
