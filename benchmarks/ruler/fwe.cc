#include "benchmarks/ruler/fwe.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace iha::benchmarks::ruler {
namespace {

constexpr double kZeta2 = 1.6449340668482264;  // pi^2 / 6
constexpr std::string_view kLowerCase = "abcdefghijklmnopqrstuvwxyz";
constexpr int kLetters = 6;

class FweStreamRows : public RowStream {
 public:
  explicit FweStreamRows(const TaskContext& context)
      : context_(context), limit_(context.length - context.task->tokens_to_generate), random_(context.seed) {}

  absl::StatusOr<RowOrEnd> Next() override {
    const int64_t row = next_++;
    const int64_t step = limit_ / 32;
    if (step == 0 || CodedVocabulary(limit_) < kFewestCodedWords) {
      return DeadEndAt(row, fmt::format("{} tokens are too few for a coded text", limit_));
    }
    if (row == 0) FindSize(step);
    const std::vector<std::string> vocabulary = DrawVocabulary();
    for (int64_t size = size_;; size -= step) {
      Sample sample = BuildCodedText(context_.parts, vocabulary, size, context_.seed, context_.counter);
      if (sample.tokens <= limit_) return RowOrEnd(std::move(sample));
      if (size > 0) continue;
      const int64_t generated = context_.task->tokens_to_generate;
      return DeadEndAt(row, fmt::format("a prompt without any word takes {} tokens, {} to generate included; the "
                                        "length is {}",
                                        sample.tokens + generated, generated, context_.length));
    }
  }

 private:
  static RowOrEnd DeadEndAt(int64_t row, std::string cause) {
    return RowsEnd{EndKind::kGeneratorDeadEnd, row, std::move(cause)};
  }

  std::vector<std::string> DrawVocabulary() { return DrawCodedWords(CodedVocabulary(limit_), context_.seed, random_); }

  void FindSize(int64_t step) {
    const std::vector<std::string> vocabulary = DrawVocabulary();
    int64_t size = limit_ / 6;
    while (BuildCodedText(context_.parts, vocabulary, size, context_.seed, context_.counter).tokens < limit_) {
      size += step;
    }
    size_ = size - step;
  }

  TaskContext context_;
  const int64_t limit_;  // tokens of a prompt
  PythonRandom random_;
  int64_t next_ = 0;
  int64_t size_ = 0;  // words
};

}  // namespace

std::vector<std::string> DrawCodedWords(int64_t count, uint64_t seed, PythonRandom& random) {
  // For every word that comes twice one more is drawn.
  std::set<std::string> distinct;
  for (int64_t drawn = 0; drawn < count || static_cast<int64_t>(distinct.size()) < count; ++drawn) {
    distinct.insert(random.Choices(kLowerCase, kLetters));
  }
  std::vector<std::string> words(distinct.begin(), distinct.end());
  ShuffleBySeed(seed, words);
  words[0] = "...";
  return words;
}

Sample BuildCodedText(const PromptParts& parts, const std::vector<std::string>& vocabulary, int64_t size, uint64_t seed,
                      TokenCounter& counter) {
  struct Word {
    std::string text;  // " word"
    int64_t tokens = 0;
  };
  std::vector<Word> words;
  std::vector<uint32_t> items;  // of `words`
  words.reserve(vocabulary.size());
  for (size_t rank = 1; rank <= vocabulary.size(); ++rank) {
    const auto count =
        static_cast<int64_t>(static_cast<double>(size) * std::pow(static_cast<double>(rank), -2.0) / kZeta2);
    if (count <= 0) break;  // as for all ranks behind
    std::string text = " " + vocabulary[rank - 1];
    const int64_t tokens = counter.has_cuts() ? counter.Behind(text) : 0;
    words.push_back({std::move(text), tokens});
    items.insert(items.end(), static_cast<size_t>(count), static_cast<uint32_t>(rank - 1));
  }
  ShuffleBySeed(seed, items);
  CountedText text(counter);
  text.Append(parts.head);
  for (size_t i = 0; i < items.size(); ++i) {
    const Word& word = words[items[i]];
    if (i == 0) {
      text.Append(std::string_view(word.text).substr(1));
    } else {
      text.AppendPart(word.text, word.tokens);
    }
  }
  text.Append(parts.tail);
  Sample sample;
  sample.tokens = text.Tokens();
  sample.text = std::move(text).Take();
  sample.outputs.assign(vocabulary.begin() + 1, vocabulary.begin() + kFewestCodedWords);
  return sample;
}

absl::StatusOr<std::unique_ptr<RowStream>> FweStream(const TaskContext& context) {
  return std::make_unique<FweStreamRows>(context);
}

}  // namespace iha::benchmarks::ruler
