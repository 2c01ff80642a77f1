// task_rows.h: what a task gives the generator: official rows in order, seeded rows each on its own. One file a family.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "benchmarks/python_random.h"
#include "benchmarks/ruler/budget.h"
#include "benchmarks/ruler/generate.h"
#include "benchmarks/ruler/templates.h"
#include "benchmarks/ruler/texts.h"
#include "benchmarks/ruler/token_counter.h"

namespace iha::benchmarks::ruler {

// What every maker of rows starts from. `task` is an entry of Tasks().
struct TaskContext {
  const Task* task = nullptr;
  int64_t length = 0;
  uint64_t seed = 0;
  PromptParts parts;
  TokenCounter counter;
  // Special tokens that encoding adds to a plain prompt: seeded rows leave room for them.
  int64_t reserved = 0;

  bool short_form() const { return length < 4096; }  // NVIDIA's smaller settings
  Budget MakeBudget(int64_t step) const {
    return {.length = length,
            .tokens_to_generate = task->tokens_to_generate,
            .step = step,
            .first_probe = step,
            .floor_rule = false};
  }
};

// NVIDIA's permutation of a list: a fresh generator of the run's seed each time, so that it depends on the size alone.
template <class T>
void ShuffleBySeed(uint64_t seed, std::vector<T>& list) {
  PythonRandom(seed).Shuffle(list);
}

// Official rows: one call a row, from row 0 on. After a RowsEnd or an error no further call. One thread.
using RowOrEnd = std::variant<Sample, RowsEnd>;
class RowStream {
 public:
  virtual ~RowStream() = default;
  // Errors: a data file that a row needs is missing or changed.
  virtual absl::StatusOr<RowOrEnd> Next() = 0;
};

// A task whose rows come from the size search. `unit` names what a size counts.
class SearchedSampler : public Sampler {
 public:
  // Called before a row is drawn. A text: the data has no such row, and why.
  virtual std::optional<std::string> BeginRow(int64_t) { return std::nullopt; }
  // Called once, before the size search. An error ends the task.
  virtual absl::Status Prepare() { return absl::OkStatus(); }
};
std::unique_ptr<RowStream> MakeSearchedStream(std::unique_ptr<SearchedSampler> sampler, const Budget& budget,
                                              std::string unit);

// Seeded rows: pure functions of the generator they are given. Immutable; thread: any (each with its own counter).
class SeededRows {
 public:
  virtual ~SeededRows() = default;
  // Row `number`. OutOfRange: the data has no such row. InvalidArgument: nothing fits (the least is named). Errors of
  // data files as Texts says.
  virtual absl::StatusOr<Sample> Row(int64_t number, PythonRandom random, TokenCounter& counter) const = 0;
};

// The largest size in [low, high] of which a sample fits into the context's length. `tokens_of(size)` is pure, and all
// but monotone. InvalidArgument: not even `low` fits.
template <class TokensOf>
absl::StatusOr<int64_t> LargestSize(const TaskContext& context, int64_t low, int64_t high, std::string_view unit,
                                    TokensOf tokens_of) {
  const int64_t room = context.length - context.task->tokens_to_generate - context.reserved;
  const int64_t smallest = low;
  while (low <= high) {
    const int64_t middle = low + (high - low) / 2;
    if (tokens_of(middle) <= room) {
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  for (; high >= smallest; --high) {
    if (tokens_of(high) <= room) return high;
  }
  return DoesNotFit(context, tokens_of(smallest), smallest, unit);
}
// InvalidArgument: `size` of `unit` take too many tokens.
absl::Status DoesNotFit(const TaskContext& context, int64_t tokens, int64_t size, std::string_view unit);

// Of each family. Errors: those of Texts.
absl::StatusOr<std::unique_ptr<RowStream>> NiahStream(const TaskContext& context, Texts& texts, Sentences sentences);
absl::StatusOr<std::unique_ptr<RowStream>> VtStream(const TaskContext& context);
absl::StatusOr<std::unique_ptr<RowStream>> CweStream(const TaskContext& context, Texts& texts);
absl::StatusOr<std::unique_ptr<RowStream>> FweStream(const TaskContext& context);
absl::StatusOr<std::unique_ptr<RowStream>> QaStream(const TaskContext& context, Texts& texts);

// `essays`: what niah tasks with essays hide their needles in; else unused.
absl::StatusOr<std::unique_ptr<SeededRows>> NiahSeeded(const TaskContext& context, Texts& texts,
                                                       std::shared_ptr<const Haystack> essays);
absl::StatusOr<std::unique_ptr<SeededRows>> VtSeeded(const TaskContext& context);
absl::StatusOr<std::unique_ptr<SeededRows>> CweSeeded(const TaskContext& context, Texts& texts);
absl::StatusOr<std::unique_ptr<SeededRows>> FweSeeded(const TaskContext& context);
absl::StatusOr<std::unique_ptr<SeededRows>> QaSeeded(const TaskContext& context, Texts& texts);

}  // namespace iha::benchmarks::ruler
