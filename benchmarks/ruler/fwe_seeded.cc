#include "benchmarks/ruler/fwe.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

// Below this many words the third answer comes no more often than the word behind it.
constexpr int64_t kFewestWords = 100;

class FweSeededRows : public SeededRows {
 public:
  explicit FweSeededRows(const TaskContext& context) : context_(context) {}

  absl::StatusOr<Sample> Row(int64_t, PythonRandom random, TokenCounter& counter) const override {
    const int64_t vocabulary_size = CodedVocabulary(context_.length - context_.task->tokens_to_generate);
    if (vocabulary_size < kFewestCodedWords) {
      return InvalidArgument("length {} is too short for a vocabulary of {} coded words", context_.length,
                             kFewestCodedWords);
    }
    const uint64_t shuffle = random.NextUint32();
    const std::vector<std::string> vocabulary = DrawCodedWords(vocabulary_size, shuffle, random);
    const auto build = [&](int64_t words) {
      return BuildCodedText(context_.parts, vocabulary, words, shuffle, counter);
    };
    // The counts of all ranks together are a little less than the size.
    IHA_ASSIGN_OR_RETURN(const int64_t words, LargestSize(context_, kFewestWords, 2 * context_.length, "words",
                                                          [&](int64_t size) { return build(size).tokens; }));
    return build(words);
  }

 private:
  TaskContext context_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SeededRows>> FweSeeded(const TaskContext& context) {
  return std::make_unique<FweSeededRows>(context);
}

}  // namespace iha::benchmarks::ruler
