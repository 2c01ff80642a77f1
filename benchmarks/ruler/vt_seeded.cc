#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "benchmarks/ruler/haystack.h"
#include "benchmarks/ruler/vt.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

constexpr int64_t kExampleTokens = 500;
constexpr int64_t kFewestLines = static_cast<int64_t>(kChainNames);

struct Chain {
  std::vector<std::string> names;
  std::string value;
};

class VtSeededRows : public SeededRows {
 public:
  explicit VtSeededRows(const TaskContext& context)
      : context_(context),
        example_parts_(MakePromptParts(*context.task, ChatTexts{}, true)),
        noise_(context_.counter.Measure(kNoiseLine)) {}

  absl::StatusOr<Sample> Row(int64_t, PythonRandom random, TokenCounter& counter) const override {
    std::unordered_set<std::string> taken = {"VAR"};
    const Chain chain = DrawChain(5, random, taken), example = DrawChain(3, random, taken);
    IHA_ASSIGN_OR_RETURN(const std::string example_text, ExampleText(example, random, counter));
    const std::string head = WithExample(context_.parts.head, example_text);
    const auto build = [&](int64_t lines) { return Build(head, context_.parts.tail, chain, lines, random, counter); };
    IHA_ASSIGN_OR_RETURN(const int64_t lines, LargestSize(context_, kFewestLines, context_.length, "lines",
                                                          [&](int64_t size) { return build(size).tokens; }));
    return build(lines);
  }

 private:
  // Names and a value that the row does not have yet.
  static Chain DrawChain(int letters, PythonRandom& random, std::unordered_set<std::string>& taken) {
    Chain chain;
    while (chain.names.size() < kChainNames) {
      std::string name = random.Choices(kUpperCase, letters);
      if (taken.insert(name).second) chain.names.push_back(std::move(name));
    }
    do chain.value = std::to_string(random.RandInt(10000, 99998));
    while (!taken.insert(chain.value).second);
    return chain;
  }

  Sample Build(const std::string& head, const std::string& tail, const Chain& chain, int64_t lines, PythonRandom random,
               TokenCounter& counter) const {
    std::vector<int32_t> at = random.Sample(static_cast<int32_t>(lines), static_cast<int32_t>(kChainNames));
    std::sort(at.begin(), at.end());
    return BuildVtPrompt(head, tail, {chain.names, chain.value, std::move(at)}, lines, noise_, counter);
  }

  // The example with its answer: as long as NVIDIA's, or half of the length where that is less.
  absl::StatusOr<std::string> ExampleText(const Chain& chain, const PythonRandom& random, TokenCounter& counter) const {
    TaskContext limits = context_;
    limits.length = std::min(kExampleTokens, context_.length / 2) + context_.task->tokens_to_generate;
    limits.reserved = 0;
    const auto build = [&](int64_t lines) {
      return Build(example_parts_.head, example_parts_.tail, chain, lines, random, counter);
    };
    IHA_ASSIGN_OR_RETURN(const int64_t lines, LargestSize(limits, kFewestLines, limits.length, "lines of the example",
                                                          [&](int64_t size) { return build(size).tokens; }));
    return fmt::format("{} {}\n", build(lines).text, fmt::join(chain.names, " "));
  }

  TaskContext context_;
  const PromptParts example_parts_;
  const CountedPiece noise_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SeededRows>> VtSeeded(const TaskContext& context) {
  return std::make_unique<VtSeededRows>(context);
}

}  // namespace iha::benchmarks::ruler
