#include "benchmarks/ruler/grade.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "benchmarks/ruler/score.h"
#include "common/json.h"

namespace iha::benchmarks::ruler {
namespace {

using Json = nlohmann::json;

// How many references a row of the task has; 0: what its question lists.
size_t ReferencesOfRow(const Task& task) {
  switch (task.family) {
    case Family::kNiah:
      return static_cast<size_t>(task.niah.queries * task.niah.values);
    case Family::kVt:
      return 5;
    case Family::kCwe:
      return 10;
    case Family::kFwe:
      return 3;
    case Family::kQa:
      return 0;
  }
  return 0;
}

// Those that were found, then the others; empty: not a reason of GradeOf.
std::vector<std::string> ReferencesIn(const std::string& reason) {
  const size_t at = reason.find('[');
  if (at == std::string::npos) return {};
  const auto lists = ParseJson(std::string_view(reason).substr(at), "reason");
  if (!lists.ok()) return {};
  try {
    std::vector<std::string> all = lists->at(0);
    const std::vector<std::string> others = lists->at(1);
    all.insert(all.end(), others.begin(), others.end());
    return all;
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace

SampleGrade GradeOf(const Task& task, const std::vector<std::string>& references, const std::string& text) {
  const std::vector<bool> found = FoundIn(references, text);
  std::vector<std::string> hits, misses;
  for (size_t r = 0; r < references.size(); ++r) (found[r] ? hits : misses).push_back(references[r]);
  SampleGrade grade;
  grade.metric = kMetric;
  grade.extracted = fmt::format("{}", fmt::join(hits, ", "));
  grade.valid = !hits.empty();
  grade.score = ScoreOf(task.match, found);
  const Json lists = Json::array({hits, misses});  // two pairs would be taken for an object
  grade.reason =
      fmt::format("{}: {} of {} references in the text; found, not found: {}", NameOf(task.match), hits.size(),
                  references.size(), lists.dump(-1, ' ', false, Json::error_handler_t::replace));
  return grade;
}

bool IsGradeOf(const Task& task, const std::string& text, const SampleGrade& grade) {
  const std::vector<std::string> references = ReferencesIn(grade.reason);
  const size_t expected = ReferencesOfRow(task);
  if (references.empty() || (expected != 0 && references.size() != expected)) return false;
  return grade == GradeOf(task, references, text);
}

}  // namespace iha::benchmarks::ruler
