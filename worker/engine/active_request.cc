#include "worker/engine/active_request.h"

#include <algorithm>
#include <utility>

#include "common/errors.h"
#include "common/rng.h"
#include "common/status_macros.h"
#include "worker/engine/positions.h"

namespace iha::engine {

ActiveRequest::ActiveRequest(SequenceId id, GenerationRequest request, std::unique_ptr<TextDecoder> decoder,
                             ResultCallback on_done)
    : request_(std::move(request)),
      stream_key_(StreamKeyOf(request_.sampling.seed, request_.sample_index, request_.prompt)),
      on_done_(std::move(on_done)),
      decoder_(std::move(decoder)),
      text_(request_.stops) {
  result_.id = id;
  result_.prompt_tokens = static_cast<int32_t>(request_.prompt.size());
}

NewSequence ActiveRequest::ToSequence() const {
  NewSequence sequence;
  sequence.id = result_.id;
  sequence.tokens = request_.prompt;
  sequence.prompt_tokens = static_cast<int64_t>(request_.prompt.size());
  sequence.first_logit = sequence.prompt_tokens - 1;
  // The last token drawn, or given, is never computed.
  if (scoring()) {
    sequence.tokens.insert(sequence.tokens.end(), request_.continuation.begin(), request_.continuation.end() - 1);
    sequence.max_positions = static_cast<int64_t>(sequence.tokens.size());
  } else {
    sequence.max_positions = PositionsOf(sequence.prompt_tokens, request_.sampling.max_new_tokens);
  }
  return sequence;
}

absl::StatusOr<SegmentOutcome> ActiveRequest::OnLogits(int64_t position, std::span<const float> logits,
                                                       Sampler& sampler) {
  auto outcome = scoring() ? ScoreNext(position, logits, sampler) : Draw(logits, sampler);
  if (!outcome.ok()) return Annotate(outcome.status(), fmt::format("position {}", position));
  return outcome;
}

DrawRules ActiveRequest::NextRules() const {
  DrawRules rules;
  rules.temperature = request_.sampling.temperature;
  rules.top_k = request_.sampling.top_k;
  rules.top_p = request_.sampling.top_p;
  rules.allowed = request_.allowed;
  rules.forbidden = request_.forbidden;
  if (result_.tokens.size() < static_cast<size_t>(request_.min_new_tokens)) rules.also_forbidden = request_.eos;
  return rules;
}

model::RowDraw ActiveRequest::NextDraw() const {
  if (scoring() || request_.logprobs) return {};
  return {.draw = true, .rules = NextRules(), .uniform = UniformAt(stream_key_, result_.tokens.size())};
}

absl::StatusOr<SegmentOutcome> ActiveRequest::Draw(std::span<const float> logits, Sampler& sampler) {
  const double uniform = UniformAt(stream_key_, result_.tokens.size());
  IHA_ASSIGN_OR_RETURN(const int32_t token, sampler.Draw(logits, NextRules(), uniform));
  if (request_.logprobs) {
    IHA_ASSIGN_OR_RETURN(TokenScore score, sampler.Score(logits, token, request_.top_logprobs));
    result_.sum_logprob += score.token.logprob;
    result_.scores.push_back(std::move(score));
  }
  return OnToken(token);
}

SegmentOutcome ActiveRequest::OnToken(int32_t token) {
  const std::optional<FinishReason> end = Accept(token);
  SegmentOutcome outcome;
  outcome.sequence = result_.id;
  outcome.finished = end.has_value();
  outcome.has_token = true;
  outcome.token = token;
  if (end.has_value()) result_.finish = *end;
  return outcome;
}

std::optional<FinishReason> ActiveRequest::Accept(int32_t token) {
  result_.tokens.push_back(token);
  const bool is_eos = !request_.ignore_eos && std::ranges::find(request_.eos, token) != request_.eos.end();
  if (!is_eos && text_.Append(decoder_->Push(token))) return FinishReason::kStop;
  const bool is_last = static_cast<int64_t>(result_.tokens.size()) >= request_.sampling.max_new_tokens;
  if (!is_eos && !is_last) return std::nullopt;
  // What the decoder held back may complete a stop string too; an eos still ends for being an eos.
  const bool stopped = text_.Append(decoder_->Finish());
  if (is_eos) return FinishReason::kEos;
  return stopped ? FinishReason::kStop : FinishReason::kLength;
}

absl::StatusOr<SegmentOutcome> ActiveRequest::ScoreNext(int64_t position, std::span<const float> logits,
                                                        Sampler& sampler) {
  const size_t index = static_cast<size_t>(position + 1) - request_.prompt.size();
  IHA_ASSIGN_OR_RETURN(TokenScore score, sampler.Score(logits, request_.continuation[index], request_.top_logprobs));
  result_.sum_logprob += score.token.logprob;
  result_.scores.push_back(std::move(score));
  SegmentOutcome outcome;
  outcome.sequence = result_.id;
  outcome.finished = index + 1 == request_.continuation.size();
  if (outcome.finished) result_.finish = FinishReason::kLength;
  return outcome;
}

GenerationResult ActiveRequest::TakeResult(absl::Status status) {
  result_.status = std::move(status);
  result_.text = text_.TakeText();
  return std::move(result_);
}

}  // namespace iha::engine
