// niah.h: needles in a haystack: what official and seeded rows of the eight niah tasks are both made of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/python_random.h"
#include "benchmarks/ruler/haystack.h"
#include "benchmarks/ruler/task_rows.h"
#include "benchmarks/ruler/words.h"

namespace iha::benchmarks::ruler {

std::string NeedleLine(const NiahParameters& parameters, std::string_view key, std::string_view value);
// What the task's keys are drawn from; null: uuids, of no list. Errors of Texts::Words.
absl::StatusOr<std::shared_ptr<const KeyList>> KeysOf(const Task& task, Texts& texts);
std::string DrawKey(const KeyList* keys, PythonRandom& random);
std::string DrawValue(const NiahParameters& parameters, PythonRandom& random);

// Depths of needles in percent of an essay's sentences.
inline constexpr int kDepths[] = {0,  3,  5,  8,  10, 13, 15, 18, 21, 23, 26, 28, 31, 33, 36, 38, 41, 44, 46, 49,
                                  51, 54, 56, 59, 62, 64, 67, 69, 72, 74, 77, 79, 82, 85, 87, 90, 92, 95, 97, 100};

// Needles between sentences, at `depths` (indices of kDepths, any order; needles go to ascending depths).
void AppendEssay(const Haystack& essays, int64_t words, const std::vector<std::string>& needles,
                 const std::vector<int32_t>& depths, CountedText& text);
// Needles between lines: needle i before the line of index at[i]; `at` descends. Line j is line(j).
template <class Line>
void AppendLines(int64_t lines, const std::vector<std::string>& needles, const std::vector<int32_t>& at, Line line,
                 CountedText& text) {
  size_t left = needles.size();
  for (int64_t j = 0; j < lines; ++j) {
    if (j > 0) text.Append("\n");
    for (; left > 0 && at[left - 1] == j; --left) {
      text.Append(needles[left - 1]);
      text.Append("\n");
    }
    text.Append(line(j));
  }
}

// The queried keys as the prompt names them.
std::string QueryText(const std::vector<std::string>& keys);
// The sample of a finished text; where the first reference lies is only looked up for rows.
Sample FinishNiah(const TaskContext& context, CountedText text, std::vector<std::string> outputs, bool as_row);

}  // namespace iha::benchmarks::ruler
