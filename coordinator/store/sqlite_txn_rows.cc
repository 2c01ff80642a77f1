// What reports read and write: item rows of a snapshot, cell values, average ranks.
#include "benchmarks/scoring/plain_answers.h"
#include "benchmarks/scoring/stops.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/store/sqlite_txn.h"

namespace iha::coordinator {
namespace {

void BindOptional(Statement* q, const std::optional<double>& value) {
  if (value.has_value()) {
    q->Real(*value);
  } else {
    q->Null();
  }
}

std::optional<double> OptionalAt(const Statement& q, int column) {
  return q.IsNull(column) ? std::nullopt : std::optional<double>(q.GetReal(column));
}

bool StripsThinking(const JobSpec& job) {
  const auto think = job.entry.benchmark.options.find("think");
  return think != job.entry.benchmark.options.end() && think->second == "strip";
}

// Where thinking is stripped, an answer is empty when nothing stands behind it.
absl::Status CountEmptyAnswers(Connection& db, const JobId& job, const std::map<int64_t, size_t>& row_of,
                               std::vector<reports::ItemRow>& rows) {
  for (reports::ItemRow& row : rows) row.empty = 0;
  Statement texts =
      db.Query("SELECT s.item, g.text FROM sample s JOIN generation g ON g.gen_key = s.gen_key WHERE s.job = ?");
  texts.Id(job.digest);
  while (texts.Row()) {
    if (scoring::Trimmed(scoring::WithoutThinking(texts.GetString(1))).empty())
      ++rows[row_of.at(texts.GetInt(0))].empty;
  }
  return texts.status();
}

}  // namespace

ListOr<reports::ItemRow> SqliteTxn::ItemRows(const JobRecord& job) {
  std::vector<reports::ItemRow> rows;
  std::map<int64_t, size_t> row_of;
  Statement items = db_.Query("SELECT item, item_id, unscored, hash FROM item_result WHERE job = ? ORDER BY item");
  items.Id(job.id.digest);
  while (items.Row()) {
    row_of[items.GetInt(0)] = rows.size();
    reports::ItemRow row;
    row.index = items.GetInt(0);
    row.item_id = items.GetString(1);
    row.unscored = static_cast<Unscored>(items.GetInt(2));
    row.hash = items.GetId(3);
    rows.push_back(std::move(row));
  }
  IHA_RETURN_IF_ERROR(items.status());

  Statement values = db_.Query(
      "SELECT item, metric, unscored, num, den, winner, tie_num, tie_den, invalid FROM item_value"
      " WHERE job = ? AND grader_version = ? ORDER BY item, ord");
  values.Id(job.id.digest).Text(job.spec.grader_version);
  while (values.Row()) {
    rows[row_of[values.GetInt(0)]].values.push_back({.metric = values.GetString(1),
                                                     .unscored = static_cast<Unscored>(values.GetInt(2)),
                                                     .score = {values.GetInt(3), values.GetInt(4)},
                                                     .winner = values.GetString(5),
                                                     .tie = {values.GetInt(6), values.GetInt(7)},
                                                     .invalid = static_cast<int32_t>(values.GetInt(8))});
  }
  IHA_RETURN_IF_ERROR(values.status());

  Statement samples = db_.Query(
      "SELECT s.item, count(*), sum(g.finish = 3), sum(g.blank), max(g.prompt_tokens) FROM sample s"
      " JOIN generation g ON g.gen_key = s.gen_key WHERE s.job = ? GROUP BY s.item");
  samples.Id(job.id.digest);
  while (samples.Row()) {
    reports::ItemRow& row = rows[row_of[samples.GetInt(0)]];
    row.samples = static_cast<int32_t>(samples.GetInt(1));
    row.truncated = static_cast<int32_t>(samples.GetInt(2));
    row.empty = static_cast<int32_t>(samples.GetInt(3));
    row.prompt_tokens = static_cast<int32_t>(samples.GetInt(4));
  }
  IHA_RETURN_IF_ERROR(samples.status());
  // Metrics of programs are families that end so, and say what became of a program; no answer is called that.
  Statement suspects = db_.Query(
      "SELECT DISTINCT item, k FROM grade WHERE job = ? AND grader_version = ? AND extracted = CAST('suspect' AS BLOB)"
      " AND metric LIKE '%.pass@k' ORDER BY item, k");
  suspects.Id(job.id.digest).Text(job.spec.grader_version);
  while (suspects.Row()) {
    rows[row_of[suspects.GetInt(0)]].suspects.push_back(static_cast<int32_t>(suspects.GetInt(1)));
  }
  IHA_RETURN_IF_ERROR(suspects.status());
  if (StripsThinking(job.spec)) IHA_RETURN_IF_ERROR(CountEmptyAnswers(db_, job.id, row_of, rows));
  return rows;
}

ListOr<MetricValueRecord> SqliteTxn::MetricValues(const JobId& job) {
  Statement q = db_.Query(
      "SELECT metric, grader_version, items_digest, planned, scored, value, low, high FROM metric_value"
      " WHERE job = ? ORDER BY metric, grader_version, items_digest");
  q.Id(job.digest);
  std::vector<MetricValueRecord> values;
  while (q.Row()) {
    values.push_back({.job = job,
                      .metric = q.GetString(0),
                      .grader_version = q.GetString(1),
                      .items_digest = q.GetId(2),
                      .planned = q.GetInt(3),
                      .scored = q.GetInt(4),
                      .value = OptionalAt(q, 5),
                      .low = OptionalAt(q, 6),
                      .high = OptionalAt(q, 7)});
  }
  IHA_RETURN_IF_ERROR(q.status());
  return values;
}

absl::Status SqliteTxn::PutMetricValue(const MetricValueRecord& v) {
  Statement q = db_.Query(
      "INSERT INTO metric_value(job, metric, grader_version, items_digest, planned, scored, value, low, high)"
      " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  q.Id(v.job.digest).Text(v.metric).Text(v.grader_version).Id(v.items_digest).Int(v.planned).Int(v.scored);
  BindOptional(&q, v.value);
  BindOptional(&q, v.low);
  BindOptional(&q, v.high);
  return q.Run();
}

ListOr<AverageRankRecord> SqliteTxn::AverageRanks(const SweepId& sweep) {
  Statement q = db_.Query(
      "SELECT model_index, items_digest, value FROM avg_rank WHERE sweep = ? ORDER BY items_digest, model_index");
  q.Id(sweep.digest);
  std::vector<AverageRankRecord> ranks;
  while (q.Row()) {
    ranks.push_back({.sweep = sweep,
                     .model_index = static_cast<int32_t>(q.GetInt(0)),
                     .items_digest = q.GetId(1),
                     .value = OptionalAt(q, 2)});
  }
  IHA_RETURN_IF_ERROR(q.status());
  return ranks;
}

absl::Status SqliteTxn::PutAverageRank(const AverageRankRecord& rank) {
  Statement q = db_.Query(
      "INSERT INTO avg_rank(sweep, model_index, items_digest, value) VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING");
  q.Id(rank.sweep.digest).Int(rank.model_index).Id(rank.items_digest);
  BindOptional(&q, rank.value);
  return q.Run();
}

}  // namespace iha::coordinator
