// fwe.h: coded words whose counts fall as the square of their rank, which official and seeded rows of fwe are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/ruler/task_rows.h"

namespace iha::benchmarks::ruler {

inline constexpr int64_t kFewestCodedWords = 4;  // of a vocabulary: the noise and three answers

// Distinct words of six letters by rank, the first one replaced by the noise "...".
std::vector<std::string> DrawCodedWords(int64_t count, uint64_t seed, PythonRandom& random);
// A prompt with about `size` words. `vocabulary` has at least four.
Sample BuildCodedText(const PromptParts& parts, const std::vector<std::string>& vocabulary, int64_t size, uint64_t seed,
                      TokenCounter& counter);
// Words in a vocabulary of this many tokens' text.
inline int64_t CodedVocabulary(int64_t limit) { return limit / 50; }

}  // namespace iha::benchmarks::ruler
