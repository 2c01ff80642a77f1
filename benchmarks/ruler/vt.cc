#include "benchmarks/ruler/vt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "benchmarks/ruler/haystack.h"
#include "benchmarks/ruler/text.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

constexpr std::string_view kExampleValue = "12345";
constexpr int64_t kExampleLength = 500;  // tokens
constexpr int64_t kExampleStep = 5;      // lines
constexpr int kExampleLetters = 3, kLetters = 5;

// One random stream serves the example and the rows.
struct Streams {
  PythonRandom letters;
  NumpyRandom values;
  std::string DrawValue() { return std::to_string(values.RandInt(10000, 99999)); }
};

absl::StatusOr<VtChain> DrawChain(bool example, int64_t lines, Streams& streams) {
  VtChain chain;
  std::vector<std::string>& names = chain.names;
  const int letters = example ? kExampleLetters : kLetters;
  while (names.size() < kChainNames || std::set<std::string>(names.begin(), names.end()).size() < kChainNames) {
    names.push_back(streams.letters.Choices(kUpperCase, letters));
  }
  chain.value = example ? std::string(kExampleValue) : streams.DrawValue();
  if (names.size() > kChainNames) {
    // NVIDIA's script begins a second chain with what is too many, value and all, and fails in it.
    if (!example) streams.DrawValue();
    return InvalidArgument("a variable's name was drawn twice");
  }
  if (lines < static_cast<int64_t>(kChainNames)) {
    return InvalidArgument("{} lines are fewer than the {} of a chain", lines, kChainNames);
  }
  chain.at = streams.letters.Sample(static_cast<int32_t>(lines), static_cast<int32_t>(kChainNames));
  std::sort(chain.at.begin(), chain.at.end());
  return chain;
}

// Searches for and draws the example: a prompt of the base template with three-letter names.
class ExampleSampler : public Sampler {
 public:
  ExampleSampler(const PromptParts& parts, const CountedPiece& noise, TokenCounter& counter, Streams& streams)
      : parts_(parts), noise_(noise), counter_(counter), streams_(streams) {}
  absl::StatusOr<Sample> Probe(int64_t size) override {
    IHA_ASSIGN_OR_RETURN(const VtChain chain, DrawChain(true, size, streams_));
    return BuildVtPrompt(parts_.head, parts_.tail, chain, size, noise_, counter_);
  }

 private:
  const PromptParts& parts_;
  const CountedPiece& noise_;
  TokenCounter& counter_;
  Streams& streams_;
};

class VtSampler : public SearchedSampler {
 public:
  explicit VtSampler(const TaskContext& context)
      : context_(context),
        streams_{PythonRandom(context.seed), NumpyRandom(static_cast<uint32_t>(context.seed))},
        noise_(context_.counter.Measure(kNoiseLine)) {}

  absl::Status Prepare() override {
    const PromptParts parts = MakePromptParts(*context_.task, ChatTexts{}, false);
    const Budget budget = {.length = kExampleLength,
                           .tokens_to_generate = 0,
                           .step = kExampleStep,
                           .first_probe = kExampleStep,
                           .floor_rule = false};
    ExampleSampler sampler(parts, noise_, context_.counter, streams_);
    IHA_ASSIGN_OR_RETURN(const int64_t size, FindSize(sampler, budget));
    std::variant<Sample, DeadEnd> drawn = DrawRow(sampler, budget, size, "lines of the example");
    if (const auto* end = std::get_if<DeadEnd>(&drawn)) return InvalidArgument("{}", end->cause);
    const Sample& sample = std::get<Sample>(drawn);
    names_ = sample.outputs;
    example_ = fmt::format("{} {}\n", sample.text, fmt::join(names_, " "));
    example_tokens_ = context_.counter.Whole(example_);
    return absl::OkStatus();
  }

  absl::StatusOr<Sample> Estimate(int64_t size) override {
    IHA_ASSIGN_OR_RETURN(const VtChain chain, DrawChain(false, size, streams_));
    return Build(context_.parts.head, chain, size);
  }

  absl::StatusOr<Sample> Probe(int64_t size) override {
    IHA_ASSIGN_OR_RETURN(Sample sample, Estimate(size));
    sample.tokens += example_tokens_;
    return sample;
  }

  absl::StatusOr<Sample> Attempt(int64_t size) override {
    IHA_ASSIGN_OR_RETURN(const VtChain chain, DrawChain(false, size, streams_));
    return Build(WithExample(context_.parts.head, VariedExample()), chain, size);
  }

 private:
  Sample Build(const std::string& head, const VtChain& chain, int64_t size) {
    return BuildVtPrompt(head, context_.parts.tail, chain, size, noise_, context_.counter);
  }

  // Every name of the example replaced by a new one, wherever its letters stand; then its value.
  std::string VariedExample() {
    std::string varied = example_;
    for (const std::string& name : names_) {
      varied = Replaced(varied, name, streams_.letters.Choices(kUpperCase, static_cast<int>(name.size())));
    }
    return Replaced(varied, kExampleValue, streams_.DrawValue());
  }

  TaskContext context_;
  Streams streams_;
  const CountedPiece noise_;
  std::vector<std::string> names_;  // of the example
  std::string example_;
  int64_t example_tokens_ = 0;
};

}  // namespace

std::vector<std::string> ChainLines(const std::vector<std::string>& names, const std::string& value) {
  std::vector<std::string> lines = {fmt::format("VAR {} = {}", names[0], value)};
  for (size_t j = 1; j < names.size(); ++j) lines.push_back(fmt::format("VAR {} = VAR {} ", names[j], names[j - 1]));
  return lines;
}

void AppendChain(int64_t lines, const std::vector<std::string>& chain, const std::vector<int32_t>& at,
                 const CountedPiece& noise, CountedText& text) {
  size_t next = 0;
  for (int64_t j = 0; j < lines; ++j) {
    if (j > 0) text.Append("\n");
    for (; next < chain.size() && at[next] == j; ++next) {
      text.Append(chain[next]);
      text.Append("\n");
    }
    text.Append(noise);
  }
}

Sample BuildVtPrompt(const std::string& head, const std::string& tail, const VtChain& chain, int64_t lines,
                     const CountedPiece& noise, TokenCounter& counter) {
  CountedText text(counter);
  text.Append(head);
  AppendChain(lines, ChainLines(chain.names, chain.value), chain.at, noise, text);
  text.Append(VtTail(tail, chain.value));
  Sample sample;
  sample.tokens = text.Tokens();
  sample.text = std::move(text).Take();
  sample.outputs = chain.names;
  return sample;
}

std::string VtTail(const std::string& tail, const std::string& value) {
  return Replaced(Replaced(tail, "{query}", value), "{num_v}", std::to_string(kChainNames));
}

std::string WithExample(const std::string& head, const std::string& example) {
  const size_t at = head.find("Memorize and track t");
  return head.substr(0, at) + example + "\n" + head.substr(at);
}

absl::StatusOr<std::unique_ptr<RowStream>> VtStream(const TaskContext& context) {
  return MakeSearchedStream(std::make_unique<VtSampler>(context), context.MakeBudget(context.short_form() ? 5 : 10),
                            "lines");
}

}  // namespace iha::benchmarks::ruler
