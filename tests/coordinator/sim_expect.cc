// The `expect` statement: what the database shows.
#include <set>

#include "common/status_macros.h"
#include "coordinator/store/snapshot_reader.h"
#include "tests/coordinator/sim_runner.h"

namespace iha::coordinator {

absl::StatusOr<std::string> SimRunner::DescribeShard(ShardId id) {
  std::string text;
  IHA_RETURN_IF_ERROR(world_.store().Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::optional<ShardRecord> shard, txn.FindShard(id));
    if (!shard.has_value()) return NotFound("no such shard");
    IHA_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> attempts, txn.Attempts(id));
    std::map<AttemptEvent, int> counts;
    for (const AttemptRecord& row : attempts) ++counts[row.event];
    text = fmt::format("{} epoch={} attempts={} lost={} failed={} drained={} refunded={} owner={} items={}..{}",
                       NameOf(shard->state), shard->fence.epoch, counts[AttemptEvent::kGranted],
                       counts[AttemptEvent::kLost], counts[AttemptEvent::kFailed], counts[AttemptEvent::kDrained],
                       counts[AttemptEvent::kRefunded], shard->owner.value.empty() ? "nobody" : shard->owner.value,
                       shard->range.begin, shard->range.end - 1);
    return absl::OkStatus();
  }));
  return text;
}

absl::StatusOr<std::string> SimRunner::DescribeTable(const SweepId& sweep) {
  IHA_ASSIGN_OR_RETURN(const reports::Snapshot snapshot, ReadSnapshot(world_.store(), sweep, "test"));
  int64_t planned = 0;
  std::map<iha::Unscored, int64_t> counts;
  int64_t stored = 0;
  for (const reports::JobRows& job : snapshot.jobs) {
    planned += job.spec.items;
    stored += static_cast<int64_t>(job.items.size());
    for (const reports::ItemRow& row : job.items) ++counts[row.unscored];
  }
  std::string text = fmt::format("scored={}/{}", counts[iha::Unscored::kScored], planned);
  if (stored < planned) text += fmt::format(" pending={}", planned - stored);
  for (const auto& [reason, count] : counts) {
    if (reason != iha::Unscored::kScored) text += fmt::format(" {}={}", NameOf(reason), count);
  }
  return text;
}

absl::StatusOr<std::string> SimRunner::ItemRowsDigest(const SweepId& sweep) {
  std::string digest;
  IHA_RETURN_IF_ERROR(world_.store().Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep));
    digest.clear();
    for (const JobRecord& job : jobs) {
      IHA_ASSIGN_OR_RETURN(const Digest rows, txn.ItemsDigest(job.id));
      digest += rows.Hex();
    }
    return absl::OkStatus();
  }));
  return digest;
}

absl::StatusOr<std::string> SimRunner::Expect(const Step& step) {
  const std::string& what = step.words.at(0);
  if (what == "shard") return DescribeShard(ShardId{std::stoll(step.words.at(1)) + 1});
  if (what == "divergences") {
    std::vector<DivergenceRecord> rows;
    IHA_RETURN_IF_ERROR(world_.store().Read([&](ReadTxn& txn) -> absl::Status {
      IHA_ASSIGN_OR_RETURN(rows, txn.Divergences());
      return absl::OkStatus();
    }));
    std::map<std::string, int> counts;
    for (const DivergenceRecord& row : rows) ++counts[NameOf(row.kind)];
    return fmt::format("generation={} item={} checksum={}", counts["generation"], counts["item"], counts["checksum"]);
  }
  if (what == "sweeps") {
    IHA_ASSIGN_OR_RETURN(const std::vector<SweepSummary> list, world_.coordinator().List());
    return fmt::format("{}", list.size());
  }
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, SweepOf(step));
  if (what == "table") return DescribeTable(sweep);
  if (what == "status") {
    IHA_ASSIGN_OR_RETURN(const SweepProgress progress, world_.coordinator().Status(sweep));
    std::string text =
        fmt::format("{} leased={} notes={}", progress.state, progress.leased_shards, progress.notes.size());
    for (const JobProgress& job : progress.jobs) text += fmt::format(" {}={}", job.model, job.state);
    return text;
  }
  if (what == "same_rows") {
    // INV-TAB-2: the rows equal those of the same sweep done by one worker in one go, nothing going wrong.
    SimRunner calm({.name = "reference"}, "");
    IHA_RETURN_IF_ERROR(calm.world_.Open());
    IHA_ASSIGN_OR_RETURN(const reports::Snapshot snapshot, ReadSnapshot(world_.store(), sweep, "test"));
    IHA_ASSIGN_OR_RETURN(const SweepId again, calm.world_.coordinator().Submit(snapshot.spec));
    IHA_RETURN_IF_ERROR(calm.Drive({.verb = "drive", .words = {"calm"}}).status());
    IHA_ASSIGN_OR_RETURN(const std::string reference, calm.ItemRowsDigest(again));
    IHA_ASSIGN_OR_RETURN(const std::string here, ItemRowsDigest(sweep));
    return again == sweep && reference == here ? "yes" : "no";
  }
  return InvalidArgument("expect {}: unknown", what);
}

}  // namespace iha::coordinator
