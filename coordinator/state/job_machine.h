// job_machine.h: a job's state, derived from facts that the store holds; only the cancel mark is stored.
//
//   WAITING_FOR_MODEL --bound--> RUNNING --all shards final--> DONE
//   any open state --cancel--> CANCELLING --all shards final--> CANCELLED
//
// Pure functions; thread: any. A test folds Next over event sequences and compares with Derive.
#pragma once

#include <array>
#include <optional>

namespace iha::coordinator {

enum class JobState { kWaitingForModel, kRunning, kCancelling, kDone, kCancelled };
inline constexpr std::array kJobStates = {JobState::kWaitingForModel, JobState::kRunning, JobState::kCancelling,
                                          JobState::kDone, JobState::kCancelled};

enum class JobEvent {
  kModelBound,   // a worker offered the model, its digests are bound
  kCancel,       // its sweep was cancelled
  kShardsFinal,  // no shard is PENDING or LEASED any more
};
inline constexpr std::array kJobEvents = {JobEvent::kModelBound, JobEvent::kCancel, JobEvent::kShardsFinal};

struct JobFacts {
  bool model_bound = false;
  bool cancel_requested = false;
  bool open_shards = true;  // some shard is PENDING or LEASED
};

// The state after `event`; nullopt when the event cannot happen in `state`.
std::optional<JobState> Next(JobState state, JobEvent event);
JobState Derive(const JobFacts& facts);

// As JobProgress::state shows it: "waiting_for_model", "running", "done", "cancelled" (also while cancelling: nothing
// that lands late is accepted any more).
const char* NameOf(JobState state);

}  // namespace iha::coordinator
