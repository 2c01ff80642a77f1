// Shards, leases and attempts.
#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/store/spec_json.h"
#include "coordinator/store/sqlite_txn.h"

namespace iha::coordinator {
namespace {

#define IHA_SHARD_COLUMNS \
  "id, job, first_item, end_item, estimated_tokens, state, incarnation, epoch, owner, not_before_us, parent"

absl::StatusOr<ShardRecord> ReadShard(const Statement& q) {
  ShardRecord shard;
  shard.id = ShardId{q.GetInt(0)};
  shard.job.digest = q.GetId(1);
  shard.range = {.begin = q.GetInt(2), .end = q.GetInt(3)};
  shard.estimated_tokens = q.GetInt(4);
  const std::optional<ShardState> state = ParseShardState(q.GetString(5));
  if (!state.has_value()) return DataLoss("shard {}: unknown state; restore a backup", q.GetInt(0));
  shard.state = *state;
  shard.fence = {.incarnation = q.GetInt(6), .epoch = q.GetInt(7)};
  shard.owner.value = q.GetString(8);
  shard.not_before = q.GetTime(9);
  if (!q.IsNull(10)) shard.parent = ShardId{q.GetInt(10)};
  return shard;
}

absl::StatusOr<AttemptEvent> ParseAttemptEvent(const std::string& name) {
  for (const AttemptEvent event :
       {AttemptEvent::kGranted, AttemptEvent::kDone, AttemptEvent::kLost, AttemptEvent::kFailed, AttemptEvent::kDrained,
        AttemptEvent::kCancelled, AttemptEvent::kRefunded}) {
    if (name == NameOf(event)) return event;
  }
  return DataLoss("attempt: unknown event; restore a backup");
}

#define IHA_ATTEMPT_COLUMNS "shard, incarnation, epoch, worker, event, request, reason, at_us, permanent"

int64_t Raw(ShardId id) { return static_cast<int64_t>(id); }

}  // namespace

ListOr<ShardRecord> SqliteTxn::ReadShards(Statement* query) {
  std::vector<ShardRecord> shards;
  while (query->Row()) {
    IHA_ASSIGN_OR_RETURN(ShardRecord shard, ReadShard(*query));
    shards.push_back(std::move(shard));
  }
  IHA_RETURN_IF_ERROR(query->status());
  return shards;
}

MaybeOr<ShardRecord> SqliteTxn::FindShard(ShardId id) {
  Statement q = db_.Query("SELECT " IHA_SHARD_COLUMNS " FROM shard WHERE id = ?");
  q.Int(Raw(id));
  IHA_ASSIGN_OR_RETURN(std::vector<ShardRecord> shards, ReadShards(&q));
  if (shards.empty()) return std::nullopt;
  return shards.front();
}

ListOr<ShardRecord> SqliteTxn::Shards(const JobId& job) {
  Statement q = db_.Query("SELECT " IHA_SHARD_COLUMNS " FROM shard WHERE job = ? ORDER BY id");
  q.Id(job.digest);
  return ReadShards(&q);
}

ListOr<ShardRecord> SqliteTxn::LeasedShards() {
  Statement q = db_.Query("SELECT " IHA_SHARD_COLUMNS " FROM shard WHERE state = 'LEASED' ORDER BY id");
  return ReadShards(&q);
}

MaybeOr<ShardId> SqliteTxn::PickShard(const GrantQuery& query) {
  // Offered digests must equal the bound ones: a worker with other weights is never granted the job.
  // From one job with PENDING shards to the next by the index, and one look into it for the first shard of each:
  // neither finished sweeps nor the shards behind the first cost anything.
  Statement q = db_.Query(
      "WITH RECURSIVE pending(job) AS ("
      " SELECT (SELECT f.job FROM shard f INDEXED BY shard_next WHERE f.state = 'PENDING' ORDER BY f.job LIMIT 1)"
      " UNION ALL"
      " SELECT (SELECT n.job FROM shard n INDEXED BY shard_next WHERE n.state = 'PENDING' AND n.job > pending.job"
      "         ORDER BY n.job LIMIT 1) FROM pending WHERE pending.job IS NOT NULL)"
      " SELECT s.id FROM pending CROSS JOIN job j ON j.id = pending.job CROSS JOIN sweep w ON w.id = j.sweep"
      " CROSS JOIN model_binding b ON b.sweep = j.sweep AND b.model = j.model"
      " CROSS JOIN model_offer o ON o.worker = ?1 AND o.model = j.model AND o.weights = b.weights"
      "   AND o.tokenizer = b.tokenizer"
      " CROSS JOIN json_each(?2) m ON m.value = j.model"
      " CROSS JOIN shard s ON s.id = (SELECT t.id FROM shard t INDEXED BY shard_next WHERE t.state = 'PENDING'"
      "   AND t.job = j.id AND t.not_before_us <= ?3 ORDER BY t.turn, t.first_item LIMIT 1)"
      " WHERE j.cancel_requested = 0 AND j.numerics_id IN (SELECT value FROM json_each(?4))"
      "   AND (?5 IS NULL OR j.sweep = ?5) AND j.benchmark NOT IN (SELECT value FROM json_each(?6))"
      " ORDER BY m.key > 0, w.ord, s.turn, j.ord LIMIT 1");
  q.Text(query.worker.value).Text(ToJson(query.models)).Time(query.now).Text(ToJson(query.numerics_ids));
  query.only.has_value() ? q.Id(query.only->digest) : q.Null();
  q.Text(ToJson(query.refused_benchmarks));
  std::optional<ShardId> id;
  if (q.Row()) id = ShardId{q.GetInt(0)};
  IHA_RETURN_IF_ERROR(q.status());
  return id;
}

absl::StatusOr<OpenWork> SqliteTxn::FindOpenWork(const std::optional<SweepId>& only,
                                                 const std::vector<std::string>& refused) {
  OpenWork work;
  work.next_retry = absl::InfiniteFuture();
  Statement q = db_.Query(
      "SELECT j.model, min(CASE WHEN s.state = 'PENDING' THEN s.not_before_us END),"
      "  max(j.benchmark NOT IN (SELECT value FROM json_each(?2))) FROM shard s"
      " JOIN job j ON j.id = s.job WHERE s.state IN ('PENDING', 'LEASED') AND (?1 IS NULL OR j.sweep = ?1)"
      " GROUP BY j.model ORDER BY j.model");
  only.has_value() ? q.Id(only->digest) : q.Null();
  q.Text(ToJson(refused));
  while (q.Row()) {
    work.any = true;
    if (q.GetInt(2) != 0) work.models.push_back(q.GetString(0));
    if (!q.IsNull(1)) work.next_retry = std::min(work.next_retry, q.GetTime(1));
  }
  IHA_RETURN_IF_ERROR(q.status());
  return work;
}

ListOr<AttemptRecord> SqliteTxn::ReadAttempts(Statement* query) {
  std::vector<AttemptRecord> attempts;
  while (query->Row()) {
    AttemptRecord a;
    a.shard = ShardId{query->GetInt(0)};
    a.fence = {.incarnation = query->GetInt(1), .epoch = query->GetInt(2)};
    a.worker.value = query->GetString(3);
    IHA_ASSIGN_OR_RETURN(a.event, ParseAttemptEvent(query->GetString(4)));
    a.request.value = query->GetString(5);
    a.reason = query->GetString(6);
    a.at = query->GetTime(7);
    a.permanent = query->GetInt(8) != 0;
    attempts.push_back(std::move(a));
  }
  IHA_RETURN_IF_ERROR(query->status());
  return attempts;
}

ListOr<AttemptRecord> SqliteTxn::Attempts(ShardId shard) {
  Statement q = db_.Query("SELECT " IHA_ATTEMPT_COLUMNS " FROM attempt WHERE shard = ? ORDER BY seq");
  q.Int(Raw(shard));
  return ReadAttempts(&q);
}

ListOr<AttemptRecord> SqliteTxn::AttemptsOf(const WorkerId& worker) {
  Statement q = db_.Query("SELECT " IHA_ATTEMPT_COLUMNS " FROM attempt WHERE worker = ? ORDER BY seq");
  q.Text(worker.value);
  return ReadAttempts(&q);
}

MaybeOr<AttemptRecord> SqliteTxn::FindGrant(const WorkerId& worker, const RequestId& request) {
  Statement q = db_.Query("SELECT " IHA_ATTEMPT_COLUMNS
                          " FROM attempt WHERE worker = ? AND request = ? AND event = 'granted' ORDER BY seq LIMIT 1");
  q.Text(worker.value).Text(request.value);
  IHA_ASSIGN_OR_RETURN(std::vector<AttemptRecord> attempts, ReadAttempts(&q));
  if (attempts.empty()) return std::nullopt;
  return attempts.front();
}

absl::Status SqliteTxn::ExactlyOne(const ShardRecord& shard) const {
  if (db_.changes() == 1) return absl::OkStatus();
  return Aborted("shard {}: changed by another step, it is not {} with epoch {} any more", Raw(shard.id),
                 NameOf(shard.state), shard.fence.epoch);
}

absl::Status SqliteTxn::GrantShard(const ShardRecord& shard, const Fence& fence, const WorkerId& owner) {
  IHA_RETURN_IF_ERROR(db_.Query("UPDATE shard SET state = 'LEASED', incarnation = ?, epoch = ?, owner = ?"
                                " WHERE id = ? AND state = ? AND incarnation = ? AND epoch = ?")
                          .Int(fence.incarnation)
                          .Int(fence.epoch)
                          .Text(owner.value)
                          .Int(Raw(shard.id))
                          .Text(NameOf(shard.state))
                          .Int(shard.fence.incarnation)
                          .Int(shard.fence.epoch)
                          .Run());
  return ExactlyOne(shard);
}

absl::Status SqliteTxn::MoveShard(const ShardRecord& shard, ShardState to, absl::Time not_before) {
  IHA_RETURN_IF_ERROR(db_.Query("UPDATE shard SET state = ?, owner = NULL, not_before_us = ?"
                                " WHERE id = ? AND state = ? AND incarnation = ? AND epoch = ?")
                          .Text(NameOf(to))
                          .Time(not_before)
                          .Int(Raw(shard.id))
                          .Text(NameOf(shard.state))
                          .Int(shard.fence.incarnation)
                          .Int(shard.fence.epoch)
                          .Run());
  return ExactlyOne(shard);
}

absl::Status SqliteTxn::InsertChild(const ShardRecord& parent, const NewShard& child) {
  return db_
      .Query(
          "INSERT INTO shard(job, first_item, end_item, estimated_tokens, turn, parent)"
          " SELECT ?1, ?2, ?3, ?4, turn, id FROM shard WHERE id = ?5")
      .Id(parent.job.digest)
      .Int(child.range.begin)
      .Int(child.range.end)
      .Int(child.estimated_tokens)
      .Int(Raw(parent.id))
      .Run();
}

absl::Status SqliteTxn::AppendAttempt(const AttemptRecord& attempt) {
  return db_
      .Query(
          "INSERT INTO attempt(shard, incarnation, epoch, worker, event, request, reason, at_us, permanent)"
          " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .Int(Raw(attempt.shard))
      .Int(attempt.fence.incarnation)
      .Int(attempt.fence.epoch)
      .Text(attempt.worker.value)
      .Text(NameOf(attempt.event))
      .Text(attempt.request.value)
      .Text(attempt.reason)
      .Time(attempt.at)
      .Int(attempt.permanent ? 1 : 0)
      .Run();
}

}  // namespace iha::coordinator
