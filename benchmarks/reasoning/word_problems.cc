#include "benchmarks/reasoning/word_problems.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "benchmarks/free_text.h"
#include "benchmarks/graders/graders.h"
#include "benchmarks/options.h"
#include "benchmarks/python_random.h"
#include "common/canonical.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

constexpr std::string_view kShotDelimiter = "\n\n";

enum class Form { kPlain, kChat, kChatSingle };
enum class ExemplarRule { kFirstN, kPerItem, kLmEval };

struct Settings {
  BenchmarkRef ref;
  int32_t fewshot = 0;
  ExemplarRule rule = ExemplarRule::kFirstN;
  uint64_t seed = 0;
  Form form = Form::kPlain;
  std::string system;
  std::string template_date;
  FreeText answers;
};

absl::StatusOr<Settings> ReadSettings(const WordProblemProtocol& protocol, const BenchmarkRef& ref, int64_t pool_size) {
  const BenchmarkInfo& info = protocol.info;
  Settings settings;
  IHA_ASSIGN_OR_RETURN(settings.ref, WithDefaults(info, ref));
  IHA_ASSIGN_OR_RETURN(const int64_t fewshot, IntegerOption(settings.ref, "fewshot", 0, pool_size));
  settings.fewshot = static_cast<int32_t>(fewshot);
  IHA_ASSIGN_OR_RETURN(const int64_t seed,
                       IntegerOption(settings.ref, "fewshot_seed", 0, std::numeric_limits<int64_t>::max()));
  settings.seed = static_cast<uint64_t>(seed);
  IHA_ASSIGN_OR_RETURN(const std::string rule,
                       ChoiceOption(settings.ref, "exemplars", {"first_n", "per_item", "lm_eval"}));
  settings.rule = rule == "first_n"    ? ExemplarRule::kFirstN
                  : rule == "per_item" ? ExemplarRule::kPerItem
                                       : ExemplarRule::kLmEval;
  IHA_ASSIGN_OR_RETURN(const std::string form, ChoiceOption(settings.ref, "prompt", {"plain", "chat", "chat_single"}));
  settings.form = form == "plain" ? Form::kPlain : form == "chat" ? Form::kChat : Form::kChatSingle;
  settings.answers.stops = protocol.stops;
  IHA_ASSIGN_OR_RETURN(settings.answers.strip_thinking, StripsThinking(settings.ref, settings.form != Form::kPlain));
  settings.system = settings.ref.options.at("system");
  IHA_ASSIGN_OR_RETURN(settings.template_date, DayOption(settings.ref, kTemplateDateOption));
  return settings;
}

std::string StrippedFinalPart(const std::string& answer) {
  const size_t mark = answer.rfind("####");
  std::string part = mark == std::string::npos ? answer : answer.substr(mark + 4);
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = part.find_first_not_of(kSpace);
  if (begin == std::string::npos) return "";
  return part.substr(begin, part.find_last_not_of(kSpace) - begin + 1);
}

class WordProblemBenchmark final : public Benchmark {
 public:
  WordProblemBenchmark(WordProblemProtocol protocol, Settings settings, std::unique_ptr<const ProblemPool> problems,
                       std::unique_ptr<const ProblemPool> exemplars, const Digest& data_digest,
                       std::shared_ptr<Graders> graders)
      : protocol_(std::move(protocol)),
        settings_(std::move(settings)),
        problems_(std::move(problems)),
        exemplars_(std::move(exemplars)),
        data_digest_(data_digest),
        graders_(std::move(graders)) {
    if (settings_.rule == ExemplarRule::kLmEval && settings_.fewshot > 0) DrawAsLmEval();
  }

  const BenchmarkInfo& info() const override { return protocol_.info; }
  const BenchmarkRef& ref() const override { return settings_.ref; }
  int64_t size() const override { return problems_->size(); }
  std::string ItemId(int64_t index) const override {
    std::string id = problems_->At(index).id;
    return id.empty() ? fmt::format("test/{}", index) : id;
  }
  Digest data_digest() const override { return data_digest_; }

  Prompt Render(int64_t index) const override {
    const WordProblem problem = problems_->At(index);
    std::vector<WordProblem> shots;
    for (const int32_t row : ExemplarRows(index, problem)) shots.push_back(exemplars_->At(row));
    Prompt prompt;
    prompt.stops = settings_.answers.GenerationStops();
    if (settings_.form == Form::kPlain) {
      prompt.text = settings_.system + Plain(shots, problem);  // no separator: as that tool does
      return prompt;
    }
    prompt.template_date = settings_.template_date;
    if (!settings_.system.empty()) prompt.messages.push_back({"system", settings_.system});
    if (settings_.form == Form::kChatSingle) {
      prompt.messages.push_back({"user", Plain(shots, problem)});
      return prompt;
    }
    for (WordProblem& shot : shots) {
      prompt.messages.push_back({"user", Question(shot)});
      prompt.messages.push_back({"assistant", std::move(shot.answer)});
    }
    prompt.messages.push_back({"user", Question(problem)});
    return prompt;
  }

  std::vector<std::vector<SampleGrade>> Grade(int64_t index, const std::vector<std::string>& texts,
                                              const std::vector<MetricInfo>& metrics) const override {
    return GradeTexts(*graders_, settings_.answers, texts, metrics, [&](const std::string& metric) {
      return metric == protocol_.solution_metric ? problems_->At(index).solution : Gold(index);
    });
  }

  std::string Gold(int64_t index) const override {
    std::string answer = problems_->At(index).answer;
    return protocol_.gold_is_final_part ? StrippedFinalPart(answer) : answer;
  }

 private:
  // random.Random(seed) once, then one sample() for each document in order: a single-process run of that tool.
  void DrawAsLmEval() {
    PythonRandom random(settings_.seed);
    for (int64_t i = 0; i < problems_->size(); ++i) {
      draws_.push_back(random.Sample(static_cast<int32_t>(exemplars_->size()), settings_.fewshot));
    }
  }

  std::vector<int32_t> ExemplarRows(int64_t index, const WordProblem& problem) const {
    if (settings_.fewshot == 0) return {};
    if (settings_.rule == ExemplarRule::kLmEval) return draws_[static_cast<size_t>(index)];
    // Where the pool holds the item itself one more is drawn, so that it can be left out.
    const int32_t drawn = settings_.fewshot + (protocol_.exemplars_are_items ? 1 : 0);
    std::vector<int32_t> rows;
    if (settings_.rule == ExemplarRule::kFirstN) {
      for (int32_t row = 0; row < drawn; ++row) rows.push_back(row);
    } else {
      // Seeded by the question's text, so that an item keeps its exemplars however the set is cut or ordered.
      const Digest key = CanonicalWriter("iha.exemplars", 1).Uint(settings_.seed).String(problem.question).Hash();
      rows = PythonRandom(key.Prefix64()).Sample(static_cast<int32_t>(exemplars_->size()), drawn);
    }
    if (protocol_.exemplars_are_items) std::erase(rows, static_cast<int32_t>(index));
    rows.resize(static_cast<size_t>(settings_.fewshot));
    return rows;
  }

  std::string Question(const WordProblem& problem) const {
    return protocol_.before_question + problem.question + protocol_.after_question;
  }

  std::string Plain(const std::vector<WordProblem>& shots, const WordProblem& problem) const {
    std::string text;
    for (const WordProblem& shot : shots) {
      text += Question(shot) + protocol_.target_delimiter + shot.answer;
      text += kShotDelimiter;
    }
    return text + Question(problem);
  }

  const WordProblemProtocol protocol_;
  const Settings settings_;
  const std::unique_ptr<const ProblemPool> problems_;
  const std::unique_ptr<const ProblemPool> exemplars_;
  const Digest data_digest_;
  const std::shared_ptr<Graders> graders_;
  std::vector<std::vector<int32_t>> draws_;  // ExemplarRule::kLmEval: of each item
};

}  // namespace

std::vector<OptionInfo> WordProblemOptions(const std::string& default_fewshot, const std::string& default_prompt) {
  return {
      {"exemplars", "first_n",
       "first_n: the pool's first rows for every item; per_item: seeded by the item's text; lm_eval: that tool's draw "
       "(one sample() a document, single process)"},
      {"fewshot", default_fewshot, "number of exemplars, 0 to the pool's size"},
      {"fewshot_seed", "1234", "seed of per_item and lm_eval (that tool's fewshot_random_seed)"},
      {"prompt", default_prompt, "plain; chat: exemplars as turns; chat_single: everything in one user turn"},
      {"system", "", "system instruction; plain puts it in front without a separator, as lm_eval does"},
      TemplateDateOption(),
      {"think", "auto",
       "strip: what stands before the last </think> is dropped for every metric, stops cut the rest; keep; auto: strip "
       "in the chat forms"},
  };
}

std::vector<MetricInfo> MetricsNamed(const std::vector<std::string>& names) {
  std::vector<MetricInfo> metrics;
  for (const std::string& name : names) {
    if (auto grader = Graders::Find(name); grader.ok()) metrics.push_back({name, grader->description, grader->pure});
  }
  return metrics;
}

absl::StatusOr<std::unique_ptr<const Benchmark>> MakeWordProblemBenchmark(
    WordProblemProtocol protocol, const BenchmarkRef& ref, std::unique_ptr<const ProblemPool> problems,
    std::unique_ptr<const ProblemPool> exemplars, const Digest& data_digest, std::shared_ptr<Graders> graders) {
  int64_t pool_size = exemplars == nullptr ? 0 : exemplars->size();
  if (protocol.exemplars_are_items) --pool_size;
  IHA_ASSIGN_OR_RETURN(Settings settings, ReadSettings(protocol, ref, pool_size));
  return std::make_unique<const WordProblemBenchmark>(std::move(protocol), std::move(settings), std::move(problems),
                                                      std::move(exemplars), data_digest, std::move(graders));
}

}  // namespace iha::benchmarks
