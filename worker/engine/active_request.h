// active_request.h: a request being served: its random stream, its text, its result so far. The counterpart of the
// scheduler's Sequence, which knows positions and blocks. Never undone by preemption: tokens once drawn stay.
// Belongs to the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "worker/engine/batch_plan.h"
#include "worker/engine/request.h"
#include "worker/engine/sampler.h"
#include "worker/engine/sequence.h"
#include "worker/engine/stop_matcher.h"
#include "worker/engine/text_decoder.h"

namespace iha::engine {

using ResultCallback = std::function<void(GenerationResult)>;

class ActiveRequest {
 public:
  // `decoder` is null for scoring requests.
  ActiveRequest(SequenceId id, GenerationRequest request, std::unique_ptr<TextDecoder> decoder, ResultCallback on_done);

  bool scoring() const { return !request_.continuation.empty(); }
  // Positions before this one are the prompt's, or were handed in to be scored; later ones were generated.
  int64_t given_positions() const {
    return static_cast<int64_t>(request_.prompt.size() + request_.continuation.size());
  }
  // What the scheduler is given.
  NewSequence ToSequence() const;

  // How its next token is drawn; of scoring requests and those that want log-probabilities: not, they need the logits.
  // Refers to the request.
  model::RowDraw NextDraw() const;
  // The token that was drawn by NextDraw.
  SegmentOutcome OnToken(int32_t token);
  // Logits of `position`, in increasing order of position. Errors are those of Sampler, with the position added; the
  // request is then over.
  absl::StatusOr<SegmentOutcome> OnLogits(int64_t position, std::span<const float> logits, Sampler& sampler);

  GenerationResult TakeResult(absl::Status status);
  const ResultCallback& on_done() const { return on_done_; }

 private:
  absl::StatusOr<SegmentOutcome> Draw(std::span<const float> logits, Sampler& sampler);
  DrawRules NextRules() const;
  absl::StatusOr<SegmentOutcome> ScoreNext(int64_t position, std::span<const float> logits, Sampler& sampler);
  // The reason to end after `token`, if any.
  std::optional<FinishReason> Accept(int32_t token);

  // Constant after construction.
  const GenerationRequest request_;
  const uint64_t stream_key_;
  const ResultCallback on_done_;

  std::unique_ptr<TextDecoder> decoder_;
  StopMatcher text_;
  GenerationResult result_;
};

}  // namespace iha::engine
