// request.h: what the engine is asked for, and what it answers. Plain values; thread: any.
//
// A generation draws tokens after `prompt`; a scoring request (`continuation` not empty) draws nothing and reports the
// log-probability of each given token. Everything that decides a result's bits stands in the request: not the batch,
// the chunking, the cache, the budget or the order of arrival (ENG-1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/eval_types.h"

namespace iha::engine {

// One request of one engine, numbered in order of Submit from 0; never reused. Lower = older = served first.
enum class SequenceId : int64_t {};

struct GenerationRequest {
  std::vector<int32_t> prompt;  // at least one id
  SamplingParams sampling;      // `samples` is not read: one request is one sample
  int32_t sample_index = 0;     // with seed and prompt: key of the random stream (StreamKeyOf)
  std::vector<std::string> stops;
  std::vector<int32_t> eos;        // drawing one of these ends the generation
  bool ignore_eos = false;         // eos ids are drawn and kept like any other
  int32_t min_new_tokens = 0;      // eos ids are not drawn before this many tokens (stop strings still end it)
  std::vector<int32_t> allowed;    // when not empty: nothing else is drawn
  std::vector<int32_t> forbidden;  // never drawn
  bool logprobs = false;           // fill GenerationResult::scores
  int32_t top_logprobs = 0;        // with `logprobs`: also this many best ids of each position

  std::vector<int32_t> continuation;  // scoring: log-probabilities of these ids after `prompt`
};

struct TokenLogprob {
  int32_t id = 0;
  double logprob = 0;  // natural log, of the softmax of the raw logits: before temperature, masks, top-k and top-p
  bool operator==(const TokenLogprob&) const = default;
};

struct TokenScore {
  TokenLogprob token;
  bool greedy = false;            // the id is the argmax of the raw logits
  std::vector<TokenLogprob> top;  // best first, ties by lowest id
  bool operator==(const TokenScore&) const = default;
};

struct GenerationResult {
  SequenceId id{};
  // OK, or why there is no result: Cancelled; DataLoss (NaN logits, with the position); Internal (broken invariant);
  // ResourceExhausted (the backend ran out of memory with this sequence alone). The other fields are then partial.
  absl::Status status;
  std::vector<int32_t> tokens;  // every token drawn: eos and those that completed a stop string included
  std::string text;             // cut exactly before the stop string; never re-tokenised
  FinishReason finish = FinishReason::kUnspecified;  // kLength for scoring
  int32_t prompt_tokens = 0;
  std::vector<TokenScore> scores;  // one a token of `tokens` if asked for; one a token of `continuation` when scoring
  double sum_logprob = 0;          // of `scores`, added in order
};

}  // namespace iha::engine
