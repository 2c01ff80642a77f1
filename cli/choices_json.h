// choices_json.h: the stored scores of an item's choices as samples.jsonl and explain show them. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace iha::cli {

// One object a choice: `text` if `texts` has one for each, `loglikelihood` (every digit that it takes to read the same
// double again; null: minus infinity), `tokens`, `greedy`. nullopt: `scores` is no such text.
std::optional<nlohmann::ordered_json> ChoicesJson(const std::string& scores, const std::vector<std::string>& texts);

}  // namespace iha::cli
