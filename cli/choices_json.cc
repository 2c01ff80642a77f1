#include "cli/choices_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "benchmarks/scoring/choice_scores.h"

namespace iha::cli {

std::optional<nlohmann::ordered_json> ChoicesJson(const std::string& scores, const std::vector<std::string>& texts) {
  const auto lines = static_cast<size_t>(std::count(scores.begin(), scores.end(), '\n'));
  const auto parsed = scoring::ParseChoiceScores(scores, lines);
  if (!parsed.ok() || lines == 0) return std::nullopt;
  auto json = nlohmann::ordered_json::array();
  for (size_t i = 0; i < parsed->size(); i++) {
    nlohmann::ordered_json choice;
    if (texts.size() == parsed->size()) choice["text"] = texts[i];
    choice["loglikelihood"] = (*parsed)[i].loglikelihood;
    choice["tokens"] = (*parsed)[i].tokens;
    choice["greedy"] = (*parsed)[i].greedy;
    json.push_back(std::move(choice));
  }
  return json;
}

}  // namespace iha::cli
