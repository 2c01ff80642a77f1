#include "benchmarks/ruler/cwe.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

using WordRefs = std::vector<const std::string*>;

constexpr int64_t kStep = 10, kFirstProbe = 4096;

class CweSampler : public SearchedSampler {
 public:
  CweSampler(const TaskContext& context, const std::vector<std::string>& words, Texts& texts)
      : context_(context), words_(words), texts_(texts), list_(context_.counter), random_(context.seed) {
    ShuffleBySeed(context.seed, words_);
  }

  absl::StatusOr<Sample> Probe(int64_t size) override {
    const CweRepeats example = CweExampleRepeats(context_.short_form());
    CweRepeats main = CweListRepeats(context_.short_form());
    main.words = size;
    IHA_ASSIGN_OR_RETURN(const WordRefs example_words, DrawWords(example.words));
    IHA_ASSIGN_OR_RETURN(const WordRefs words, DrawWords(main.words));
    return BuildCwePrompt(context_.parts, example_words, example, words, main, context_.seed, list_, context_.counter);
  }

 private:
  // random.sample of the words; of the longer list where they are too few.
  absl::StatusOr<WordRefs> DrawWords(int64_t count) {
    const std::vector<std::string>* list = &words_;
    if (count > static_cast<int64_t>(words_.size())) {
      if (english_ == nullptr) {
        absl::StatusOr<std::shared_ptr<const std::vector<std::string>>> english = texts_.EnglishWords();
        if (!english.ok()) {
          return Annotate(english.status(),
                          fmt::format("cwe at length {} looks at lists of {} words, more than the {} of "
                                      "wonderwords",
                                      context_.length, count, words_.size()));
        }
        english_ = *std::move(english);
      }
      list = english_.get();
      if (count > static_cast<int64_t>(list->size())) {
        return InvalidArgument("{} words are more than the {} of english_words.json", count, list->size());
      }
    }
    WordRefs words;
    for (const int32_t i : random_.Sample(static_cast<int32_t>(list->size()), static_cast<int32_t>(count))) {
      words.push_back(&(*list)[static_cast<size_t>(i)]);
    }
    return words;
  }

  TaskContext context_;
  std::vector<std::string> words_;
  Texts& texts_;
  std::shared_ptr<const std::vector<std::string>> english_;
  NumberedList list_;
  PythonRandom random_;
};

}  // namespace

CweRepeats CweExampleRepeats(bool short_form) {
  return short_form ? CweRepeats{.words = 20, .common = 3, .uncommon = 1}
                    : CweRepeats{.words = 40, .common = 10, .uncommon = 3};
}

CweRepeats CweListRepeats(bool short_form) {
  return short_form ? CweRepeats{.words = 0, .common = 6, .uncommon = 1}
                    : CweRepeats{.words = 0, .common = 30, .uncommon = 3};
}

void NumberedList::Append(const WordRefs& words, const CweRepeats& repeats, uint64_t seed, CountedText& text) {
  struct Word {
    std::string text;  // " word"
    int64_t tokens = 0;
  };
  const auto tokens_of = [&](const std::string& part) { return counter_->has_cuts() ? counter_->Behind(part) : 0; };
  std::vector<Word> parts;
  for (const std::string* word : words) {
    std::string part = " " + *word;
    const int64_t tokens = tokens_of(part);
    parts.push_back({std::move(part), tokens});
  }
  const size_t common = std::min(kCommonWords, parts.size());
  std::vector<const Word*> items;
  const auto repeat = [&](size_t begin, size_t end, int times) {
    for (int t = 0; t < times; ++t) {
      for (size_t i = begin; i < end; ++i) items.push_back(&parts[i]);
    }
  };
  repeat(0, common, repeats.common);
  repeat(common, parts.size(), repeats.uncommon);
  ShuffleBySeed(seed, items);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i == numbers_.size()) {
      std::string number = fmt::format(" {}.", i + 1);
      const int64_t tokens = tokens_of(number);
      numbers_.emplace_back(std::move(number), tokens);
    }
    if (i == 0) {
      text.Append("1.");
    } else {
      text.AppendPart(numbers_[i].first, numbers_[i].second);
    }
    text.AppendPart(items[i]->text, items[i]->tokens);
  }
}

Sample BuildCwePrompt(const PromptParts& parts, const WordRefs& example_words, const CweRepeats& example,
                      const WordRefs& words, const CweRepeats& main, uint64_t seed, NumberedList& list,
                      TokenCounter& counter) {
  CountedText text(counter);
  text.Append(parts.head);
  list.Append(example_words, example, seed, text);
  text.Append(parts.tail);
  text.Append(" " + CweAnswerText(example_words) + "\n");
  text.Append(parts.head);
  list.Append(words, main, seed, text);
  text.Append(parts.tail);
  Sample sample;
  sample.tokens = text.Tokens();
  sample.text = std::move(text).Take();
  for (size_t i = 0; i < std::min(kCommonWords, words.size()); ++i) sample.outputs.push_back(*words[i]);
  return sample;
}

std::string CweAnswerText(const WordRefs& words) {
  std::string text;
  for (size_t i = 0; i < std::min(kCommonWords, words.size()); ++i) {
    text += fmt::format("{}{}. {}", i == 0 ? "" : " ", i + 1, *words[i]);
  }
  return text;
}

absl::StatusOr<std::unique_ptr<RowStream>> CweStream(const TaskContext& context, Texts& texts) {
  IHA_ASSIGN_OR_RETURN(const std::shared_ptr<const WordLists> words, texts.Words());
  Budget budget = context.MakeBudget(kStep);
  budget.first_probe = kFirstProbe;
  budget.floor_rule = true;
  return MakeSearchedStream(std::make_unique<CweSampler>(context, words->words, texts), budget, "words");
}

}  // namespace iha::benchmarks::ruler
