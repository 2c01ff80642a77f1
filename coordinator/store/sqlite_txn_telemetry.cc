// What worker processes did for a job, and how long it took.
#include "common/status_macros.h"
#include "coordinator/store/sqlite_txn.h"

namespace iha::coordinator {
namespace {

void BindTime(Statement* q, absl::Duration time) { q->Int(absl::ToInt64Nanoseconds(time)); }

}  // namespace

absl::Status SqliteTxn::PutTelemetry(const TelemetryRecord& record) {
  const EngineTelemetry& t = record.telemetry.engine;
  Statement q = db_.Query(
      "INSERT INTO telemetry(job, worker, incarnation, sequence, prompt_tokens, reused_tokens, prefill_tokens,"
      " decode_tokens, generated_tokens, steps, step_sequences, preemptions, prefix_hit_blocks, prefix_lookup_blocks,"
      " kv_blocks, kv_blocks_peak, prefill_ns, decode_ns, schedule_ns, sample_ns)"
      " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
      " ON CONFLICT(job, worker, incarnation) DO UPDATE SET sequence = excluded.sequence,"
      " prompt_tokens = excluded.prompt_tokens, reused_tokens = excluded.reused_tokens,"
      " prefill_tokens = excluded.prefill_tokens, decode_tokens = excluded.decode_tokens,"
      " generated_tokens = excluded.generated_tokens, steps = excluded.steps,"
      " step_sequences = excluded.step_sequences, preemptions = excluded.preemptions,"
      " prefix_hit_blocks = excluded.prefix_hit_blocks, prefix_lookup_blocks = excluded.prefix_lookup_blocks,"
      " kv_blocks = excluded.kv_blocks, kv_blocks_peak = excluded.kv_blocks_peak, prefill_ns = excluded.prefill_ns,"
      " decode_ns = excluded.decode_ns, schedule_ns = excluded.schedule_ns, sample_ns = excluded.sample_ns"
      " WHERE excluded.sequence > telemetry.sequence");
  q.Id(record.job.digest).Text(record.worker.value).Int(record.telemetry.incarnation).Int(record.telemetry.sequence);
  q.Int(t.prompt_tokens).Int(t.reused_tokens).Int(t.prefill_tokens).Int(t.decode_tokens).Int(t.generated_tokens);
  q.Int(t.steps).Int(t.step_sequences).Int(t.preemptions).Int(t.prefix_hit_blocks).Int(t.prefix_lookup_blocks);
  q.Int(t.kv_blocks).Int(t.kv_blocks_peak);
  for (const absl::Duration time : {t.prefill_time, t.decode_time, t.schedule_time, t.sample_time}) BindTime(&q, time);
  IHA_RETURN_IF_ERROR(q.Run());
  if (db_.changes() == 0) return absl::OkStatus();  // a report that is as new is there
  IHA_RETURN_IF_ERROR(db_.Query("DELETE FROM telemetry_op WHERE job = ? AND worker = ? AND incarnation = ?")
                          .Id(record.job.digest)
                          .Text(record.worker.value)
                          .Int(record.telemetry.incarnation)
                          .Run());
  for (size_t i = 0; i < t.operations.size(); i++) {
    const OpTelemetry& op = t.operations[i];
    Statement insert = db_.Query(
        "INSERT INTO telemetry_op(job, worker, incarnation, ord, name, calls, time_ns, flops, bytes)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.Id(record.job.digest).Text(record.worker.value).Int(record.telemetry.incarnation);
    insert.Int(static_cast<int64_t>(i)).Text(op.name).Int(op.calls);
    BindTime(&insert, op.time);
    IHA_RETURN_IF_ERROR(insert.Real(op.flops).Real(op.bytes).Run());
  }
  return absl::OkStatus();
}

ListOr<TelemetryRecord> SqliteTxn::Telemetry(const JobId& job) {
  Statement q = db_.Query(
      "SELECT worker, incarnation, sequence, prompt_tokens, reused_tokens, prefill_tokens, decode_tokens,"
      " generated_tokens, steps, step_sequences, preemptions, prefix_hit_blocks, prefix_lookup_blocks, kv_blocks,"
      " kv_blocks_peak, prefill_ns, decode_ns, schedule_ns, sample_ns FROM telemetry WHERE job = ?"
      " ORDER BY worker, incarnation");
  q.Id(job.digest);
  std::vector<TelemetryRecord> records;
  while (q.Row()) {
    TelemetryRecord& record = records.emplace_back();
    record.job = job;
    record.worker = {q.GetString(0)};
    record.telemetry.incarnation = q.GetInt(1);
    record.telemetry.sequence = q.GetInt(2);
    int column = 3;
    EngineTelemetry& t = record.telemetry.engine;
    for (int64_t* count : {&t.prompt_tokens, &t.reused_tokens, &t.prefill_tokens, &t.decode_tokens, &t.generated_tokens,
                           &t.steps, &t.step_sequences, &t.preemptions, &t.prefix_hit_blocks, &t.prefix_lookup_blocks,
                           &t.kv_blocks, &t.kv_blocks_peak}) {
      *count = q.GetInt(column++);
    }
    for (absl::Duration* time : {&t.prefill_time, &t.decode_time, &t.schedule_time, &t.sample_time}) {
      *time = absl::Nanoseconds(q.GetInt(column++));
    }
    Statement ops = db_.Query(
        "SELECT name, calls, time_ns, flops, bytes FROM telemetry_op WHERE job = ? AND worker = ? AND incarnation = ?"
        " ORDER BY ord");
    ops.Id(job.digest).Text(record.worker.value).Int(record.telemetry.incarnation);
    while (ops.Row()) {
      t.operations.push_back({.name = ops.GetString(0),
                              .calls = ops.GetInt(1),
                              .time = absl::Nanoseconds(ops.GetInt(2)),
                              .flops = ops.GetReal(3),
                              .bytes = ops.GetReal(4)});
    }
    IHA_RETURN_IF_ERROR(ops.status());
  }
  IHA_RETURN_IF_ERROR(q.status());
  return records;
}

}  // namespace iha::coordinator
