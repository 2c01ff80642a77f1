// item_work.h: one item of a lease, from its prompt to the result that is committed. Pure, but for the template helper
// behind the encoder.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"
#include "benchmarks/prompt_encoder.h"
#include "benchmarks/scoring/choice_scores.h"
#include "common/coordinator_api.h"
#include "common/eval_types.h"

namespace iha::worker {

// An item being worked on: k samples of one prompt, or the scores of its choices, which make one sample.
struct ItemWork {
  int64_t index = 0;
  std::vector<int32_t> prompt;             // of what is drawn
  std::vector<Continuation> choices = {};  // of what is scored
  std::vector<std::string> stops;
  // kPromptTooLong: prompt + max_new_tokens, or a choice behind its context, exceed the model's context by more than
  // the last token, which is never run. Or why the benchmark has no such item. Nothing below is filled in then.
  Unscored unscored = Unscored::kScored;
  std::vector<GenKey> keys;                                      // one a sample
  std::vector<std::optional<Generation>> samples;                // in sample order
  std::vector<bool> fresh;                                       // generated here: to be put before the commit
  std::vector<std::optional<scoring::ChoiceScore>> scores = {};  // one a choice
  size_t wanted = 0;                                             // the first so many samples are needed, so far

  // Every sample that is wanted is there.
  bool complete() const;
  // Takes in the score of a choice; with the last one the item's sample is there.
  void AddScore(size_t choice, const scoring::ChoiceScore& score);
};

// Renders and tokenises item `index`, and names its generations, or its scores. Errors: those of PromptEncoder.
absl::StatusOr<ItemWork> PrepareItem(const LeaseGrant& grant, const benchmarks::Benchmark& benchmark,
                                     benchmarks::PromptEncoder& encoder, const std::vector<int32_t>& eos,
                                     int64_t context_tokens, int64_t index);

// Of a complete item whose entry stops settled votes: wants more samples while a vote may still change, and drops those
// behind the last that is wanted. Others want all of theirs from the start.
absl::Status WantUntilSettled(const JobSpec& job, const benchmarks::Benchmark& benchmark, ItemWork& work);

// Grades `result` anew, generations that are among `stored` by the text that is stored, and computes the values again.
// `texts`: what its samples were graded by. For generations that another worker had put first, with another text.
// OutOfRange: by that text its votes take other samples than it has; the next attempt finds the text, and goes by it.
absl::Status RegradeFrom(const JobSpec& job, const benchmarks::Benchmark& benchmark,
                         const std::vector<Generation>& stored, std::vector<std::string> texts, ItemResult& result);

// Grades each sample and computes the item's values; one that was not run is unscored, for its reason.
absl::StatusOr<ItemResult> FinishItem(const JobSpec& job, const benchmarks::Benchmark& benchmark, const ItemWork& work);

}  // namespace iha::worker
