#include "benchmarks/exemplar_leak.h"

#include <algorithm>
#include <map>

#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

constexpr char kFewshot[] = "fewshot";

std::string_view Trimmed(std::string_view text) {
  constexpr char kSpace[] = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// The question as it is asked: the text, or the last message of a chat.
std::string Asked(const Prompt& prompt) {
  return prompt.messages.empty() ? prompt.text : prompt.messages.back().content;
}

// All that is shown before the item's own question.
std::string Before(const Prompt& prompt, const std::string& bare) {
  std::string before;
  for (size_t i = 0; i + 1 < prompt.messages.size(); i++) before += prompt.messages[i].content + "\n";
  const std::string asked = Asked(prompt);
  const size_t own = asked.rfind(Trimmed(bare));
  return before + (own == std::string::npos ? "" : asked.substr(0, own));
}

}  // namespace

absl::StatusOr<std::vector<ExemplarLeak>> FindExemplarLeaks(const Benchmark& benchmark, const std::string& data_root,
                                                            int64_t items) {
  BenchmarkRef ref = benchmark.ref();
  const auto fewshot = ref.options.find(kFewshot);
  if (fewshot == ref.options.end() || fewshot->second == "0") return std::vector<ExemplarLeak>{};
  fewshot->second = "0";
  IHA_ASSIGN_OR_RETURN(const auto zero_shot, OpenBenchmark(ref, data_root));
  std::vector<std::string> bare;
  std::map<std::string, std::vector<int64_t>> items_behind;  // by what stands before their question
  for (int64_t i = 0; i < items; i++) {
    bare.push_back(Asked(zero_shot->Render(i)));
    items_behind[Before(benchmark.Render(i), bare.back())].push_back(i);
  }
  std::vector<ExemplarLeak> leaks;
  for (int64_t i = 0; i < items; i++) {
    ExemplarLeak leak{.item = i, .item_id = benchmark.ItemId(i)};
    const std::string_view question = Trimmed(bare[static_cast<size_t>(i)]);
    for (const auto& [shown, behind] : items_behind) {
      if (question.empty() || shown.find(question) == std::string::npos) continue;
      leak.prompts += static_cast<int64_t>(behind.size());
      leak.in_its_own = leak.in_its_own || std::find(behind.begin(), behind.end(), i) != behind.end();
    }
    if (leak.prompts > 0) leaks.push_back(std::move(leak));
  }
  return leaks;
}

}  // namespace iha::benchmarks
