#include "benchmarks/ruler/cwe.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

using WordRefs = std::vector<const std::string*>;

class CweSeededRows : public SeededRows {
 public:
  CweSeededRows(const TaskContext& context, std::shared_ptr<const WordLists> words,
                std::shared_ptr<const std::vector<std::string>> english)
      : context_(context), words_(std::move(words)), english_(std::move(english)) {}

  absl::StatusOr<Sample> Row(int64_t, PythonRandom random, TokenCounter& counter) const override {
    return RowFrom(words_->words, std::move(random), counter);
  }

 private:
  absl::StatusOr<Sample> RowFrom(const std::vector<std::string>& list, PythonRandom random,
                                 TokenCounter& counter) const {
    const CweRepeats example = CweExampleRepeats(context_.short_form());
    const WordRefs example_words = Draw(list, static_cast<size_t>(example.words), random);
    const WordRefs order = Draw(list, list.size(), random);
    NumberedList items(counter);
    const uint64_t shuffle = random.NextUint32();
    const auto build = [&](int64_t size) {
      CweRepeats main = CweListRepeats(context_.short_form());
      main.words = size;
      const WordRefs words(order.begin(), order.begin() + size);
      return BuildCwePrompt(context_.parts, example_words, example, words, main, shuffle, items, counter);
    };
    const auto most = static_cast<int64_t>(list.size());
    IHA_ASSIGN_OR_RETURN(const int64_t size, LargestSize(context_, static_cast<int64_t>(kCommonWords), most, "words",
                                                         [&](int64_t words) { return build(words).tokens; }));
    if (size < most || &list == english_.get()) return build(size);
    if (english_ != nullptr) return RowFrom(*english_, random, counter);
    return FailedPrecondition(
        "cwe at length {} needs more than the {} words of wonderwords; copy NVIDIA's english_words.json to "
        "ruler/english_words.json below the data root",
        context_.length, most);
  }

  static WordRefs Draw(const std::vector<std::string>& list, size_t count, PythonRandom& random) {
    WordRefs words;
    for (const int32_t i : random.Sample(static_cast<int32_t>(list.size()), static_cast<int32_t>(count))) {
      words.push_back(&list[static_cast<size_t>(i)]);
    }
    return words;
  }

  TaskContext context_;
  const std::shared_ptr<const WordLists> words_;
  const std::shared_ptr<const std::vector<std::string>> english_;  // null: the data root has none
};

}  // namespace

absl::StatusOr<std::unique_ptr<SeededRows>> CweSeeded(const TaskContext& context, Texts& texts) {
  IHA_ASSIGN_OR_RETURN(const std::shared_ptr<const WordLists> words, texts.Words());
  const auto english = texts.EnglishWords();
  if (!english.ok() && !absl::IsNotFound(english.status())) return english.status();
  return std::make_unique<CweSeededRows>(context, words, english.ok() ? *english : nullptr);
}

}  // namespace iha::benchmarks::ruler
