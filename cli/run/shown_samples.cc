#include "cli/run/shown_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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

using ByItem = std::map<int64_t, reports::ShownSample>;

// The first `items` of each kind of one job.
struct Candidates {
  int64_t samples = 0;  // that the job has
  ByItem wrong;
  ByItem right;
};

// Half of `items` of each kind; what one kind lacks the other fills. In order of the items.
std::vector<reports::ShownSample> Chosen(Candidates found, int64_t items) {
  const int64_t right = std::min(std::ssize(found.right), std::max(items / 2, items - std::ssize(found.wrong)));
  const int64_t wrong = std::min(std::ssize(found.wrong), items - right);
  ByItem chosen(found.right.begin(), std::next(found.right.begin(), right));
  chosen.insert(found.wrong.begin(), std::next(found.wrong.begin(), wrong));
  std::vector<reports::ShownSample> shown;
  for (auto& [index, sample] : chosen) shown.push_back(std::move(sample));
  return shown;
}

}  // namespace

absl::StatusOr<std::vector<reports::SampleGroup>> ShownSamples(coordinator::Store& store, const SweepId& sweep,
                                                               int64_t items) {
  std::map<std::pair<size_t, size_t>, Candidates> jobs;
  IHA_RETURN_IF_ERROR(coordinator::ReadSamples(store, sweep, [&](const coordinator::SampleRow& row) {
    if (row.item.samples.empty()) return absl::OkStatus();
    const JobSpec& job = row.job.spec;
    Candidates& found = jobs[{static_cast<size_t>(job.model_index), static_cast<size_t>(job.entry_index)}];
    found.samples += static_cast<int64_t>(row.item.samples.size());
    const SampleResult& sample = row.item.samples.front();
    const bool right = !sample.grades.empty() && sample.grades.front().score == Score{1, 1};
    if (std::ssize(right ? found.right : found.wrong) >= items) return absl::OkStatus();
    (right ? found.right : found.wrong)[row.item.index] = {
        .item_id = row.item.item_id,
        .sample = 0,
        .text = TextOf(row.generations.front(), job.entry.sampling.draws()),
        .verdict = VerdictOf(sample)};
    return absl::OkStatus();
  }));
  std::vector<reports::SampleGroup> groups;
  for (auto& [key, found] : jobs) {
    groups.push_back(
        {.row = key.first, .entry = key.second, .total = found.samples, .shown = Chosen(std::move(found), items)});
  }
  return groups;
}

}  // namespace iha::cli
