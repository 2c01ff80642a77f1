// scheduler.h: which tokens run in the next step. State in, BatchPlan out: no model, thread, clock or randomness, so
// the same calls give the same plans. Belongs to one thread.
//
//   Add -> waiting -> (admitted) running -> Update{finished} -> gone
//             ^___________ preempted _|        Cancel from anywhere
//
// Policy, in the order in which Schedule applies it:
//   1. Every running sequence gets the blocks its next positions need, oldest first; without a free or idle block the
//      youngest running sequence is preempted: it loses its blocks and will be computed again (ENG-3: same output).
//   2. Tokens of the step: decodes first (one token each), then prompts being computed, oldest first, in chunks.
//   3. Admission in order of arrival while slots, blocks and budget last; none in a step that preempted. A waiting
//      sequence takes over what is computed already: full blocks by reference, a running sibling's last partial block
//      by copy. It is held back while a running prompt is about to compute more of what they share; the others pass it.
// Errors: ResourceExhausted (Add: the sequence can never fit), Internal (a broken invariant).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/batch_plan.h"
#include "worker/engine/kv_block_pool.h"
#include "worker/engine/prefix_cache.h"
#include "worker/engine/sequence.h"

namespace iha::engine {

// None of these changes a result (ENG-1). All limits are at least 1.
struct SchedulerOptions {
  int32_t max_batch_tokens = 512;  // of one step, over all sequences
  int32_t max_sequences = 64;      // running at once
  int32_t chunk_tokens = 256;      // of one sequence in one step
  int32_t max_logit_rows = 128;    // of one step: vocab_size floats each
  bool prefix_cache = true;        // keep prompts' full blocks for later prompts
  bool share_samples = true;       // samples of one prompt share its computation
};

struct SchedulerCounters {
  int64_t admissions = 0;
  int64_t preemptions = 0;
  int64_t reused_tokens = 0;         // positions taken over at admission instead of computed
  int64_t prefix_hit_blocks = 0;     // of them, full blocks found in the prefix cache
  int64_t prefix_lookup_blocks = 0;  // full blocks that admitted prompts have
  int64_t copied_blocks = 0;
  int64_t reuse_lookups = 0;  // waiting sequences that were compared with what is computed
};

class Scheduler {
 public:
  // `kv_blocks`: block ids are 0 .. kv_blocks - 1. `windows`: model::ModelInfo::kv_windows.
  Scheduler(const SchedulerOptions& options, int32_t kv_blocks, const std::vector<int64_t>& windows = {0});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Ids must grow. ResourceExhausted names the blocks needed and available; nothing is added then.
  absl::Status Add(NewSequence request);
  // Empty exactly when no sequence is left. The plan is in flight until Update or Abandon; one at a time.
  BatchPlan Schedule();
  // The plan was carried out. `outcomes` are in segment order, one for each segment.
  void Update(const BatchPlan& plan, std::span<const SegmentOutcome> outcomes);
  // The plan failed and may have been carried out in part: everything is preempted.
  void Abandon();
  // At most so many are admitted to run at once from now on, at least one (batch_limit.h). Those that run go on.
  void LimitSequences(int32_t max_sequences) { options_.max_sequences = std::max(1, max_sequences); }
  // Unknown ids are ignored (finished already). Not scheduled again; blocks are freed now, or by Update if in flight.
  void Cancel(SequenceId id);

  int32_t running() const { return static_cast<int32_t>(running_.size()); }
  int32_t waiting() const { return static_cast<int32_t>(waiting_.size()); }
  const KvBlockPool& pool() const { return pool_; }
  const SchedulerCounters& counters() const { return counters_; }
  const PrefixCache& prefix_cache() const { return cache_; }
  // That a sequence of so many positions holds at once at most.
  int64_t MostBlocks(int64_t positions) const { return groups_.MostBlocks(positions); }

  // ENG-2, ENG-4, ENG-5, ENG-6, ENG-10 and reference counts against the sequences' tables. O(state); for tests and
  // debug builds.
  absl::Status CheckInvariants() const;

 private:
  enum class Admission { kAdmitted, kHeld, kNoRoom };
  // What a waiting sequence can take over.
  struct Reuse {
    int64_t tokens = 0;
    BlockTables full_blocks;              // of the first tokens / 64 blocks, those that later rows see
    std::vector<int32_t> partial_blocks;  // of each group, to copy: its first tokens % 64 positions
    PrefixCache::Match match;             // what the prefix cache has of the prompt
    bool hold = false;                    // more of it is being computed right now
  };

  std::optional<int32_t> AllocateBlock();
  bool GrowRunning(BatchPlan& plan);  // false when something was preempted
  void PlanRunning(BatchPlan& plan);
  void AdmitWaiting(BatchPlan& plan);
  Admission TryAdmit(Sequence& sequence, BatchPlan& plan);
  Reuse FindReuse(const Sequence& sequence) const;
  bool TakeOver(const Sequence& sibling, int64_t tokens, Reuse& reuse) const;
  bool HoldsPath(const Sequence& sequence, const PrefixCache::Match& match) const;
  bool SharedPrefixIsComing(const Sequence& sequence, int64_t have_blocks) const;
  void AddSegment(Sequence& sequence, BatchPlan& plan);
  void Publish(Sequence& sequence);
  void ReleaseUnseen(Sequence& sequence);
  void ReleaseBlocks(Sequence& sequence);
  void Preempt(Sequence& sequence);
  void Erase(SequenceId id);
  absl::Status CheckTables(const Sequence& sequence) const;

  SchedulerOptions options_;  // max_sequences is the one of LimitSequences
  const KvGroups groups_;
  KvBlockPool pool_;
  PrefixCache cache_;
  std::map<SequenceId, Sequence> sequences_;
  std::set<SequenceId> waiting_;  // in order of arrival
  std::set<SequenceId> running_;  // in order of arrival
  SchedulerCounters counters_;
};

}  // namespace iha::engine
