// cwe.h: numbered lists of common and uncommon words, which official and seeded rows of cwe are both made of.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/ruler/task_rows.h"

namespace iha::benchmarks::ruler {

inline constexpr size_t kCommonWords = 10;

// How often the words of a list come.
struct CweRepeats {
  int64_t words = 0;
  int common = 0;
  int uncommon = 0;
};
CweRepeats CweExampleRepeats(bool short_form);
// The main list's, but for the number of words.
CweRepeats CweListRepeats(bool short_form);

// "1. word 2. word ..." item by item, with the tokens of each item kept from list to list. One thread.
class NumberedList {
 public:
  explicit NumberedList(TokenCounter& counter) : counter_(&counter) {}
  // The first ten of `words` are the common ones; items are shuffled by the seed.
  void Append(const std::vector<const std::string*>& words, const CweRepeats& repeats, uint64_t seed,
              CountedText& text);

 private:
  TokenCounter* counter_;
  std::vector<std::pair<std::string, int64_t>> numbers_;  // " 1.", its tokens; by number - 1
};

// The example with its answer, then the main list; the first ten of `words` are the answers.
Sample BuildCwePrompt(const PromptParts& parts, const std::vector<const std::string*>& example_words,
                      const CweRepeats& example, const std::vector<const std::string*>& words, const CweRepeats& main,
                      uint64_t seed, NumberedList& list, TokenCounter& counter);
// "1. c1 2. c2 ... 10. c10"
std::string CweAnswerText(const std::vector<const std::string*>& words);

}  // namespace iha::benchmarks::ruler
