#include "coordinator/store/invariants.h"

#include <set>

#include "common/status_macros.h"

namespace iha::coordinator {
namespace {

int64_t Raw(ShardId id) { return static_cast<int64_t>(id); }

class Checker {
 public:
  Checker(ReadTxn& txn, const ItemValuesFn& item_values, std::vector<std::string>* violations)
      : txn_(txn), item_values_(item_values), violations_(*violations) {}

  absl::Status CheckAll() {
    IHA_ASSIGN_OR_RETURN(const std::vector<std::string> damage, txn_.DamagedPages());
    for (const std::string& line : damage) Violated("INV-FILE-1: {}", line);
    IHA_ASSIGN_OR_RETURN(const std::vector<SweepRecord> sweeps, txn_.Sweeps());
    for (const SweepRecord& sweep : sweeps) {
      IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn_.Jobs(sweep.id));
      IHA_ASSIGN_OR_RETURN(const std::vector<ModelBinding> bindings, txn_.Bindings(sweep.id));
      CheckPlan(sweep, jobs);
      for (const JobRecord& job : jobs) {
        IHA_ASSIGN_OR_RETURN(const std::vector<ShardRecord> shards, txn_.Shards(job.id));
        CheckPartition(job, shards);
        for (const ShardRecord& shard : shards) IHA_RETURN_IF_ERROR(CheckShard(sweep, job, shard, bindings));
        IHA_RETURN_IF_ERROR(CheckItems(job));
      }
    }
    return absl::OkStatus();
  }

 private:
  template <class... Args>
  void Violated(fmt::format_string<Args...> format, Args&&... args) {
    violations_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // INV-TAB-1 begins here: a sweep has one job for each cell, under the id of what it asks.
  void CheckPlan(const SweepRecord& sweep, const std::vector<JobRecord>& jobs) {
    if (IdOf(sweep.spec) != sweep.id) Violated("INV-TAB-1: sweep {}: its spec has another id", sweep.id.Hex());
    const size_t cells = sweep.spec.models.size() * sweep.spec.entries.size();
    if (jobs.size() != cells) Violated("INV-TAB-1: sweep {}: {} jobs for {} cells", sweep.id.Hex(), jobs.size(), cells);
    for (const JobRecord& job : jobs) {
      if (IdOf(job.spec) != job.id) Violated("INV-TAB-1: job {}: its spec has another id", job.id.Hex());
    }
  }

  // INV-SHARD-1: the live shards partition the items; so do a split shard's children its range.
  void CheckPartition(const JobRecord& job, const std::vector<ShardRecord>& shards) {
    std::vector<ItemRange> live;
    std::map<ShardId, std::vector<ItemRange>> children;
    for (const ShardRecord& shard : shards) {
      if (shard.state != ShardState::kSplit) live.push_back(shard.range);
      if (shard.parent.has_value()) children[*shard.parent].push_back(shard.range);
    }
    if (!Partitions(&live, {.begin = 0, .end = job.spec.items})) {
      Violated("INV-SHARD-1: job {}: its live shards do not partition its {} items", job.id.Hex(), job.spec.items);
    }
    for (const ShardRecord& shard : shards) {
      const bool split = shard.state == ShardState::kSplit;
      if (split != children.contains(shard.id) || (split && !Partitions(&children[shard.id], shard.range))) {
        Violated("INV-SHARD-1: shard {}: {}, but its children do not partition its range", Raw(shard.id),
                 NameOf(shard.state));
      }
    }
  }

  static bool Partitions(std::vector<ItemRange>* ranges, ItemRange whole) {
    std::sort(ranges->begin(), ranges->end());
    int64_t next = whole.begin;
    for (const ItemRange& range : *ranges) {
      if (range.begin != next) return false;
      next = range.end;
    }
    return next == whole.end;
  }

  absl::Status CheckShard(const SweepRecord& sweep, const JobRecord& job, const ShardRecord& shard,
                          const std::vector<ModelBinding>& bindings) {
    IHA_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> attempts, txn_.Attempts(shard.id));
    CheckAttempts(sweep, shard, attempts);
    if (!attempts.empty() && std::none_of(bindings.begin(), bindings.end(),
                                          [&](const ModelBinding& b) { return b.model == job.spec.model.name; })) {
      Violated("INV-LEASE-3: shard {}: granted before model {} was bound", Raw(shard.id), job.spec.model.name);
    }
    if (job.cancel_requested && shard.state == ShardState::kPending) {
      Violated("INV-LEASE-4: shard {}: PENDING though its job was cancelled", Raw(shard.id));
    }
    if (shard.state != ShardState::kDone && shard.state != ShardState::kQuarantined) return absl::OkStatus();
    IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> missing, txn_.MissingItems(job.id, shard.range));
    if (!missing.empty()) {
      Violated("INV-RES-1: shard {}: {}, but {} of its items have no result", Raw(shard.id), NameOf(shard.state),
               missing.size());
    }
    return absl::OkStatus();
  }

  // INV-LEASE-1: epochs count the grants one by one, the row carries the last; INV-LEASE-2: charges are bounded.
  void CheckAttempts(const SweepRecord& sweep, const ShardRecord& shard, const std::vector<AttemptRecord>& attempts) {
    Fence last;
    WorkerId last_worker;
    std::map<int64_t, WorkerId> granted;
    std::set<int64_t> ended;
    for (const AttemptRecord& row : attempts) {
      const int64_t epoch = row.fence.epoch;
      if (row.event == AttemptEvent::kGranted) {
        if (epoch != last.epoch + 1 || row.fence.incarnation < last.incarnation) {
          Violated("INV-LEASE-1: shard {}: grant {} follows epoch {}", Raw(shard.id), epoch, last.epoch);
        }
        if (last.epoch > 0 && !ended.contains(last.epoch)) {
          Violated("INV-LEASE-1: shard {}: granted again while epoch {} was live", Raw(shard.id), last.epoch);
        }
        last = row.fence;
        last_worker = row.worker;
        granted[epoch] = row.worker;
        continue;
      }
      if (!granted.contains(epoch) || granted[epoch] != row.worker) {
        Violated("INV-LEASE-1: shard {}: epoch {} has an end by {} but no grant", Raw(shard.id), epoch,
                 row.worker.value);
      }
      if (row.event == AttemptEvent::kRefunded && !ended.contains(epoch)) {
        Violated("INV-LEASE-2: shard {}: epoch {} refunded before it ended", Raw(shard.id), epoch);
      }
      ended.insert(epoch);
    }
    if (last != shard.fence) {
      Violated("INV-LEASE-1: shard {}: its fence is not that of its last grant", Raw(shard.id));
    }
    const bool live = shard.state == ShardState::kLeased;
    if (live && shard.owner != last_worker) {
      Violated("INV-LEASE-1: shard {}: owned by {}, granted to {}", Raw(shard.id), shard.owner.value,
               last_worker.value);
    }
    if (last.epoch > 0 && live == ended.contains(last.epoch)) {
      Violated("INV-LEASE-1: shard {}: {}, but its last attempt has {}", Raw(shard.id), NameOf(shard.state),
               live ? "ended" : "not ended");
    }
    const int64_t charged = static_cast<int64_t>(Charged(attempts).size());
    if (charged > sweep.spec.max_attempts) {
      Violated("INV-LEASE-2: shard {}: {} attempts charged, {} allowed", Raw(shard.id), charged,
               sweep.spec.max_attempts);
    }
  }

  absl::Status CheckItems(const JobRecord& job) {
    IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> items, txn_.StoredItems(job.id));
    if (!items.empty() && items.back() >= job.spec.items) {
      Violated("INV-TAB-1: job {}: item {} is past its {} planned items", job.id.Hex(), items.back(), job.spec.items);
    }
    for (const int64_t index : items) {
      IHA_ASSIGN_OR_RETURN(const std::optional<ItemResult> item, txn_.LoadItem(job.id, index));
      IHA_ASSIGN_OR_RETURN(const std::optional<Digest> hash, txn_.ItemHash(job.id, index));
      if (!item.has_value() || !hash.has_value() || item->Hash() != *hash) {
        Violated("INV-RES-4: job {}: item {}: its rows do not have its digest", job.id.Hex(), index);
        continue;
      }
      IHA_RETURN_IF_ERROR(CheckItem(job, *item));
    }
    return absl::OkStatus();
  }

  absl::Status CheckItem(const JobRecord& job, const ItemResult& item) {
    const SweepEntry& entry = job.spec.entry;
    const bool scored = item.unscored == Unscored::kScored;
    const size_t samples = scored ? static_cast<size_t>(entry.sampling.samples) : 0;
    const bool stopped = entry.stop_settled_votes && !item.samples.empty() && item.samples.size() < samples;
    if (item.samples.size() != samples && !stopped) {
      Violated("INV-RES-2: job {}: item {}: {} samples, expected {}", job.id.Hex(), item.index, item.samples.size(),
               samples);
    }
    if (item.values.size() != entry.metrics.size()) {
      Violated("INV-TAB-1: job {}: item {}: {} values for {} metrics", job.id.Hex(), item.index, item.values.size(),
               entry.metrics.size());
    }
    std::vector<std::vector<SampleGrade>> grades;
    for (const SampleResult& sample : item.samples) {
      grades.push_back(sample.grades);
      IHA_ASSIGN_OR_RETURN(const auto stored, txn_.FindGeneration(sample.generation));
      if (!stored.has_value() || stored->generation.Checksum() != stored->checksum) {
        Violated("INV-RES-2: job {}: item {}: generation {} is missing or damaged", job.id.Hex(), item.index,
                 sample.generation.Hex());
      }
    }
    if (!scored || !item_values_) return absl::OkStatus();
    IHA_ASSIGN_OR_RETURN(const std::vector<ItemValue> values, item_values_(entry, grades));
    if (values != item.values) {
      Violated("INV-RES-3: job {}: item {}: its values are not those of its grades", job.id.Hex(), item.index);
    }
    const bool stops = entry.stop_settled_votes && !grades.empty();
    return stops ? CheckStop(job, item.index, stopped, values, std::move(grades)) : absl::OkStatus();
  }

  // INV-RES-2 where votes stop: with its last sample they are settled, unless it is the k-th, and no sooner.
  absl::Status CheckStop(const JobRecord& job, int64_t index, bool stopped, const std::vector<ItemValue>& values,
                         std::vector<std::vector<SampleGrade>> grades) {
    const size_t samples = grades.size();
    if (stopped && !Settled(values)) {
      Violated("INV-RES-2: job {}: item {}: {} samples do not settle its votes", job.id.Hex(), index, samples);
    }
    grades.pop_back();
    if (grades.empty()) return absl::OkStatus();
    IHA_ASSIGN_OR_RETURN(const std::vector<ItemValue> before, item_values_(job.spec.entry, grades));
    if (Settled(before)) {
      Violated("INV-RES-2: job {}: item {}: its votes are settled before its {} samples", job.id.Hex(), index, samples);
    }
    return absl::OkStatus();
  }

  static bool Settled(const std::vector<ItemValue>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](const ItemValue& value) { return value.unscored == Unscored::kScored; });
  }

  ReadTxn& txn_;
  const ItemValuesFn& item_values_;
  std::vector<std::string>& violations_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckInvariants(Store& store, const ItemValuesFn& item_values) {
  std::vector<std::string> violations;
  const absl::Status read = store.Read([&](ReadTxn& txn) {
    violations.clear();
    return Checker(txn, item_values, &violations).CheckAll();
  });
  // A damaged file may not be readable to the end; what was found so far says why.
  if (!read.ok() && violations.empty()) return read;
  return violations;
}

}  // namespace iha::coordinator
