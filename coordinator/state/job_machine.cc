#include "coordinator/state/job_machine.h"

namespace iha::coordinator {
namespace {

struct Move {
  JobState from;
  JobEvent event;
  JobState to;
};
using enum JobState;
constexpr Move kMoves[] = {
    {kWaitingForModel, JobEvent::kModelBound, kRunning},
    {kWaitingForModel, JobEvent::kCancel, kCancelling},
    {kRunning, JobEvent::kCancel, kCancelling},
    {kRunning, JobEvent::kShardsFinal, kDone},
    {kCancelling, JobEvent::kCancel, kCancelling},
    {kCancelling, JobEvent::kModelBound, kCancelling},
    {kCancelling, JobEvent::kShardsFinal, kCancelled},
    {kDone, JobEvent::kCancel, kDone},  // too late: finished work stays finished
    {kCancelled, JobEvent::kCancel, kCancelled},
};

}  // namespace

std::optional<JobState> Next(JobState state, JobEvent event) {
  for (const Move& move : kMoves) {
    if (move.from == state && move.event == event) return move.to;
  }
  return std::nullopt;
}

JobState Derive(const JobFacts& facts) {
  if (facts.cancel_requested) return facts.open_shards ? kCancelling : kCancelled;
  if (!facts.open_shards) return kDone;
  return facts.model_bound ? kRunning : kWaitingForModel;
}

const char* NameOf(JobState state) {
  switch (state) {
    case kWaitingForModel:
      return "waiting_for_model";
    case kRunning:
      return "running";
    case kDone:
      return "done";
    case kCancelling:
    case kCancelled:
      return "cancelled";
  }
  return "?";
}

}  // namespace iha::coordinator
