#include "worker/engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/backend.h"

namespace iha::engine {
namespace {

constexpr int64_t kBlock = model::kKvBlockTokens;

std::span<const int32_t> Prompt(const Sequence& sequence) {
  return std::span(sequence.tokens).first(static_cast<size_t>(sequence.prompt_tokens));
}

bool SamePrompt(const Sequence& a, const Sequence& b) {
  return a.prompt_tokens == b.prompt_tokens && a.prefix_hashes == b.prefix_hashes &&
         std::ranges::equal(Prompt(a), Prompt(b));
}

template <class Visit>
void ForEachBlock(const BlockTables& tables, const Visit& visit) {
  for (const std::vector<int32_t>& table : tables) {
    for (const int32_t block : table) {
      if (block != model::kNoKvBlock) visit(block);
    }
  }
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, int32_t kv_blocks, const std::vector<int64_t>& windows)
    : options_(options),
      groups_(windows, std::min(options.chunk_tokens, options.max_batch_tokens)),
      pool_(kv_blocks),
      cache_(&pool_, windows) {}

absl::Status Scheduler::Add(NewSequence request) {
  const int64_t need = MostBlocks(request.max_positions);
  if (need > pool_.total()) {
    return ResourceExhausted("KV cache: one sequence of {} tokens needs {} blocks of {} tokens, the budget has {}",
                             request.max_positions, need, kBlock, pool_.total());
  }
  Sequence sequence;
  sequence.id = request.id;
  sequence.prompt_tokens = request.prompt_tokens;
  sequence.max_positions = request.max_positions;
  sequence.prefix_hashes = PrefixHashes(request.tokens, request.prompt_tokens / kBlock);
  sequence.tokens = std::move(request.tokens);
  sequence.prompt_hash = PromptHash(Prompt(sequence));
  sequence.first_logit = request.first_logit;
  waiting_.insert(sequence.id);
  sequences_.emplace(sequence.id, std::move(sequence));
  return absl::OkStatus();
}

BatchPlan Scheduler::Schedule() {
  BatchPlan plan;
  const bool kept_all = GrowRunning(plan);
  PlanRunning(plan);
  if (kept_all) AdmitWaiting(plan);
  return plan;
}

std::optional<int32_t> Scheduler::AllocateBlock() {
  if (pool_.free() == 0) cache_.EvictOne();
  return pool_.TryAllocate();
}

bool Scheduler::GrowRunning(BatchPlan& plan) {
  const std::vector<SequenceId> oldest_first(running_.begin(), running_.end());
  for (const SequenceId id : oldest_first) {
    Sequence& sequence = sequences_.at(id);
    const int64_t tokens = static_cast<int64_t>(sequence.tokens.size());
    for (size_t group = 0; group < groups_.count(); group++) {
      const int64_t entries = groups_.Entries(group, sequence.computed, tokens);
      while (sequence.state == Sequence::State::kRunning &&
             static_cast<int64_t>(sequence.tables[group].size()) < entries) {
        if (const std::optional<int32_t> block = AllocateBlock()) {
          sequence.tables[group].push_back(*block);
          continue;
        }
        const SequenceId youngest = *running_.rbegin();
        plan.preempted.push_back(youngest);
        Preempt(sequences_.at(youngest));
      }
    }
  }
  return plan.preempted.empty();
}

void Scheduler::PlanRunning(BatchPlan& plan) {
  for (const bool decoding : {true, false}) {
    for (const SequenceId id : running_) {
      Sequence& sequence = sequences_.at(id);
      if ((sequence.remaining() == 1) == decoding) AddSegment(sequence, plan);
    }
  }
}

void Scheduler::AddSegment(Sequence& sequence, BatchPlan& plan) {
  int64_t count =
      std::min<int64_t>({sequence.remaining(), options_.chunk_tokens, options_.max_batch_tokens - plan.tokens});
  // Positions from first_logit on need a row each.
  const int64_t rows_left = options_.max_logit_rows - plan.logit_rows;
  const int64_t without_rows = std::max<int64_t>(0, sequence.first_logit - sequence.computed);
  count = std::min(count, without_rows + rows_left);
  if (count <= 0) return;
  PlannedSegment segment;
  segment.sequence = sequence.id;
  segment.start = sequence.computed;
  const auto begin = sequence.tokens.begin() + sequence.computed;
  segment.tokens.assign(begin, begin + count);
  for (const std::vector<int32_t>& table : sequence.tables) {
    segment.blocks.insert(segment.blocks.end(), table.begin(), table.begin() + BlocksFor(sequence.computed + count));
  }
  for (int64_t row = without_rows; row < count; row++) segment.logit_rows.push_back(static_cast<int32_t>(row));
  plan.tokens += count;
  plan.logit_rows += static_cast<int64_t>(segment.logit_rows.size());
  plan.segments.push_back(std::move(segment));
  sequence.in_flight = true;
}

void Scheduler::AdmitWaiting(BatchPlan& plan) {
  // What holds one sample back holds its siblings back too: of thousands that wait each step asks one.
  std::set<uint64_t> held;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    if (running() >= options_.max_sequences || plan.tokens >= options_.max_batch_tokens) return;
    Sequence& sequence = sequences_.at(*next++);  // admission removes it from waiting_
    if (held.contains(sequence.prompt_hash)) continue;
    const Admission admission = TryAdmit(sequence, plan);
    if (admission == Admission::kNoRoom) return;
    if (admission == Admission::kHeld) held.insert(sequence.prompt_hash);
  }
}

Scheduler::Admission Scheduler::TryAdmit(Sequence& sequence, BatchPlan& plan) {
  counters_.reuse_lookups++;
  Reuse reuse = FindReuse(sequence);
  if (reuse.hold) return Admission::kHeld;
  const int64_t tokens = static_cast<int64_t>(sequence.tokens.size());
  int64_t taken = 0, idle_taken = 0;
  ForEachBlock(reuse.full_blocks, [&](int32_t block) {
    taken++;
    idle_taken += pool_.refs(block) == 0 ? 1 : 0;
  });
  const int64_t fresh = MostBlocks(tokens) - taken;
  // A block of each group to spare while others run: a sequence admitted into the last one would be preempted at once.
  const int64_t spare = running_.empty() ? 0 : static_cast<int64_t>(groups_.count());
  if (fresh + spare > pool_.free() + pool_.idle() - idle_taken) return Admission::kNoRoom;

  // Before allocating: what is taken over must not be evicted, and the node of the match may be.
  if (options_.prefix_cache) cache_.Touch(reuse.match.node);
  ForEachBlock(reuse.full_blocks, [this](int32_t block) { pool_.AddRef(block); });
  sequence.tables = std::move(reuse.full_blocks);
  for (size_t group = 0; group < groups_.count(); group++) {
    std::vector<int32_t>& table = sequence.tables[group];
    const int64_t entries = groups_.Entries(group, reuse.tokens, tokens);
    while (static_cast<int64_t>(table.size()) < entries) table.push_back(*AllocateBlock());
    if (reuse.partial_blocks.empty()) continue;
    plan.copies.push_back({reuse.partial_blocks[group], table[static_cast<size_t>(reuse.tokens / kBlock)]});
    counters_.copied_blocks++;
  }
  sequence.computed = reuse.tokens;
  sequence.state = Sequence::State::kRunning;
  waiting_.erase(sequence.id);
  running_.insert(sequence.id);
  counters_.admissions++;
  counters_.reused_tokens += reuse.tokens;

  // Goes on where the cache ends, provided the path so far is the sequence's own blocks (ENG-5).
  sequence.publishing = options_.prefix_cache && HoldsPath(sequence, reuse.match);
  sequence.owns_path = sequence.publishing;
  sequence.node = reuse.match.node;
  sequence.published = reuse.match.blocks;
  if (options_.prefix_cache) {
    counters_.prefix_hit_blocks += reuse.match.blocks;
    counters_.prefix_lookup_blocks += static_cast<int64_t>(sequence.prefix_hashes.size());
  }
  AddSegment(sequence, plan);
  return Admission::kAdmitted;
}

bool Scheduler::HoldsPath(const Sequence& sequence, const PrefixCache::Match& match) const {
  for (size_t group = 0; group < groups_.count(); group++) {
    const std::vector<int32_t>& path = match.tables[group];
    if (!groups_.windowed(group) && !std::equal(path.begin(), path.end(), sequence.tables[group].begin())) return false;
  }
  return true;
}

Scheduler::Reuse Scheduler::FindReuse(const Sequence& sequence) const {
  Reuse reuse;
  reuse.full_blocks.resize(groups_.count());
  // The position of the first wanted logits must be computed, not taken over.
  const int64_t usable = std::min(sequence.prompt_tokens, sequence.first_logit);
  if (options_.prefix_cache) {
    reuse.match = cache_.Find(Prompt(sequence), usable / kBlock);
    reuse.full_blocks = reuse.match.tables;
    reuse.tokens = reuse.match.blocks * kBlock;
    reuse.hold = SharedPrefixIsComing(sequence, reuse.match.blocks);
  }
  if (!options_.share_samples) return reuse;
  for (const SequenceId id : running_) {
    const Sequence& sibling = sequences_.at(id);
    if (!SamePrompt(sequence, sibling)) continue;
    const int64_t ready = std::min(usable, sibling.computed);
    if (ready < usable) {
      reuse.hold = true;
      continue;
    }
    if (ready > reuse.tokens && !TakeOver(sibling, ready, reuse)) continue;
    reuse.hold = false;
    return reuse;
  }
  return reuse;
}

// False, and nothing is taken, when the sibling has let go of a block that rows from `tokens` on see.
bool Scheduler::TakeOver(const Sequence& sibling, int64_t tokens, Reuse& reuse) const {
  const int64_t full = tokens / kBlock;
  BlockTables tables(groups_.count());
  std::vector<int32_t> partial;
  for (size_t group = 0; group < groups_.count(); group++) {
    const std::vector<int32_t>& theirs = sibling.tables[group];
    const int64_t first = groups_.FirstBlock(group, tokens);
    // Blocks are let go in order: with the first, all are there.
    if (first < BlocksFor(tokens) && theirs[static_cast<size_t>(first)] == model::kNoKvBlock) return false;
    tables[group].assign(static_cast<size_t>(first), model::kNoKvBlock);
    tables[group].insert(tables[group].end(), theirs.begin() + first, theirs.begin() + full);
    if (tokens % kBlock != 0) partial.push_back(theirs[static_cast<size_t>(full)]);
  }
  reuse.tokens = tokens;
  reuse.full_blocks = std::move(tables);
  reuse.partial_blocks = std::move(partial);
  return true;
}

bool Scheduler::SharedPrefixIsComing(const Sequence& sequence, int64_t have_blocks) const {
  const int64_t usable = std::min(sequence.prompt_tokens, sequence.first_logit) / kBlock;
  for (const SequenceId id : running_) {
    const Sequence& other = sequences_.at(id);
    if (!other.publishing) continue;
    const auto& mine = sequence.prefix_hashes;
    const auto& theirs = other.prefix_hashes;
    const auto differ = std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end()).first;
    const int64_t common = std::min<int64_t>(usable, differ - mine.begin());
    if (common > have_blocks && other.computed < common * kBlock) return true;
  }
  return false;
}

void Scheduler::Update(const BatchPlan& plan, std::span<const SegmentOutcome> outcomes) {
  for (size_t i = 0; i < plan.segments.size(); i++) {
    const PlannedSegment& segment = plan.segments[i];
    Sequence& sequence = sequences_.at(segment.sequence);
    sequence.in_flight = false;
    if (sequence.cancelled) {
      Erase(sequence.id);
      continue;
    }
    sequence.computed += static_cast<int64_t>(segment.tokens.size());
    sequence.first_logit = std::max(sequence.first_logit, segment.logit_rows.empty() ? 0 : sequence.computed);
    Publish(sequence);
    ReleaseUnseen(sequence);
    if (outcomes[i].has_token) sequence.tokens.push_back(outcomes[i].token);
    if (outcomes[i].finished) Erase(sequence.id);
  }
}

void Scheduler::Publish(Sequence& sequence) {
  const int64_t full = std::min(sequence.computed, sequence.prompt_tokens) / kBlock;
  while (sequence.publishing && sequence.published < full) {
    const auto tokens = std::span(sequence.tokens).subspan(static_cast<size_t>(sequence.published * kBlock), kBlock);
    std::vector<int32_t> blocks;
    for (const std::vector<int32_t>& table : sequence.tables) {
      blocks.push_back(table[static_cast<size_t>(sequence.published)]);
    }
    std::optional<PrefixNode> node;
    if (sequence.owns_path) node = cache_.Insert(sequence.node, tokens, blocks);
    // Someone else's equal block got there first: what follows must not hang below a block that is not ours (ENG-5).
    sequence.owns_path = node.has_value();
    if (!node.has_value()) node = cache_.Refill(sequence.node, tokens, blocks);
    sequence.publishing = node.has_value();
    if (!node.has_value()) return;
    sequence.node = *node;
    sequence.published++;
  }
}

// After Publish: a block that is let go may stay with the prefix cache.
void Scheduler::ReleaseUnseen(Sequence& sequence) {
  for (size_t group = 0; group < groups_.count(); group++) {
    std::vector<int32_t>& table = sequence.tables[group];
    for (int64_t i = groups_.FirstBlock(group, sequence.computed) - 1; i >= 0; i--) {
      int32_t& block = table[static_cast<size_t>(i)];
      if (block == model::kNoKvBlock) break;  // so are all before it
      pool_.Release(block);
      block = model::kNoKvBlock;
    }
  }
}

void Scheduler::Abandon() {
  // All, not only those with a segment: a sequence admitted without one may still have lost its copy.
  const std::vector<SequenceId> all(running_.begin(), running_.end());
  for (const SequenceId id : all) {
    Sequence& sequence = sequences_.at(id);
    sequence.in_flight = false;
    if (sequence.cancelled) {
      Erase(id);
    } else {
      Preempt(sequence);
    }
  }
}

void Scheduler::Cancel(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  if (!found->second.in_flight) {
    Erase(id);
    return;
  }
  found->second.cancelled = true;
}

void Scheduler::ReleaseBlocks(Sequence& sequence) {
  // Last block first, so that the pool hands out a prefix's blocks last.
  for (const std::vector<int32_t>& table : sequence.tables) {
    for (auto block = table.rbegin(); block != table.rend(); ++block) {
      if (*block != model::kNoKvBlock) pool_.Release(*block);
    }
  }
  sequence.tables.clear();
}

void Scheduler::Preempt(Sequence& sequence) {
  ReleaseBlocks(sequence);
  sequence.computed = 0;
  sequence.publishing = false;
  sequence.owns_path = false;
  sequence.node = kPrefixRoot;
  sequence.published = 0;
  sequence.state = Sequence::State::kWaiting;
  running_.erase(sequence.id);
  waiting_.insert(sequence.id);
  counters_.preemptions++;
}

void Scheduler::Erase(SequenceId id) {
  ReleaseBlocks(sequences_.at(id));
  running_.erase(id);
  waiting_.erase(id);
  sequences_.erase(id);
}

absl::Status Scheduler::CheckTables(const Sequence& sequence) const {
  const int64_t number = static_cast<int64_t>(sequence.id);
  for (size_t group = 0; group < groups_.count(); group++) {
    const std::vector<int32_t>& table = sequence.tables[group];
    const int64_t entries = static_cast<int64_t>(table.size());
    if (BlocksFor(sequence.computed) > entries) {
      return Internal("ENG-2: sequence {} has {} positions in {} blocks", number, sequence.computed, entries);
    }
    for (int64_t i = 0; i < entries; i++) {
      const int32_t block = table[static_cast<size_t>(i)];
      if ((block == model::kNoKvBlock) != (i < groups_.FirstBlock(group, sequence.computed))) {
        return Internal("ENG-10: sequence {} with {} positions computed: block {} of group {} is {}", number,
                        sequence.computed, i, group, block);
      }
      // ENG-6: what may still be written is owned alone.
      if (i >= sequence.computed / kBlock && (pool_.refs(block) != 1 || pool_.cached(block))) {
        return Internal("ENG-6: sequence {} would write block {}, which is shared", number, block);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Scheduler::CheckInvariants() const {
  IHA_RETURN_IF_ERROR(pool_.CheckInvariants());
  IHA_RETURN_IF_ERROR(cache_.CheckInvariants());
  std::map<int32_t, int32_t> refs;
  for (const auto& [id, sequence] : sequences_) {
    const int64_t number = static_cast<int64_t>(id);
    const bool is_running = sequence.state == Sequence::State::kRunning;
    if (running_.contains(id) != is_running || waiting_.contains(id) == is_running) {
      return Internal("ENG-2: sequence {} is in the wrong queue", number);
    }
    if (is_running) IHA_RETURN_IF_ERROR(CheckTables(sequence));
    if (!is_running && (!sequence.tables.empty() || sequence.computed != 0)) {
      return Internal("ENG-2: waiting sequence {} holds blocks", number);
    }
    ForEachBlock(sequence.tables, [&refs](int32_t block) { refs[block]++; });
  }
  for (int32_t block = 0; block < pool_.total(); block++) {
    const auto found = refs.find(block);
    const int32_t expected = found == refs.end() ? 0 : found->second;
    if (pool_.refs(block) != expected) {
      return Internal("ENG-4: block {} has {} references, tables say {}", block, pool_.refs(block), expected);
    }
  }
  return absl::OkStatus();
}

}  // namespace iha::engine
