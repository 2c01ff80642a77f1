#include "benchmarks/ruler/words.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "benchmarks/manifest.h"
#include "benchmarks/ruler/data_files.h"
#include "benchmarks/scoring/python_text.h"
#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks::ruler {
namespace {

void SortSet(std::vector<std::string>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

absl::StatusOr<std::vector<std::string>> ReadWords(const std::string& data_root, const char* name) {
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(data_root, fmt::format("ruler/wonderwords/{}", name)));
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    words.emplace_back(scoring::PythonRstrip(line));
    at = end + 1;
  }
  return words;
}

}  // namespace

KeyList::KeyList(const std::vector<std::string>& adjectives, const std::vector<std::string>& nouns) : nouns_(nouns) {
  SortSet(nouns_);
  std::vector<std::string> prefixes;
  for (const std::string& adjective : adjectives) prefixes.push_back(adjective + "-");
  SortSet(prefixes);
  for (size_t i = 0; i < prefixes.size();) {
    Group group{.begin = size_, .prefix = prefixes[i], .merged = {}};
    size_t end = i + 1;
    while (end < prefixes.size() && prefixes[end].starts_with(group.prefix)) ++end;
    if (end > i + 1) {
      for (; i < end; ++i) {
        for (const std::string& noun : nouns_) group.merged.push_back(prefixes[i] + noun);
      }
      SortSet(group.merged);
    }
    size_ += static_cast<int64_t>(group.merged.empty() ? nouns_.size() : group.merged.size());
    i = end;
    groups_.push_back(std::move(group));
  }
}

std::string KeyList::At(int64_t index) const {
  const auto after = std::upper_bound(groups_.begin(), groups_.end(), index,
                                      [](int64_t wanted, const Group& group) { return wanted < group.begin; });
  const Group& group = *(after - 1);
  const auto offset = static_cast<size_t>(index - group.begin);
  return group.merged.empty() ? group.prefix + nouns_[offset] : group.merged[offset];
}

absl::StatusOr<WordLists> WordLists::Load(const std::string& data_root) {
  IHA_ASSIGN_OR_RETURN(const auto nouns, ReadWords(data_root, "nounlist.txt"));
  IHA_ASSIGN_OR_RETURN(const auto adjectives, ReadWords(data_root, "adjectivelist.txt"));
  IHA_ASSIGN_OR_RETURN(const auto verbs, ReadWords(data_root, "verblist.txt"));
  std::vector<std::string> words = nouns;
  words.insert(words.end(), adjectives.begin(), adjectives.end());
  words.insert(words.end(), verbs.begin(), verbs.end());
  SortSet(words);
  return WordLists{.keys = KeyList(adjectives, nouns), .words = std::move(words)};
}

absl::StatusOr<std::vector<std::string>> LoadEnglishWords(const std::string& data_root) {
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(data_root, kEnglishWords));
  return WordsOfObject(text, kEnglishWords);
}

absl::StatusOr<std::vector<std::string>> WordsOfObject(std::string_view json, std::string_view where) {
  IHA_RETURN_IF_ERROR(CheckJsonDepth(json));
  std::vector<std::string> words;
  std::unordered_map<std::string, size_t> place;  // of a field in `words`
  std::string field;
  std::optional<std::string> bad;
  using Json = nlohmann::json;
  // A parsed object forgets the order of its fields, an ordered one looks through all of them for each: 400,000 here.
  const auto take = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth == 1 && event == Json::parse_event_t::key) field = value.get<std::string>();
    if (depth != 1 || event == Json::parse_event_t::key) return true;
    if (event != Json::parse_event_t::value || !value.is_string()) {
      if (!bad.has_value()) bad = field;
      return true;
    }
    const auto [at, is_new] = place.emplace(field, words.size());
    if (is_new) words.emplace_back();
    words[at->second] = value.get<std::string>();
    return false;
  };
  const Json object = Json::parse(json, take, /*allow_exceptions=*/false);
  if (!object.is_object()) return InvalidArgument("{}: expected one object of words", where);
  if (bad.has_value()) return InvalidArgument("{}: field \"{}\": expected a word", where, TerminalSafe(*bad, 60));
  return words;
}

}  // namespace iha::benchmarks::ruler
