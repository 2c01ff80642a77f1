#include "benchmarks/ruler/niah.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "benchmarks/ruler/text.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

class NiahSampler : public SearchedSampler {
 public:
  NiahSampler(const TaskContext& context, std::shared_ptr<const KeyList> keys, std::shared_ptr<const Haystack> essays)
      : context_(context), keys_(std::move(keys)), random_(context.seed) {
    if (essays != nullptr) essays_ = *essays;
    noise_ = context_.counter.Measure(kNoiseLine);
  }

  absl::StatusOr<Sample> Probe(int64_t size) override { return Make(size, false); }
  absl::StatusOr<Sample> Attempt(int64_t size) override { return Make(size, true); }

 private:
  struct Needles {
    std::vector<std::string> keys;
    std::vector<std::vector<std::string>> values;  // of each key
    std::vector<std::string> lines;                // shuffled
  };

  const NiahParameters& parameters() const { return context_.task->niah; }

  Needles DrawNeedles() {
    Needles needles;
    for (int k = 0; k < parameters().keys; ++k) {
      needles.keys.push_back(DrawKey(keys_.get(), random_));
      needles.values.emplace_back();
      for (int v = 0; v < parameters().values; ++v) {
        needles.values.back().push_back(DrawValue(parameters(), random_));
        needles.lines.push_back(NeedleLine(parameters(), needles.keys.back(), needles.values.back().back()));
      }
    }
    ShuffleBySeed(context_.seed, needles.lines);
    return needles;
  }

  void AppendContext(int64_t size, const std::vector<std::string>& needles, CountedText& text) {
    const auto count = static_cast<int32_t>(needles.size());
    if (parameters().haystack == HaystackKind::kEssay) {
      const std::vector<int32_t> depths = random_.Sample(static_cast<int32_t>(std::size(kDepths)), count);
      if (size > essays_->words()) return AppendEssay(essays_->Repeated(size), size, needles, depths, text);
      essays_->CountTo(context_.counter, size);
      return AppendEssay(*essays_, size, needles, depths, text);
    }
    std::vector<std::string> drawn;
    if (parameters().haystack == HaystackKind::kNeedle) {
      for (int64_t i = 0; i < size; ++i) {
        const std::string key = DrawKey(keys_.get(), random_);
        drawn.push_back(NeedleLine(parameters(), key, DrawValue(parameters(), random_)));
      }
    }
    std::vector<int32_t> at = random_.Sample(static_cast<int32_t>(size), count);
    std::sort(at.rbegin(), at.rend());
    if (drawn.empty()) {
      AppendLines(
          size, needles, at, [&](int64_t) { return noise_; }, text);
    } else {
      const auto line = [&](int64_t j) { return std::string_view(drawn[static_cast<size_t>(j)]); };
      AppendLines(size, needles, at, line, text);
    }
  }

  Sample Make(int64_t size, bool as_row) {
    const Needles needles = DrawNeedles();
    CountedText text(context_.counter);
    text.Append(context_.parts.head);
    AppendContext(size, needles.lines, text);
    std::vector<std::string> queried, outputs;
    for (const int32_t k : random_.Sample(parameters().keys, parameters().queries)) {
      queried.push_back(needles.keys[static_cast<size_t>(k)]);
      const std::vector<std::string>& values = needles.values[static_cast<size_t>(k)];
      outputs.insert(outputs.end(), values.begin(), values.end());
    }
    text.Append(Replaced(context_.parts.tail, "{query}", QueryText(queried)));
    return FinishNiah(context_, std::move(text), std::move(outputs), as_row);
  }

  TaskContext context_;
  const std::shared_ptr<const KeyList> keys_;  // null: keys are uuids
  std::optional<Haystack> essays_;             // a copy: it keeps the counts of this tokenizer
  CountedPiece noise_;
  PythonRandom random_;
};

}  // namespace

std::string NeedleLine(const NiahParameters& parameters, std::string_view key, std::string_view value) {
  return fmt::format("One of the special magic {} for {} is: {}.", parameters.uuid_values ? "uuids" : "numbers", key,
                     value);
}

std::string DrawKey(const KeyList* keys, PythonRandom& random) {
  return keys == nullptr ? random.Uuid4() : keys->At(random.RandBelow(static_cast<uint32_t>(keys->size())));
}

absl::StatusOr<std::shared_ptr<const KeyList>> KeysOf(const Task& task, Texts& texts) {
  if (task.niah.uuid_keys) return nullptr;
  IHA_ASSIGN_OR_RETURN(const std::shared_ptr<const WordLists> words, texts.Words());
  return std::shared_ptr<const KeyList>(words, &words->keys);
}

std::string DrawValue(const NiahParameters& parameters, PythonRandom& random) {
  return parameters.uuid_values ? random.Uuid4() : std::to_string(random.RandInt(1000000, 9999999));
}

void AppendEssay(const Haystack& essays, int64_t words, const std::vector<std::string>& needles,
                 const std::vector<int32_t>& depths, CountedText& text) {
  const HaystackPrefix prefix = essays.Prefix(words);
  std::vector<size_t> at;
  for (const int32_t depth : depths) {
    // The quotient first: at 82 % of 150 sentences this order gives 122.
    const double part = kDepths[depth] / 100.0;
    at.push_back(static_cast<size_t>(static_cast<double>(prefix.sentences) * part));
  }
  std::sort(at.begin(), at.end());
  size_t from = 0;
  for (size_t i = 0; i < needles.size(); ++i) {
    text.Append(essays.Sentences(prefix, from, at[i]));
    text.Append(" ");
    text.Append(needles[i]);
    text.Append(" ");
    from = at[i];
  }
  text.Append(essays.Sentences(prefix, from, prefix.sentences));
}

std::string QueryText(const std::vector<std::string>& keys) {
  if (keys.size() == 1) return keys[0];
  std::string text;
  for (size_t i = 0; i + 1 < keys.size(); ++i) text += keys[i] + ", ";
  return text + "and " + keys.back();
}

Sample FinishNiah(const TaskContext& context, CountedText text, std::vector<std::string> outputs, bool as_row) {
  Sample sample;
  sample.tokens = text.Tokens();
  sample.outputs = std::move(outputs);
  if (as_row) {
    const std::string_view input = std::string_view(text.text()).substr(0, AnswerPrefixAt(*context.task, text.text()));
    const size_t at = input.find(sample.outputs[0]);
    if (at != std::string_view::npos) {
      sample.answer_at = CountCharacters(input.substr(0, at));
      sample.answer_token = text.TokensBefore(at);
    }
  }
  sample.text = std::move(text).Take();
  return sample;
}

absl::StatusOr<std::unique_ptr<RowStream>> NiahStream(const TaskContext& context, Texts& texts, Sentences sentences) {
  IHA_ASSIGN_OR_RETURN(std::shared_ptr<const KeyList> keys, KeysOf(*context.task, texts));
  std::shared_ptr<const Haystack> essays;
  if (context.task->needs_essays()) {
    IHA_ASSIGN_OR_RETURN(essays, texts.Essays(sentences));
  }
  const bool essay = essays != nullptr;
  const int64_t step = essay ? 500 : context.short_form() ? 5 : 25;
  auto sampler = std::make_unique<NiahSampler>(context, std::move(keys), std::move(essays));
  return MakeSearchedStream(std::move(sampler), context.MakeBudget(step), essay ? "words" : "lines");
}

}  // namespace iha::benchmarks::ruler
