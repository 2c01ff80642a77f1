// Workers, what models they offered, what is bound, notes and divergences.
#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/store/spec_json.h"
#include "coordinator/store/sqlite_txn.h"

namespace iha::coordinator {

MaybeOr<WorkerRecord> SqliteTxn::FindWorker(const WorkerId& id) {
  Statement q = db_.Query("SELECT incarnation, numerics, description, blamed FROM worker WHERE id = ?");
  if (!q.Text(id.value).Row()) {
    IHA_RETURN_IF_ERROR(q.status());
    return std::nullopt;
  }
  WorkerRecord worker{.id = id,
                      .incarnation = q.GetInt(0),
                      .numerics_ids = {},
                      .description = q.GetString(2),
                      .blamed = q.GetString(3)};
  IHA_ASSIGN_OR_RETURN(worker.numerics_ids, ParseStrings(q.GetString(1)));
  return worker;
}

absl::Status SqliteTxn::UpsertWorker(const WorkerRecord& worker) {
  IHA_RETURN_IF_ERROR(db_.Query("DELETE FROM model_offer WHERE worker = ?1 AND EXISTS"
                                " (SELECT 1 FROM worker WHERE id = ?1 AND incarnation <> ?2)")
                          .Text(worker.id.value)
                          .Int(worker.incarnation)
                          .Run());
  return db_
      .Query(
          "INSERT INTO worker(id, incarnation, numerics, description, blamed) VALUES(?, ?, ?, ?, ?)"
          " ON CONFLICT(id) DO UPDATE SET incarnation = excluded.incarnation, numerics = excluded.numerics,"
          " description = excluded.description, blamed = excluded.blamed")
      .Text(worker.id.value)
      .Int(worker.incarnation)
      .Text(ToJson(worker.numerics_ids))
      .Text(worker.description)
      .Text(worker.blamed)
      .Run();
}

absl::Status SqliteTxn::BlameWorker(const WorkerId& worker, const std::string& reason) {
  return db_.Query("UPDATE worker SET blamed = ? WHERE id = ?").Text(reason).Text(worker.value).Run();
}

ListOr<OpenModel> SqliteTxn::OpenModels() {
  Statement q = db_.Query(
      "SELECT DISTINCT j.sweep, j.model, json_extract(j.spec, '$.model.weights_digest') FROM job j"
      " JOIN sweep w ON w.id = j.sweep WHERE j.cancel_requested = 0 AND j.id IN"
      " (SELECT job FROM shard WHERE state IN ('PENDING', 'LEASED')) ORDER BY w.ord, j.ord");
  std::vector<OpenModel> models;
  while (q.Row()) {
    models.push_back({.sweep = {q.GetId(0)}, .model = {.name = q.GetString(1), .weights_digest = q.GetString(2)}});
  }
  IHA_RETURN_IF_ERROR(q.status());
  return models;
}

ListOr<ModelBinding> SqliteTxn::Bindings(const SweepId& sweep) {
  Statement q =
      db_.Query("SELECT model, weights, tokenizer, context_tokens FROM model_binding WHERE sweep = ? ORDER BY model");
  q.Id(sweep.digest);
  std::vector<ModelBinding> bindings;
  while (q.Row()) {
    bindings.push_back({.sweep = sweep,
                        .model = q.GetString(0),
                        .weights = q.GetId(1),
                        .tokenizer = q.GetId(2),
                        .context_tokens = q.GetInt(3)});
  }
  IHA_RETURN_IF_ERROR(q.status());
  return bindings;
}

ListOr<ModelBinding> SqliteTxn::Offers(const WorkerId& worker) {
  Statement q =
      db_.Query("SELECT model, weights, tokenizer, context_tokens FROM model_offer WHERE worker = ? ORDER BY model");
  q.Text(worker.value);
  std::vector<ModelBinding> offers;
  while (q.Row()) {
    offers.push_back({.sweep = {},
                      .model = q.GetString(0),
                      .weights = q.GetId(1),
                      .tokenizer = q.GetId(2),
                      .context_tokens = q.GetInt(3)});
  }
  IHA_RETURN_IF_ERROR(q.status());
  return offers;
}

absl::Status SqliteTxn::RecordOffer(const WorkerId& worker, const ModelBinding& offer) {
  return db_
      .Query(
          "INSERT INTO model_offer(worker, model, weights, tokenizer, context_tokens) VALUES(?, ?, ?, ?, ?)"
          " ON CONFLICT(worker, model) DO UPDATE SET weights = excluded.weights, tokenizer = excluded.tokenizer,"
          " context_tokens = excluded.context_tokens")
      .Text(worker.value)
      .Text(offer.model)
      .Id(offer.weights)
      .Id(offer.tokenizer)
      .Int(offer.context_tokens)
      .Run();
}

absl::Status SqliteTxn::BindModel(const ModelBinding& binding) {
  return db_.Query("INSERT INTO model_binding(sweep, model, weights, tokenizer, context_tokens) VALUES(?, ?, ?, ?, ?)")
      .Id(binding.sweep.digest)
      .Text(binding.model)
      .Id(binding.weights)
      .Id(binding.tokenizer)
      .Int(binding.context_tokens)
      .Run();
}

ListOr<std::string> SqliteTxn::Notes(const SweepId& sweep) {
  Statement q = db_.Query("SELECT text FROM note WHERE sweep = ? ORDER BY ord");
  q.Id(sweep.digest);
  std::vector<std::string> notes;
  while (q.Row()) notes.push_back(q.GetString(0));
  IHA_RETURN_IF_ERROR(q.status());
  return notes;
}

absl::Status SqliteTxn::AddNote(const SweepId& sweep, const std::string& note) {
  return db_.Query("INSERT INTO note(sweep, text) VALUES(?, ?) ON CONFLICT DO NOTHING")
      .Id(sweep.digest)
      .Text(note)
      .Run();
}

ListOr<DivergenceRecord> SqliteTxn::Divergences() {
  Statement q = db_.Query("SELECT kind, subject, worker, stored, offered, at_us FROM divergence ORDER BY seq");
  std::vector<DivergenceRecord> rows;
  while (q.Row()) {
    DivergenceRecord row{.kind = DivergenceKind::kGeneration,
                         .subject = q.GetString(1),
                         .worker = {q.GetString(2)},
                         .stored = q.GetId(3),
                         .offered = q.GetId(4),
                         .at = q.GetTime(5)};
    for (const DivergenceKind kind : {DivergenceKind::kItem, DivergenceKind::kChecksum}) {
      if (q.GetString(0) == NameOf(kind)) row.kind = kind;
    }
    rows.push_back(std::move(row));
  }
  IHA_RETURN_IF_ERROR(q.status());
  return rows;
}

absl::Status SqliteTxn::AddDivergence(const DivergenceRecord& divergence) {
  return db_
      .Query(
          "INSERT INTO divergence(kind, subject, worker, stored, offered, at_us) VALUES(?, ?, ?, ?, ?, ?)"
          " ON CONFLICT DO NOTHING")
      .Text(NameOf(divergence.kind))
      .Text(divergence.subject)
      .Text(divergence.worker.value)
      .Id(divergence.stored)
      .Id(divergence.offered)
      .Time(divergence.at)
      .Run();
}

}  // namespace iha::coordinator
