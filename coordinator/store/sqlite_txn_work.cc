// Sweeps, jobs and meta.
#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/store/spec_json.h"
#include "coordinator/store/sqlite_txn.h"

namespace iha::coordinator {
namespace {

absl::StatusOr<SweepRecord> ReadSweep(const Statement& q) {
  SweepRecord sweep;
  sweep.id.digest = q.GetId(0);
  IHA_ASSIGN_OR_RETURN(sweep.spec, ParseSweepSpec(q.GetString(1)));
  sweep.submitted = q.GetTime(2);
  return sweep;
}

absl::StatusOr<JobRecord> ReadJob(const Statement& q) {
  JobRecord job;
  job.id.digest = q.GetId(0);
  IHA_ASSIGN_OR_RETURN(job.spec, ParseJobSpec(q.GetString(1)));
  job.cancel_requested = q.GetInt(2) != 0;
  return job;
}

}  // namespace

ListOr<std::string> SqliteTxn::DamagedPages() {
  std::vector<std::string> found;
  Statement pages = db_.Query("PRAGMA integrity_check(20)");
  while (pages.Row()) {
    if (pages.GetString(0) != "ok") found.push_back(pages.GetString(0));
  }
  IHA_RETURN_IF_ERROR(pages.status());
  Statement keys = db_.Query("PRAGMA foreign_key_check");
  while (keys.Row() && found.size() < 40) {
    found.push_back(
        fmt::format("a row of {} points to a row of {} that is not there", keys.GetString(0), keys.GetString(2)));
  }
  IHA_RETURN_IF_ERROR(keys.status());
  return found;
}

MaybeOr<std::string> SqliteTxn::Meta(const std::string& key) {
  Statement q = db_.Query("SELECT value FROM meta WHERE key = ?");
  std::optional<std::string> value;
  if (q.Text(key).Row()) value = q.GetString(0);
  IHA_RETURN_IF_ERROR(q.status());
  return value;
}

absl::Status SqliteTxn::SetMeta(const std::string& key, const std::string& value) {
  return db_.Query("INSERT INTO meta(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value")
      .Text(key)
      .Text(value)
      .Run();
}

MaybeOr<SweepRecord> SqliteTxn::FindSweep(const SweepId& id) {
  Statement q = db_.Query("SELECT id, spec, submitted_us FROM sweep WHERE id = ?");
  if (!q.Id(id.digest).Row()) {
    IHA_RETURN_IF_ERROR(q.status());
    return std::nullopt;
  }
  return ReadSweep(q);
}

ListOr<SweepRecord> SqliteTxn::Sweeps() {
  Statement q = db_.Query("SELECT id, spec, submitted_us FROM sweep ORDER BY ord");
  std::vector<SweepRecord> sweeps;
  while (q.Row()) {
    IHA_ASSIGN_OR_RETURN(SweepRecord sweep, ReadSweep(q));
    sweeps.push_back(std::move(sweep));
  }
  IHA_RETURN_IF_ERROR(q.status());
  return sweeps;
}

ListOr<JobRecord> SqliteTxn::Jobs(const SweepId& sweep) {
  Statement q =
      db_.Query("SELECT id, spec, cancel_requested FROM job WHERE sweep = ? ORDER BY model_index, entry_index");
  q.Id(sweep.digest);
  std::vector<JobRecord> jobs;
  while (q.Row()) {
    IHA_ASSIGN_OR_RETURN(JobRecord job, ReadJob(q));
    jobs.push_back(std::move(job));
  }
  IHA_RETURN_IF_ERROR(q.status());
  return jobs;
}

MaybeOr<JobRecord> SqliteTxn::FindJob(const JobId& id) {
  Statement q = db_.Query("SELECT id, spec, cancel_requested FROM job WHERE id = ?");
  if (!q.Id(id.digest).Row()) {
    IHA_RETURN_IF_ERROR(q.status());
    return std::nullopt;
  }
  return ReadJob(q);
}

absl::StatusOr<JobCounts> SqliteTxn::Counts(const JobId& job) {
  JobCounts counts;
  Statement items = db_.Query("SELECT count(*) FILTER (WHERE unscored = 0), count(*) FROM item_result WHERE job = ?");
  if (items.Id(job.digest).Row()) {
    counts.scored = items.GetInt(0);
    counts.unscored = items.GetInt(1) - counts.scored;
  }
  IHA_RETURN_IF_ERROR(items.status());
  Statement shards = db_.Query(
      "SELECT count(*) FILTER (WHERE state IN ('PENDING', 'LEASED')), count(*) FILTER (WHERE state = 'LEASED'),"
      " count(*) FILTER (WHERE state = 'QUARANTINED') FROM shard WHERE job = ?");
  if (shards.Id(job.digest).Row()) {
    counts.open_shards = shards.GetInt(0);
    counts.leased_shards = shards.GetInt(1);
    counts.quarantined_shards = shards.GetInt(2);
  }
  IHA_RETURN_IF_ERROR(shards.status());
  return counts;
}

absl::Status SqliteTxn::InsertSweep(const SweepRecord& sweep, const std::vector<NewJob>& jobs) {
  IHA_RETURN_IF_ERROR(db_.Query("INSERT INTO sweep(id, spec, submitted_us) VALUES(?, ?, ?)")
                          .Id(sweep.id.digest)
                          .Text(ToJson(sweep.spec))
                          .Time(sweep.submitted)
                          .Run());
  for (const NewJob& job : jobs) {
    IHA_RETURN_IF_ERROR(db_.Query("INSERT INTO job(id, sweep, model_index, entry_index, spec, model, benchmark,"
                                  " numerics_id, grader_version, items) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                            .Id(job.id.digest)
                            .Id(job.spec.sweep.digest)
                            .Int(job.spec.model_index)
                            .Int(job.spec.entry_index)
                            .Text(ToJson(job.spec))
                            .Text(job.spec.model.name)
                            .Text(job.spec.entry.benchmark.name)
                            .Text(job.spec.numerics_id)
                            .Text(job.spec.grader_version)
                            .Int(job.spec.items)
                            .Run());
    for (const NewShard& shard : job.shards) {
      IHA_RETURN_IF_ERROR(
          db_.Query("INSERT INTO shard(job, first_item, end_item, estimated_tokens, turn) VALUES(?, ?, ?, ?, ?)")
              .Id(job.id.digest)
              .Int(shard.range.begin)
              .Int(shard.range.end)
              .Int(shard.estimated_tokens)
              .Int(shard.turn)
              .Run());
    }
  }
  return absl::OkStatus();
}

absl::Status SqliteTxn::RequestCancel(const JobId& job) {
  return db_.Query("UPDATE job SET cancel_requested = 1 WHERE id = ? AND cancel_requested = 0").Id(job.digest).Run();
}

}  // namespace iha::coordinator
