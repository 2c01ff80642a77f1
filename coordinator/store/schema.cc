#include "coordinator/store/schema.h"

#include <iterator>

#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/store/views.h"

namespace iha::coordinator {
namespace {

// What is asked: sweeps, jobs, shards and their attempts.
constexpr const char* kWork = R"sql(
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE sweep (
  ord          INTEGER PRIMARY KEY,  -- order of submission
  id           BLOB NOT NULL UNIQUE CHECK (length(id) = 32),
  spec         TEXT NOT NULL,        -- JSON, all defaults filled in
  submitted_us INTEGER NOT NULL
) STRICT;

CREATE TABLE job (
  ord              INTEGER PRIMARY KEY,
  id               BLOB NOT NULL UNIQUE CHECK (length(id) = 32),
  sweep            BLOB NOT NULL REFERENCES sweep(id),
  model_index      INTEGER NOT NULL,
  entry_index      INTEGER NOT NULL,
  spec             TEXT NOT NULL,    -- JSON
  model            TEXT NOT NULL,
  numerics_id      TEXT NOT NULL,
  grader_version   TEXT NOT NULL,
  items            INTEGER NOT NULL CHECK (items > 0),
  cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
  UNIQUE (sweep, model_index, entry_index)
) STRICT;
CREATE TRIGGER job_cancel_is_final BEFORE UPDATE ON job
WHEN NEW.cancel_requested < OLD.cancel_requested OR NEW.id <> OLD.id OR NEW.spec <> OLD.spec OR NEW.items <> OLD.items
BEGIN SELECT RAISE(ABORT, 'a job only changes by its cancel mark, once'); END;

CREATE TABLE shard (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused
  job              BLOB NOT NULL REFERENCES job(id),
  first_item       INTEGER NOT NULL CHECK (first_item >= 0),
  end_item         INTEGER NOT NULL,
  estimated_tokens INTEGER NOT NULL,
  state            TEXT NOT NULL DEFAULT 'PENDING'
                   CHECK (state IN ('PENDING', 'LEASED', 'DONE', 'SPLIT', 'QUARANTINED', 'CANCELLED')),
  incarnation      INTEGER NOT NULL DEFAULT 0,
  epoch            INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  owner            TEXT,
  not_before_us    INTEGER NOT NULL DEFAULT 0,
  parent           INTEGER REFERENCES shard(id),
  CHECK (end_item > first_item),
  CHECK ((state = 'LEASED') = (owner IS NOT NULL)),
  CHECK (epoch > 0 OR state IN ('PENDING', 'CANCELLED'))
) STRICT;
CREATE INDEX shard_by_job ON shard(job);
CREATE INDEX shard_open ON shard(state) WHERE state IN ('PENDING', 'LEASED');
CREATE INDEX shard_pending ON shard(job) WHERE state = 'PENDING';
CREATE INDEX shard_leased ON shard(id) WHERE state = 'LEASED';
CREATE TRIGGER shard_starts_pending BEFORE INSERT ON shard WHEN NEW.state <> 'PENDING' OR NEW.epoch <> 0
BEGIN SELECT RAISE(ABORT, 'a shard starts PENDING'); END;
-- The table of state/shard_machine.cc. Epochs grow by one, and only in the grant (INV-LEASE-1).
CREATE TRIGGER shard_transition BEFORE UPDATE ON shard WHEN NOT (
     (OLD.state = 'PENDING' AND NEW.state = 'LEASED' AND NEW.epoch = OLD.epoch + 1)
  OR (OLD.state = 'PENDING' AND NEW.state IN ('PENDING', 'DONE', 'CANCELLED') AND NEW.epoch = OLD.epoch)
  OR (OLD.state = 'LEASED' AND NEW.state IN ('LEASED', 'DONE', 'PENDING', 'SPLIT', 'QUARANTINED', 'CANCELLED')
      AND NEW.epoch = OLD.epoch))
BEGIN SELECT RAISE(ABORT, 'INV-SHARD-2: illegal shard transition'); END;
CREATE TRIGGER shard_identity BEFORE UPDATE ON shard
WHEN NEW.job <> OLD.job OR NEW.first_item <> OLD.first_item OR NEW.end_item <> OLD.end_item
BEGIN SELECT RAISE(ABORT, 'a shard keeps its range'); END;
CREATE TRIGGER shard_stays BEFORE DELETE ON shard
BEGIN SELECT RAISE(ABORT, 'shards are never deleted'); END;

CREATE TABLE attempt (
  seq         INTEGER PRIMARY KEY,
  shard       INTEGER NOT NULL REFERENCES shard(id),
  incarnation INTEGER NOT NULL,
  epoch       INTEGER NOT NULL CHECK (epoch > 0),
  worker      TEXT NOT NULL,
  event       TEXT NOT NULL
              CHECK (event IN ('granted', 'done', 'lost', 'failed', 'drained', 'cancelled', 'refunded')),
  request     TEXT NOT NULL DEFAULT '',
  reason      TEXT NOT NULL DEFAULT '',
  at_us       INTEGER NOT NULL,
  CHECK ((event = 'granted') = (request <> '')),
  CHECK (event NOT IN ('lost', 'failed', 'refunded') OR reason <> ''),  -- INV-LEASE-2
  UNIQUE (shard, epoch, event)
) STRICT;
CREATE INDEX attempt_by_request ON attempt(worker, request) WHERE event = 'granted';
CREATE INDEX attempt_by_worker ON attempt(worker);
CREATE TRIGGER attempt_is_append_only BEFORE UPDATE ON attempt
BEGIN SELECT RAISE(ABORT, 'attempt is append-only'); END;
CREATE TRIGGER attempt_stays BEFORE DELETE ON attempt
BEGIN SELECT RAISE(ABORT, 'attempt is append-only'); END;

CREATE TABLE worker (
  id            TEXT PRIMARY KEY,
  incarnation   INTEGER NOT NULL,
  numerics      TEXT NOT NULL,  -- JSON array
  description   TEXT NOT NULL,
  blamed        TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE model_offer (
  worker         TEXT NOT NULL REFERENCES worker(id),
  model          TEXT NOT NULL,
  weights        BLOB NOT NULL CHECK (length(weights) = 32),
  tokenizer      BLOB NOT NULL CHECK (length(tokenizer) = 32),
  context_tokens INTEGER NOT NULL,
  PRIMARY KEY (worker, model)
) STRICT;
CREATE TABLE model_binding (
  sweep          BLOB NOT NULL REFERENCES sweep(id),
  model          TEXT NOT NULL,
  weights        BLOB NOT NULL CHECK (length(weights) = 32),
  tokenizer      BLOB NOT NULL CHECK (length(tokenizer) = 32),
  context_tokens INTEGER NOT NULL,
  PRIMARY KEY (sweep, model)
) STRICT;
CREATE TRIGGER model_binding_is_final BEFORE UPDATE ON model_binding
BEGIN SELECT RAISE(ABORT, 'the first offer binds a model for its sweep'); END;
CREATE TABLE note (
  ord   INTEGER PRIMARY KEY,
  sweep BLOB NOT NULL REFERENCES sweep(id),
  text  TEXT NOT NULL,
  UNIQUE (sweep, text)
) STRICT;
)sql";

// What came out: generations, item rows, grades, values. Strings of models are BLOBs: any bytes, never text.
constexpr const char* kResults = R"sql(
CREATE TABLE generation (
  gen_key       BLOB PRIMARY KEY CHECK (length(gen_key) = 32),
  tokens        BLOB NOT NULL CHECK (length(tokens) % 4 = 0),  -- int32 little endian
  text          BLOB NOT NULL,
  finish        INTEGER NOT NULL CHECK (finish IN (1, 2, 3)),  -- eos, stop, length
  prompt_tokens INTEGER NOT NULL CHECK (prompt_tokens >= 0),
  blank         INTEGER NOT NULL CHECK (blank IN (0, 1)),      -- text is empty or white space
  checksum      BLOB NOT NULL CHECK (length(checksum) = 32)
) STRICT;
-- First write wins; only a row that lost its value may get it back.
CREATE TRIGGER generation_value BEFORE UPDATE ON generation
WHEN NEW.gen_key <> OLD.gen_key OR NEW.checksum <> OLD.checksum
BEGIN SELECT RAISE(ABORT, 'INV-CACHE-1: a generation never changes'); END;

CREATE TABLE item_result (
  job      BLOB NOT NULL REFERENCES job(id),
  item     INTEGER NOT NULL CHECK (item >= 0),
  item_id  TEXT NOT NULL,
  unscored INTEGER NOT NULL CHECK (unscored BETWEEN 0 AND 7 AND unscored <> 1),  -- "pending" is never stored
  hash     BLOB NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (job, item)
) STRICT, WITHOUT ROWID;

CREATE TABLE sample (
  job     BLOB NOT NULL,
  item    INTEGER NOT NULL,
  k       INTEGER NOT NULL CHECK (k >= 0),
  gen_key BLOB NOT NULL REFERENCES generation(gen_key),
  PRIMARY KEY (job, item, k),
  FOREIGN KEY (job, item) REFERENCES item_result(job, item)
) STRICT, WITHOUT ROWID;

CREATE TABLE grade (
  job            BLOB NOT NULL,
  item           INTEGER NOT NULL,
  k              INTEGER NOT NULL,
  grader_version TEXT NOT NULL,
  ord            INTEGER NOT NULL,
  metric         TEXT NOT NULL,
  extracted      BLOB NOT NULL,
  valid          INTEGER NOT NULL CHECK (valid IN (0, 1)),
  unscored       INTEGER NOT NULL CHECK (unscored BETWEEN 0 AND 7 AND unscored <> 1),
  num            INTEGER NOT NULL,
  den            INTEGER NOT NULL CHECK (den > 0),
  reason         BLOB NOT NULL,
  PRIMARY KEY (job, item, k, grader_version, ord),
  UNIQUE (job, item, k, metric, grader_version),
  FOREIGN KEY (job, item, k) REFERENCES sample(job, item, k)
) STRICT, WITHOUT ROWID;

CREATE TABLE item_value (
  job            BLOB NOT NULL,
  item           INTEGER NOT NULL,
  grader_version TEXT NOT NULL,
  ord            INTEGER NOT NULL,
  metric         TEXT NOT NULL,
  unscored       INTEGER NOT NULL CHECK (unscored BETWEEN 0 AND 7 AND unscored <> 1),
  num            INTEGER NOT NULL,
  den            INTEGER NOT NULL CHECK (den > 0),
  winner         BLOB NOT NULL,
  tie_num        INTEGER NOT NULL,
  tie_den        INTEGER NOT NULL CHECK (tie_den > 0),
  invalid        INTEGER NOT NULL,
  PRIMARY KEY (job, item, grader_version, ord),
  FOREIGN KEY (job, item) REFERENCES item_result(job, item)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER item_result_is_final BEFORE UPDATE ON item_result
BEGIN SELECT RAISE(ABORT, 'INV-RES-1: the first result of an item stays'); END;
CREATE TRIGGER item_result_stays BEFORE DELETE ON item_result
BEGIN SELECT RAISE(ABORT, 'INV-RES-1: the first result of an item stays'); END;
CREATE TRIGGER sample_is_final BEFORE UPDATE ON sample
BEGIN SELECT RAISE(ABORT, 'samples never change'); END;
CREATE TRIGGER sample_stays BEFORE DELETE ON sample
BEGIN SELECT RAISE(ABORT, 'samples never change'); END;
CREATE TRIGGER grade_is_final BEFORE UPDATE ON grade
BEGIN SELECT RAISE(ABORT, 'a regrade adds rows under a new grader version'); END;
CREATE TRIGGER item_value_is_final BEFORE UPDATE ON item_value
BEGIN SELECT RAISE(ABORT, 'a regrade adds rows under a new grader version'); END;

CREATE TABLE divergence (
  seq     INTEGER PRIMARY KEY,
  kind    TEXT NOT NULL CHECK (kind IN ('generation', 'item', 'checksum')),
  subject TEXT NOT NULL,
  worker  TEXT NOT NULL,
  stored  BLOB NOT NULL,
  offered BLOB NOT NULL,
  at_us   INTEGER NOT NULL,
  UNIQUE (kind, subject, offered)
) STRICT;

CREATE TABLE metric_value (
  job            BLOB NOT NULL REFERENCES job(id),
  metric         TEXT NOT NULL,
  grader_version TEXT NOT NULL,
  items_digest   BLOB NOT NULL CHECK (length(items_digest) = 32),
  planned        INTEGER NOT NULL,
  scored         INTEGER NOT NULL CHECK (scored BETWEEN 0 AND planned),
  value          REAL,
  low            REAL,
  high           REAL,
  PRIMARY KEY (job, metric, grader_version, items_digest),
  CHECK ((value IS NULL) = (scored = 0))
) STRICT;

CREATE TABLE avg_rank (
  sweep        BLOB NOT NULL REFERENCES sweep(id),
  model_index  INTEGER NOT NULL,
  items_digest BLOB NOT NULL CHECK (length(items_digest) = 32),
  value        REAL,
  PRIMARY KEY (sweep, model_index, items_digest)
) STRICT;
)sql";

// Whether a failure was of the data: such an attempt says nothing about its worker. Older rows do not know.
constexpr const char* kPermanent = R"sql(
ALTER TABLE attempt ADD COLUMN permanent INTEGER NOT NULL DEFAULT 0
  CHECK (permanent = 0 OR (permanent = 1 AND event = 'failed'));
)sql";

// Which samples of an item gave the same answer. Older rows do not know: their votes go by the texts.
constexpr const char* kGroups = R"sql(
ALTER TABLE grade ADD COLUMN same_as INTEGER NOT NULL DEFAULT -1 CHECK (same_as BETWEEN -1 AND k);
)sql";

// 5. What worker processes did and how long it took: one row a process and job, replaced by its later reports. Nothing
// here is part of a result. Rows before this version have none.
constexpr const char* kTelemetry = R"sql(
CREATE TABLE telemetry (
  job                  BLOB NOT NULL REFERENCES job(id),
  worker               TEXT NOT NULL,
  incarnation          INTEGER NOT NULL,
  sequence             INTEGER NOT NULL CHECK (sequence > 0),
  prompt_tokens        INTEGER NOT NULL,
  reused_tokens        INTEGER NOT NULL,
  prefill_tokens       INTEGER NOT NULL,
  decode_tokens        INTEGER NOT NULL,
  generated_tokens     INTEGER NOT NULL,
  steps                INTEGER NOT NULL,
  step_sequences       INTEGER NOT NULL,
  preemptions          INTEGER NOT NULL,
  prefix_hit_blocks    INTEGER NOT NULL,
  prefix_lookup_blocks INTEGER NOT NULL,
  kv_blocks            INTEGER NOT NULL,
  kv_blocks_peak       INTEGER NOT NULL,
  prefill_ns           INTEGER NOT NULL,
  decode_ns            INTEGER NOT NULL,
  schedule_ns          INTEGER NOT NULL,
  sample_ns            INTEGER NOT NULL,
  PRIMARY KEY (job, worker, incarnation)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER telemetry_grows BEFORE UPDATE ON telemetry WHEN NEW.sequence <= OLD.sequence
BEGIN SELECT RAISE(ABORT, 'a later report takes the place of an earlier one, never the other way'); END;

CREATE TABLE telemetry_op (
  job         BLOB NOT NULL,
  worker      TEXT NOT NULL,
  incarnation INTEGER NOT NULL,
  ord         INTEGER NOT NULL,
  name        TEXT NOT NULL,
  calls       INTEGER NOT NULL,
  time_ns     INTEGER NOT NULL,
  flops       REAL NOT NULL,
  bytes       REAL NOT NULL,
  PRIMARY KEY (job, worker, incarnation, ord),
  FOREIGN KEY (job, worker, incarnation) REFERENCES telemetry(job, worker, incarnation)
) STRICT, WITHOUT ROWID;
)sql";

// An item may be unscored for two more reasons. No row changes, so that the three tables' texts alone are rewritten
// (SQLite's own procedure for such a change): rebuilding them would copy every grade of a large file. RESET reads the
// schema again; the table that comes and goes raises the schema's number, so that open readers do so, too.
constexpr const char* kMoreReasons = R"sql(
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'unscored BETWEEN 0 AND 7', 'unscored BETWEEN 0 AND 9')
WHERE type = 'table' AND name IN ('item_result', 'grade', 'item_value');
PRAGMA writable_schema = RESET;
CREATE TABLE schema_changed (x INTEGER) STRICT;
DROP TABLE schema_changed;
)sql";

// What a grant goes by, without a look into the specs. Open shards of a sweep with an item_order had it in their ids;
// of the others the turn is 0. Finished ones are never granted again.
constexpr const char* kTurns = R"sql(
ALTER TABLE job ADD COLUMN benchmark TEXT NOT NULL DEFAULT '';
UPDATE job SET benchmark = spec ->> '$.entry.benchmark';
ALTER TABLE shard ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
UPDATE shard SET turn = id WHERE state IN ('PENDING', 'LEASED') AND job IN
  (SELECT j.id FROM job j JOIN sweep w ON w.id = j.sweep WHERE w.spec ->> '$.item_order' IS NOT NULL);
DROP INDEX shard_pending;
CREATE INDEX shard_next ON shard(job, turn, first_item, not_before_us) WHERE state = 'PENDING';
)sql";

// The views in their present form take the place of those of an earlier version.
constexpr const char* kDropViews = R"sql(
DROP VIEW v_cell;
DROP VIEW v_sample;
DROP VIEW v_item;
DROP VIEW v_unscored;
DROP VIEW v_job;
)sql";

// Migration i brings version i to i + 1: its scripts, in order, nullptr at the end.
constexpr const char* kMigrations[][3] = {
    {kWork, kResults, nullptr},     {kPermanent, nullptr, nullptr}, {kGroups, nullptr, nullptr},
    {kTelemetry, nullptr, nullptr}, {kViews, nullptr, nullptr},     {kMoreReasons, nullptr, nullptr},
    {kTurns, nullptr, nullptr},     {kDropViews, kViews, nullptr},
};

// 0 for an empty file.
absl::StatusOr<int64_t> VersionOf(Connection* db) {
  Statement tables = db->Query("SELECT count(*) FROM sqlite_schema");
  const bool empty = tables.Row() && tables.GetInt(0) == 0;
  IHA_RETURN_IF_ERROR(tables.status());
  if (empty) return 0;
  Statement has_meta = db->Query("SELECT count(*) FROM sqlite_schema WHERE name IN ('meta', 'sweep', 'shard')");
  const bool ours = has_meta.Row() && has_meta.GetInt(0) == 3;
  IHA_RETURN_IF_ERROR(has_meta.status());
  if (!ours) return DataLoss("{}: another program's database; give another path to --db", db->path());
  Statement version = db->Query("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'schema_version'");
  if (version.Row()) return version.GetInt(0);
  IHA_RETURN_IF_ERROR(version.status());
  return DataLoss("{}: meta has no schema_version; restore a backup", db->path());
}

absl::Status CheckNotNewer(Connection* db, int64_t version) {
  if (version <= SchemaVersion()) return absl::OkStatus();
  return FailedPrecondition("{}: schema version {} is newer than this program's {}; use a newer iha-eval", db->path(),
                            version, SchemaVersion());
}

absl::Status RunMigration(Connection* db, int64_t from) {
  IHA_RETURN_IF_ERROR(db->Exec("BEGIN IMMEDIATE"));
  // Another process may have migrated while we waited for the lock.
  IHA_ASSIGN_OR_RETURN(const int64_t version, VersionOf(db));
  if (version != from) return db->Exec("ROLLBACK");
  for (const char* const* script = kMigrations[from]; *script != nullptr; ++script) {
    IHA_RETURN_IF_ERROR(db->Exec(*script));
  }
  Statement set = db->Query(
      "INSERT INTO meta(key, value) VALUES('schema_version', ?1) "
      "ON CONFLICT(key) DO UPDATE SET value = excluded.value");
  IHA_RETURN_IF_ERROR(set.Text(fmt::format("{}", from + 1)).Run());
  return db->Exec("COMMIT");
}

}  // namespace

int SchemaVersion() { return static_cast<int>(std::size(kMigrations)); }

absl::Status Migrate(Connection* db) {
  while (true) {
    IHA_ASSIGN_OR_RETURN(const int64_t version, VersionOf(db));
    IHA_RETURN_IF_ERROR(CheckNotNewer(db, version));
    if (version == SchemaVersion()) return absl::OkStatus();
    const absl::Status status = RunMigration(db, version);
    if (!status.ok()) {
      if (db->in_transaction()) db->Exec("ROLLBACK").IgnoreError();
      return status;
    }
  }
}

absl::Status CheckSchema(Connection* db) {
  IHA_ASSIGN_OR_RETURN(const int64_t version, VersionOf(db));
  IHA_RETURN_IF_ERROR(CheckNotNewer(db, version));
  if (version == SchemaVersion()) return absl::OkStatus();
  if (version == 0)
    return FailedPrecondition("{}: an empty file, no sweep was ever stored in it; check --db", db->path());
  return FailedPrecondition(
      "{}: schema version {} is older than this program's {}; open it once with `iha-eval run` or "
      "iha-coordinator, which migrates it",
      db->path(), version, SchemaVersion());
}

}  // namespace iha::coordinator
