// Generations, item rows, grades and the values computed from them.
#include <cstring>

#include "benchmarks/scoring/plain_answers.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/store/sqlite_txn.h"

namespace iha::coordinator {
namespace {

// Little endian, 4 bytes a token, whatever the host.
std::string PackTokens(const std::vector<int32_t>& tokens) {
  std::string bytes;
  bytes.reserve(tokens.size() * 4);
  for (const int32_t token : tokens) {
    const uint32_t value = static_cast<uint32_t>(token);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>((value >> shift) & 0xff));
  }
  return bytes;
}

std::vector<int32_t> UnpackTokens(const std::string& bytes) {
  std::vector<int32_t> tokens;
  tokens.reserve(bytes.size() / 4);
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    uint32_t value = 0;
    for (size_t b = 0; b < 4; ++b) value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i + b])) << (8 * b);
    tokens.push_back(static_cast<int32_t>(value));
  }
  return tokens;
}

Unscored UnscoredAt(const Statement& q, int column) { return static_cast<Unscored>(q.GetInt(column)); }

}  // namespace

ListOr<int64_t> SqliteTxn::StoredItems(const JobId& job) {
  Statement q = db_.Query("SELECT item FROM item_result WHERE job = ? ORDER BY item");
  q.Id(job.digest);
  std::vector<int64_t> items;
  while (q.Row()) items.push_back(q.GetInt(0));
  IHA_RETURN_IF_ERROR(q.status());
  return items;
}

ListOr<int64_t> SqliteTxn::MissingItems(const JobId& job, ItemRange range) {
  Statement q = db_.Query("SELECT item FROM item_result WHERE job = ? AND item >= ? AND item < ? ORDER BY item");
  q.Id(job.digest).Int(range.begin).Int(range.end);
  std::vector<int64_t> missing;
  int64_t next = range.begin;
  while (q.Row()) {
    for (; next < q.GetInt(0); ++next) missing.push_back(next);
    next = q.GetInt(0) + 1;
  }
  IHA_RETURN_IF_ERROR(q.status());
  for (; next < range.end; ++next) missing.push_back(next);
  return missing;
}

MaybeOr<Digest> SqliteTxn::ItemHash(const JobId& job, int64_t item) {
  Statement q = db_.Query("SELECT hash FROM item_result WHERE job = ? AND item = ?");
  std::optional<Digest> hash;
  if (q.Id(job.digest).Int(item).Row()) hash = q.GetId(0);
  IHA_RETURN_IF_ERROR(q.status());
  return hash;
}

absl::StatusOr<Digest> SqliteTxn::ItemsDigest(const JobId& job) {
  Statement q = db_.Query("SELECT hash FROM item_result WHERE job = ? ORDER BY item");
  q.Id(job.digest);
  Sha256 sha;
  while (q.Row()) sha.Update(q.GetString(0));
  IHA_RETURN_IF_ERROR(q.status());
  return sha.Finish();
}

MaybeOr<ItemResult> SqliteTxn::LoadItem(const JobId& job, int64_t item) {
  Statement q = db_.Query("SELECT grader_version FROM job WHERE id = ?");
  const std::string version = q.Id(job.digest).Row() ? q.GetString(0) : "";
  IHA_RETURN_IF_ERROR(q.status());
  return LoadItemGraded(job, item, version);
}

ListOr<std::string> SqliteTxn::GraderVersions(const JobId& job) {
  Statement q = db_.Query("SELECT DISTINCT grader_version FROM item_value WHERE job = ? ORDER BY grader_version");
  q.Id(job.digest);
  std::vector<std::string> versions;
  while (q.Row()) versions.push_back(q.GetString(0));
  IHA_RETURN_IF_ERROR(q.status());
  return versions;
}

MaybeOr<ItemResult> SqliteTxn::LoadItemGraded(const JobId& job, int64_t item, const std::string& grader_version) {
  Statement head = db_.Query("SELECT item_id, unscored FROM item_result WHERE job = ? AND item = ?");
  if (!head.Id(job.digest).Int(item).Row()) {
    IHA_RETURN_IF_ERROR(head.status());
    return std::nullopt;
  }
  ItemResult result;
  result.index = item;
  result.item_id = head.GetString(0);
  result.unscored = UnscoredAt(head, 1);

  Statement samples = db_.Query("SELECT gen_key FROM sample WHERE job = ? AND item = ? ORDER BY k");
  samples.Id(job.digest).Int(item);
  while (samples.Row()) result.samples.emplace_back().generation.digest = samples.GetId(0);
  IHA_RETURN_IF_ERROR(samples.status());

  Statement grades = db_.Query(
      "SELECT k, metric, extracted, valid, unscored, num, den, reason, same_as FROM grade"
      " WHERE job = ? AND item = ? AND grader_version = ? ORDER BY k, ord");
  grades.Id(job.digest).Int(item).Text(grader_version);
  while (grades.Row()) {
    const size_t k = static_cast<size_t>(grades.GetInt(0));
    if (k >= result.samples.size()) return DataLoss("job {} item {}: grade without its sample", job.Hex(), item);
    result.samples[k].grades.push_back({.metric = grades.GetString(1),
                                        .extracted = grades.GetString(2),
                                        .valid = grades.GetInt(3) != 0,
                                        .unscored = UnscoredAt(grades, 4),
                                        .score = {grades.GetInt(5), grades.GetInt(6)},
                                        .reason = grades.GetString(7),
                                        .group = static_cast<int32_t>(grades.GetInt(8))});
  }
  IHA_RETURN_IF_ERROR(grades.status());

  Statement values = db_.Query(
      "SELECT metric, unscored, num, den, winner, tie_num, tie_den, invalid FROM item_value"
      " WHERE job = ? AND item = ? AND grader_version = ? ORDER BY ord");
  values.Id(job.digest).Int(item).Text(grader_version);
  while (values.Row()) {
    result.values.push_back({.metric = values.GetString(0),
                             .unscored = UnscoredAt(values, 1),
                             .score = {values.GetInt(2), values.GetInt(3)},
                             .winner = values.GetString(4),
                             .tie = {values.GetInt(5), values.GetInt(6)},
                             .invalid = static_cast<int32_t>(values.GetInt(7))});
  }
  IHA_RETURN_IF_ERROR(values.status());
  return result;
}

absl::Status SqliteTxn::InsertItem(const JobId& job, const std::string& grader_version, const ItemResult& item) {
  IHA_RETURN_IF_ERROR(db_.Query("INSERT INTO item_result(job, item, item_id, unscored, hash) VALUES(?, ?, ?, ?, ?)")
                          .Id(job.digest)
                          .Int(item.index)
                          .Text(item.item_id)
                          .Int(static_cast<int64_t>(item.unscored))
                          .Id(item.Hash())
                          .Run());
  for (size_t k = 0; k < item.samples.size(); ++k) {
    const SampleResult& sample = item.samples[k];
    IHA_RETURN_IF_ERROR(db_.Query("INSERT INTO sample(job, item, k, gen_key) VALUES(?, ?, ?, ?)")
                            .Id(job.digest)
                            .Int(item.index)
                            .Int(static_cast<int64_t>(k))
                            .Id(sample.generation.digest)
                            .Run());
  }
  return InsertGrades(job, grader_version, item);
}

absl::Status SqliteTxn::InsertGrades(const JobId& job, const std::string& grader_version, const ItemResult& item) {
  for (size_t k = 0; k < item.samples.size(); ++k) {
    const SampleResult& sample = item.samples[k];
    for (size_t g = 0; g < sample.grades.size(); ++g) {
      const SampleGrade& grade = sample.grades[g];
      IHA_RETURN_IF_ERROR(
          db_.Query("INSERT INTO grade(job, item, k, grader_version, ord, metric, extracted, valid, unscored, num, den,"
                    " reason, same_as) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
              .Id(job.digest)
              .Int(item.index)
              .Int(static_cast<int64_t>(k))
              .Text(grader_version)
              .Int(static_cast<int64_t>(g))
              .Text(grade.metric)
              .Blob(grade.extracted)
              .Int(grade.valid ? 1 : 0)
              .Int(static_cast<int64_t>(grade.unscored))
              .Int(grade.score.num)
              .Int(grade.score.den)
              .Blob(grade.reason)
              .Int(grade.group)
              .Run());
    }
  }
  for (size_t v = 0; v < item.values.size(); ++v) {
    const ItemValue& value = item.values[v];
    IHA_RETURN_IF_ERROR(
        db_.Query("INSERT INTO item_value(job, item, grader_version, ord, metric, unscored, num, den, winner, tie_num,"
                  " tie_den, invalid) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
            .Id(job.digest)
            .Int(item.index)
            .Text(grader_version)
            .Int(static_cast<int64_t>(v))
            .Text(value.metric)
            .Int(static_cast<int64_t>(value.unscored))
            .Int(value.score.num)
            .Int(value.score.den)
            .Blob(value.winner)
            .Int(value.tie.num)
            .Int(value.tie.den)
            .Int(value.invalid)
            .Run());
  }
  return absl::OkStatus();
}

MaybeOr<ReadTxn::StoredGeneration> SqliteTxn::FindGeneration(const GenKey& key) {
  Statement q = db_.Query("SELECT tokens, text, finish, prompt_tokens, checksum FROM generation WHERE gen_key = ?");
  if (!q.Id(key.digest).Row()) {
    IHA_RETURN_IF_ERROR(q.status());
    return std::nullopt;
  }
  StoredGeneration stored;
  stored.generation = {.key = key,
                       .tokens = UnpackTokens(q.GetString(0)),
                       .text = q.GetString(1),
                       .finish = static_cast<FinishReason>(q.GetInt(2)),
                       .prompt_tokens = static_cast<int32_t>(q.GetInt(3))};
  stored.checksum = q.GetId(4);
  return stored;
}

absl::Status SqliteTxn::InsertGeneration(const Generation& generation) {
  return db_
      .Query(
          "INSERT INTO generation(gen_key, tokens, text, finish, prompt_tokens, blank, checksum)"
          " VALUES(?, ?, ?, ?, ?, ?, ?)")
      .Id(generation.key.digest)
      .Blob(PackTokens(generation.tokens))
      .Blob(generation.text)
      .Int(static_cast<int64_t>(generation.finish))
      .Int(generation.prompt_tokens)
      .Int(scoring::Trimmed(generation.text).empty() ? 1 : 0)
      .Id(generation.Checksum())
      .Run();
}

absl::Status SqliteTxn::RepairGeneration(const Generation& generation) {
  return db_
      .Query(
          "UPDATE generation SET tokens = ?, text = ?, finish = ?, prompt_tokens = ?, blank = ?"
          " WHERE gen_key = ? AND checksum = ?")
      .Blob(PackTokens(generation.tokens))
      .Blob(generation.text)
      .Int(static_cast<int64_t>(generation.finish))
      .Int(generation.prompt_tokens)
      .Int(scoring::Trimmed(generation.text).empty() ? 1 : 0)
      .Id(generation.key.digest)
      .Id(generation.Checksum())
      .Run();
}

}  // namespace iha::coordinator
