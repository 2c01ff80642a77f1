// SqliteStore and its file: a disk that is full while the file is made, and a file of the first schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "common/errors.h"
#include "common/rng.h"
#include "common/status_macros.h"
#include "coordinator/store/backup.h"
#include "tests/coordinator/sim_world.h"
#include "tests/coordinator/store_fixture.h"

namespace iha::coordinator {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// SQLite's own files, of which one kind fails as on a full disk: the result code is no SQLITE_FULL, only errno tells.
// One at a time; the default VFS while it lives.
class FullDisk {
 public:
  enum class Fails { kOpen, kSharedMemory, kWriteOfBackup };
  FullDisk(Fails fails, int error) : base_(sqlite3_vfs_find(nullptr)), shim_(*base_) {
    fails_ = fails;
    error_ = error;
    base_open_ = base_->xOpen;
    shim_.zName = "full_disk";
    shim_.xOpen = Open;
    shim_.xGetLastError = [](sqlite3_vfs*, int, char*) { return error_; };
    EXPECT_EQ(sqlite3_vfs_register(&shim_, 1), SQLITE_OK);
  }
  ~FullDisk() {
    sqlite3_vfs_unregister(&shim_);
    sqlite3_vfs_register(base_, 1);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  static int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
    if (fails_ == Fails::kOpen) {
      file->pMethods = nullptr;
      return SQLITE_CANTOPEN;
    }
    const int rc = base_open_(vfs, name, file, flags, out);
    if (rc != SQLITE_OK || file->pMethods == nullptr || (flags & SQLITE_OPEN_MAIN_DB) == 0) return rc;
    if (fails_ == Fails::kWriteOfBackup && std::string(name).find(".tmp") == std::string::npos) return rc;
    methods_ = *file->pMethods;
    if (fails_ == Fails::kSharedMemory) {
      methods_.xShmMap = [](sqlite3_file*, int, int, int, void volatile**) { return SQLITE_IOERR_SHMSIZE; };
    } else {
      methods_.xWrite = [](sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_FULL; };
    }
    file->pMethods = &methods_;
    return rc;
  }

  static inline Fails fails_ = Fails::kOpen;
  static inline int error_ = 0;
  static inline int (*base_open_)(sqlite3_vfs*, const char*, sqlite3_file*, int, int*) = nullptr;
  static inline sqlite3_io_methods methods_ = {};
  sqlite3_vfs* const base_;
  sqlite3_vfs shim_;
};

TEST(StoreFile, ADiskThatIsFullAtTheStartIsNamed) {
  for (const int error : {ENOSPC, EDQUOT, EIO}) {
    for (const auto fails : {FullDisk::Fails::kOpen, FullDisk::Fails::kSharedMemory}) {
      SCOPED_TRACE(fmt::format("errno {} of {}", error, static_cast<int>(fails)));
      const TempDb db;
      absl::Status opened;
      {
        const FullDisk disk(fails, error);
        opened = OpenSqliteStore({.path = db.path()}).status();
      }
      EXPECT_THAT(MessageOf(opened), HasSubstr(db.path()));
      if (error == EIO) {
        EXPECT_THAT(MessageOf(opened), ::testing::Not(HasSubstr("disk full")));
      } else {
        EXPECT_EQ(opened.code(), absl::StatusCode::kResourceExhausted) << opened;
        EXPECT_THAT(MessageOf(opened), HasSubstr("disk full; nothing of this step was written: free space"));
      }
      // What was begun is no obstacle once there is room.
      EXPECT_TRUE(OpenSqliteStore({.path = db.path()}).ok());
    }
  }
}

TEST(StoreFile, ABackupOntoAFullDiskNamesTheCopy) {
  const TempDb db;
  { const StoreFixture fixture(db.path()); }
  const std::string out = db.folder() + "/copy.db";
  absl::Status status;
  {
    const FullDisk disk(FullDisk::Fails::kWriteOfBackup, ENOSPC);
    status = BackupDatabase(db.path(), out);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(MessageOf(status), ::testing::StartsWith(out));
  EXPECT_THAT(MessageOf(status), HasSubstr("disk full"));
  EXPECT_TRUE(BackupDatabase(db.path(), out).ok());
}

// Copied alone, as people do, the file is the whole database.
TEST(StoreFile, OnceClosedTheFileAloneHoldsEverything) {
  const TempDb db;
  {
    StoreFixture fixture(db.path());
    EXPECT_EQ(fixture.FreshShard().state, ShardState::kPending);  // a reader is open, too
  }
  EXPECT_FALSE(std::filesystem::exists(db.path() + "-wal"));
  const std::string copy = db.folder() + "/a copy?.db";
  std::filesystem::copy_file(db.path(), copy);
  const auto store = OpenSqliteStoreReadOnly(copy);
  ASSERT_TRUE(store.ok()) << store.status();
  size_t sweeps = 0;
  ASSERT_TRUE((*store)
                  ->Read([&](ReadTxn& txn) -> absl::Status {
                    sweeps = txn.Sweeps().value().size();
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(sweeps, 1u);
}

// On a medium that takes no file beside the database: the shared memory of a WAL cannot be made there.
TEST(StoreFile, IsReadWhereNothingCanBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  const TempDb db;
  { const StoreFixture fixture(db.path()); }
  ASSERT_EQ(chmod(db.folder().c_str(), 0555), 0);
  const auto store = OpenSqliteStoreReadOnly(db.path());
  EXPECT_TRUE(store.ok()) << store.status();
  ASSERT_EQ(chmod(db.folder().c_str(), 0755), 0);
}

void Execute(const std::string& path, const std::string& sql) {
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
  sqlite3_close(raw);
}

// What the seventh version added is taken out again. The eighth changed views only.
constexpr const char* kBackToSix =
    "DROP INDEX shard_next; CREATE INDEX shard_pending ON shard(job) WHERE state = 'PENDING'; "
    "ALTER TABLE shard DROP COLUMN turn; ALTER TABLE job DROP COLUMN benchmark; "
    "UPDATE meta SET value = '6' WHERE key = 'schema_version';";

TEST(StoreFile, AFileOfTheFirstSchemaIsMigratedAndKeepsItsAttempts) {
  const TempDb db;
  AttemptRecord attempt{.shard = ShardId{1},
                        .fence = {.incarnation = 1, .epoch = 1},
                        .worker = {"w"},
                        .event = AttemptEvent::kFailed,
                        .request = {},
                        .reason = "bad data",
                        .at = absl::UnixEpoch()};
  {
    StoreFixture fixture(db.path());
    ASSERT_TRUE(fixture.store().Write([&](WriteTxn& txn) { return txn.AppendAttempt(attempt); }).ok());
  }
  Execute(db.path(), kBackToSix);
  Execute(db.path(),
          "DROP VIEW v_cell; DROP VIEW v_item; DROP VIEW v_sample; DROP VIEW v_job; DROP VIEW v_unscored; "
          "ALTER TABLE attempt DROP COLUMN permanent; ALTER TABLE grade DROP COLUMN same_as; DROP TABLE telemetry_op; "
          "DROP TABLE telemetry; UPDATE meta SET value = '1' WHERE key = 'schema_version'");
  EXPECT_THAT(MessageOf(OpenSqliteStoreReadOnly(db.path()).status()), HasSubstr("schema version 1 is older"));

  auto store = OpenSqliteStore({.path = db.path()});
  ASSERT_TRUE(store.ok()) << store.status();
  attempt.fence.epoch = 2;
  attempt.permanent = true;
  ASSERT_TRUE((*store)->Write([&](WriteTxn& txn) { return txn.AppendAttempt(attempt); }).ok());
  ASSERT_TRUE((*store)
                  ->Read([&](ReadTxn& txn) -> absl::Status {
                    const auto attempts = txn.Attempts(ShardId{1});
                    if (!attempts.ok()) return attempts.status();
                    EXPECT_EQ(attempts->size(), 2u);
                    EXPECT_FALSE(attempts->front().permanent);
                    EXPECT_EQ(attempts->front().reason, "bad data");
                    EXPECT_TRUE(attempts->back().permanent);
                    const auto telemetry = txn.Telemetry(StoreFixture().job());
                    if (!telemetry.ok()) return telemetry.status();
                    EXPECT_TRUE(telemetry->empty());
                    return absl::OkStatus();
                  })
                  .ok());
  attempt.fence.epoch = 3;
  attempt.event = AttemptEvent::kLost;
  EXPECT_FALSE((*store)->Write([&](WriteTxn& txn) { return txn.AppendAttempt(attempt); }).ok());
}

// The first column; NULL is "".
std::vector<std::string> Select(const std::string& path, const std::string& sql) {
  std::vector<std::string> texts;
  sqlite3* raw = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  const auto take = [](void* out, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(out)->emplace_back(values[0] == nullptr ? "" : values[0]);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(raw, sql.c_str(), take, &texts, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
  sqlite3_close(raw);
  return texts;
}

std::vector<std::string> SchemaOf(const std::string& path) {
  return Select(path, "SELECT sql FROM sqlite_schema ORDER BY type, name");
}

ItemResult NotRun(int64_t index, Unscored reason) {
  ItemResult item{.index = index, .item_id = "i", .unscored = reason, .samples = {}, .values = {}};
  item.values.push_back({.metric = "m", .unscored = reason, .score = {}, .winner = "", .tie = {}, .invalid = 0});
  return item;
}

absl::Status Insert(Store& store, const JobId& job, const ItemResult& item) {
  return store.Write([&](WriteTxn& txn) { return txn.InsertItem(job, "g", item); });
}

// Version 5 took reasons up to `undefined` only. The file as that version left it, with a row in it.
TEST(StoreFile, AFileOfTheFifthSchemaTakesTheNewReasonsAndKeepsItsItems) {
  const TempDb db;
  JobId job;
  std::vector<std::string> fresh;
  {
    StoreFixture fixture(db.path());
    job = fixture.job();
    ASSERT_TRUE(Insert(fixture.store(), job, NotRun(0, Unscored::kUndefined)).ok());
  }
  fresh = SchemaOf(db.path());
  Execute(db.path(), kBackToSix);
  Execute(db.path(),
          "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'BETWEEN 0 AND 9', 'BETWEEN 0 AND "
          "7'); PRAGMA writable_schema = RESET; UPDATE meta SET value = '5' WHERE key = 'schema_version'");
  ASSERT_NE(SchemaOf(db.path()), fresh);
  sqlite3* old = nullptr;
  ASSERT_EQ(sqlite3_open(db.path().c_str(), &old), SQLITE_OK);
  const char* const insert = "INSERT INTO item_result SELECT job, item + 1, item_id, 8, hash FROM item_result";
  EXPECT_EQ(sqlite3_exec(old, insert, nullptr, nullptr, nullptr), SQLITE_CONSTRAINT);
  sqlite3_close(old);
  EXPECT_THAT(MessageOf(OpenSqliteStoreReadOnly(db.path()).status()), HasSubstr("schema version 5 is older"));
  {
    auto store = OpenSqliteStore({.path = db.path()});
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE(Insert(**store, job, NotRun(1, Unscored::kGeneratorDeadEnd)).ok());
    EXPECT_TRUE(Insert(**store, job, NotRun(2, Unscored::kDataExhausted)).ok());
    EXPECT_FALSE(Insert(**store, job, NotRun(3, Unscored::kPending)).ok());
    EXPECT_FALSE(Insert(**store, job, NotRun(3, static_cast<Unscored>(static_cast<int>(kLastUnscored) + 1))).ok());
    ASSERT_TRUE((*store)
                    ->Read([&](ReadTxn& txn) -> absl::Status {
                      for (int64_t i = 0; i < 3; i++) {
                        const auto item = txn.LoadItemGraded(job, i, "g");
                        if (!item.ok()) return item.status();
                        const Unscored reasons[] = {Unscored::kUndefined, Unscored::kGeneratorDeadEnd,
                                                    Unscored::kDataExhausted};
                        if (!item->has_value()) return absl::NotFoundError("item");
                        EXPECT_EQ((*item)->unscored, reasons[i]);
                        EXPECT_EQ((*item)->values.at(0).unscored, reasons[i]);
                      }
                      const auto problems = txn.DamagedPages();
                      if (!problems.ok()) return problems.status();
                      EXPECT_TRUE(problems->empty()) << problems->front();
                      return absl::OkStatus();
                    })
                    .ok());
  }
  EXPECT_EQ(SchemaOf(db.path()), fresh) << "a migrated file is no other than a new one";
}

constexpr const char* kCells =
    "SELECT metric || ' ' || grader_version || ' ' || planned || ' ' || scored || ' ' || ifnull(value, 'none') || ' ' "
    "|| "
    "complete FROM v_cell";

// As tables do, v_cell shows a cell of which nothing is stored yet, without a value.
TEST(StoreFile, ACellWithoutItemsHasARow) {
  const TempDb db;
  StoreFixture fixture(db.path());
  const JobSpec& job = fixture.plan().jobs[0].spec;
  ASSERT_EQ(job.entry.metrics.size(), 1u);
  const std::string cell = job.entry.metrics[0] + " " + job.grader_version;
  EXPECT_THAT(Select(db.path(), kCells), ::testing::ElementsAre(cell + " 4 0 none 0"));
  ASSERT_TRUE(Insert(fixture.store(), fixture.job(), NotRun(0, Unscored::kQuarantined)).ok());
  EXPECT_THAT(Select(db.path(), kCells), ::testing::ElementsAre(cell + " 4 0 0.0 0"));
}

// What v_cell has for a sweep with an item_order after the first of two items, and after both.
std::vector<std::string> OrderedValues(bool stop_settled_votes) {
  const TempDb db;
  SweepSpec spec = SimSweep(2, 2, 2);
  spec.item_order = 7;
  spec.entries[0].metrics = {"maj@2?metric=sim.exact"};
  spec.entries[0].stop_settled_votes = stop_settled_votes;
  const auto plan = Plan(spec, SimOpener());
  const auto store = OpenSqliteStore({.path = db.path()});
  if (!plan.ok() || !store.ok()) return {std::string(plan.status().message()), std::string(store.status().message())};
  EXPECT_TRUE((*store)
                  ->Write([&](WriteTxn& txn) {
                    return txn.InsertSweep({.id = plan->id, .spec = plan->spec, .submitted = absl::UnixEpoch()},
                                           plan->jobs);
                  })
                  .ok());
  std::vector<std::string> values;
  for (const int64_t item : {0, 1}) {
    EXPECT_TRUE(Insert(**store, plan->jobs[0].id, NotRun(item, Unscored::kQuarantined)).ok());
    for (std::string& value : Select(db.path(), "SELECT value FROM v_cell")) values.push_back(std::move(value));
  }
  return values;
}

// A part depends on when the gate stopped, and so do the samples of settled votes: no value, as in tables.
TEST(StoreFile, AnUnfinishedCellOfAnOrderedSweepHasNoValue) {
  EXPECT_THAT(OrderedValues(false), ::testing::ElementsAre("", "0.0"));
  EXPECT_THAT(OrderedValues(true), ::testing::ElementsAre("", ""));
}

// Version 7 had no row for such a cell.
TEST(StoreFile, AFileOfTheSeventhSchemaGetsTheViewsOfANewOne) {
  const TempDb db;
  { const StoreFixture fixture(db.path()); }
  const std::vector<std::string> fresh = SchemaOf(db.path());
  Execute(db.path(),
          "DROP VIEW v_cell; CREATE VIEW v_cell AS SELECT 1 AS x; UPDATE meta SET value = '7' WHERE key = "
          "'schema_version'");
  EXPECT_THAT(MessageOf(OpenSqliteStoreReadOnly(db.path()).status()), HasSubstr("schema version 7 is older"));
  ASSERT_TRUE(OpenSqliteStore({.path = db.path()}).ok());
  EXPECT_EQ(SchemaOf(db.path()), fresh);
}

// Version 6 had the turns of a sweep with an item_order in its shards' ids, and a job's benchmark in its spec alone.
TEST(StoreFile, AFileOfTheSixthSchemaKeepsTheOrderOfItsItems) {
  constexpr int64_t kItems = 20;
  const TempDb db;
  SweepSpec spec = SimSweep(kItems, 1, 4);
  spec.item_order = 7;
  auto plan = Plan(spec, SimOpener());
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<NewShard>& shards = plan->jobs[0].shards;
  std::sort(shards.begin(), shards.end(), [](const NewShard& a, const NewShard& b) { return a.turn < b.turn; });
  const ModelBinding model{
      .sweep = plan->id, .model = "m", .weights = SimWeights("A"), .tokenizer = SimTokenizer(), .context_tokens = 9};
  {
    auto store = OpenSqliteStore({.path = db.path()});
    ASSERT_TRUE(store.ok()) << store.status();
    const absl::Status stored = (*store)->Write([&](WriteTxn& txn) -> absl::Status {
      IHA_RETURN_IF_ERROR(
          txn.InsertSweep({.id = plan->id, .spec = plan->spec, .submitted = absl::UnixEpoch()}, plan->jobs));
      IHA_RETURN_IF_ERROR(
          txn.UpsertWorker({.id = {"w"}, .incarnation = 1, .numerics_ids = {}, .description = "", .blamed = ""}));
      IHA_RETURN_IF_ERROR(txn.BindModel(model));
      return txn.RecordOffer({"w"}, model);
    });
    ASSERT_TRUE(stored.ok()) << stored;
  }
  const std::vector<std::string> fresh = SchemaOf(db.path());
  Execute(db.path(), kBackToSix);
  ASSERT_NE(SchemaOf(db.path()), fresh);
  auto store = OpenSqliteStore({.path = db.path()});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(SchemaOf(db.path()), fresh);
  std::vector<int64_t> granted;
  const absl::Status picked = (*store)->Write([&](WriteTxn& txn) -> absl::Status {
    granted.clear();
    GrantQuery query{.worker = {"w"},
                     .models = {"m"},
                     .numerics_ids = {spec.numerics.Id()},
                     .now = absl::UnixEpoch(),
                     .only = std::nullopt,
                     .refused_benchmarks = {"sim"}};
    IHA_ASSIGN_OR_RETURN(const auto none, txn.PickShard(query));
    EXPECT_FALSE(none.has_value());
    query.refused_benchmarks.clear();
    for (int64_t i = 0; i < kItems; ++i) {
      IHA_ASSIGN_OR_RETURN(const auto id, txn.PickShard(query));
      if (!id.has_value()) return absl::NotFoundError("shard");
      IHA_ASSIGN_OR_RETURN(const auto shard, txn.FindShard(*id));
      granted.push_back(shard->range.begin);
      IHA_RETURN_IF_ERROR(txn.GrantShard(*shard, {.incarnation = 1, .epoch = 1}, {"w"}));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(picked.ok()) << picked;
  EXPECT_EQ(granted, SeededOrder(7, kItems));
}

}  // namespace
}  // namespace iha::coordinator
