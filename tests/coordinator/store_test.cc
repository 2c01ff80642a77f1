// SqliteStore: refusals at opening, rollback, group commit, backpressure, disk full, what the schema itself refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "common/errors.h"
#include "coordinator/store/invariants.h"
#include "coordinator/store/schema.h"
#include "tests/coordinator/store_fixture.h"

namespace iha::coordinator {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

Generation MakeGeneration(int index, size_t bytes = 10) {
  Generation generation;
  generation.key.digest = Sha256Of(fmt::format("generation {}", index));
  generation.text = std::string(bytes, static_cast<char>('a' + index % 26));
  generation.tokens = {1, -2, 300};
  generation.finish = FinishReason::kStop;
  generation.prompt_tokens = 7;
  return generation;
}

int64_t CountGenerations(Store& store, int upto) {
  int64_t found = 0;
  EXPECT_TRUE(store
                  .Read([&](ReadTxn& txn) -> absl::Status {
                    found = 0;
                    for (int i = 0; i < upto; ++i) {
                      auto row = txn.FindGeneration(MakeGeneration(i).key);
                      if (!row.ok()) return row.status();
                      if (row->has_value()) ++found;
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  return found;
}

TEST(StoreOpen, NewerSchemaIsRefused) {
  TempDb db;
  {
    StoreFixture fixture(db.path());
    ASSERT_TRUE(fixture.store().Write([](WriteTxn& txn) { return txn.SetMeta("schema_version", "9"); }).ok());
  }
  const absl::Status opened = OpenSqliteStore({.path = db.path()}).status();
  EXPECT_EQ(opened.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(opened), fmt::format("{}: schema version 9 is newer than this program's {}; use a newer iha-eval",
                                           db.path(), SchemaVersion()));
  EXPECT_EQ(OpenSqliteStoreReadOnly(db.path()).status(), opened);
}

TEST(StoreOpen, SecondCoordinatorIsRefusedUntilTheFirstIsGone) {
  TempDb db;
  auto first = OpenSqliteStore({.path = db.path()});
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = OpenSqliteStore({.path = db.path()}).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(second), HasSubstr("another coordinator has this database open"));
  first->reset();
  EXPECT_TRUE(OpenSqliteStore({.path = db.path()}).ok());
}

TEST(StoreOpen, NamesWhatIsWrongWithThePath) {
  TempDb db;
  const absl::Status absent = OpenSqliteStore({.path = db.folder() + "/no/eval.db"}).status();
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(absent), HasSubstr("its folder does not exist"));

  const absl::Status folder = OpenSqliteStore({.path = db.folder()}).status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(folder), HasSubstr("is a folder"));

  // Nobody, not even root, can create a file there.
  const absl::Status read_only = OpenSqliteStore({.path = "/proc/self/fdinfo/eval.db"}).status();
  EXPECT_THAT(MessageOf(read_only), HasSubstr("/proc/self/fdinfo/eval.db"));
  EXPECT_FALSE(read_only.ok());
  EXPECT_EQ(ExitCodeFor(read_only), 3);

  const absl::Status missing = OpenSqliteStoreReadOnly(db.path()).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
}

TEST(StoreOpen, FolderWithoutWritePermissionIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere; the path test covers what even root cannot write";
  TempDb db;
  ASSERT_EQ(chmod(db.folder().c_str(), 0555), 0);
  const absl::Status opened = OpenSqliteStore({.path = db.path()}).status();
  chmod(db.folder().c_str(), 0755);
  EXPECT_EQ(opened.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(opened), HasSubstr("not writable"));
}

TEST(StoreOpen, OtherFilesAreNotTouched) {
  TempDb db;
  const std::string text = std::string(5000, 'x');
  std::ofstream(db.path()) << text;
  const absl::Status opened = OpenSqliteStore({.path = db.path()}).status();
  EXPECT_EQ(opened.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(opened), HasSubstr("not an iha-eval database"));
  std::ifstream in(db.path());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);

  std::filesystem::remove(db.path());
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(db.path().c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, "CREATE TABLE recipes(id)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  const absl::Status foreign = OpenSqliteStore({.path = db.path()}).status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(foreign), HasSubstr("another program's database"));
}

TEST(StoreOpen, DamagedFileIsNoticed) {
  TempDb db;
  {
    StoreFixture fixture(db.path());
    ASSERT_TRUE(fixture.store()
                    .Write([](WriteTxn& txn) -> absl::Status {
                      for (int i = 0; i < 200; ++i) {
                        if (absl::Status s = txn.InsertGeneration(MakeGeneration(i, 300)); !s.ok()) return s;
                      }
                      return absl::OkStatus();
                    })
                    .ok());
  }
  std::fstream file(db.path(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096 * 3);
  const std::string junk(4096 * 20, '\xa5');
  file.write(junk.data(), static_cast<std::streamsize>(junk.size()));
  file.close();
  auto store = OpenSqliteStore({.path = db.path()});
  if (!store.ok()) {
    EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss) << store.status();
    EXPECT_THAT(MessageOf(store.status()), HasSubstr("restore a backup"));
    return;
  }
  const auto violations = CheckInvariants(**store, nullptr);
  if (!violations.ok()) {
    EXPECT_EQ(violations.status().code(), absl::StatusCode::kDataLoss) << violations.status();
    return;
  }
  EXPECT_THAT(*violations, ::testing::Contains(::testing::StartsWith("INV-FILE-1")));
}

TEST(StoreWrite, FailedFunctionLeavesNothing) {
  StoreFixture fixture;
  const absl::Status failed = fixture.store().Write([](WriteTxn& txn) -> absl::Status {
    if (absl::Status s = txn.InsertGeneration(MakeGeneration(0)); !s.ok()) return s;
    return absl::AbortedError("changed my mind");
  });
  EXPECT_EQ(failed.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(CountGenerations(fixture.store(), 1), 0);
}

TEST(StoreWrite, GenerationsComeBackAsTheyWere) {
  StoreFixture fixture;
  Generation odd = MakeGeneration(0);
  odd.text = std::string("\0\xff'\";--<b>\n", 11);
  odd.tokens = {};
  odd.finish = FinishReason::kLength;
  ASSERT_TRUE(fixture.store().Write([&](WriteTxn& txn) { return txn.InsertGeneration(odd); }).ok());
  ASSERT_TRUE(fixture.store()
                  .Read([&](ReadTxn& txn) -> absl::Status {
                    auto row = txn.FindGeneration(odd.key);
                    EXPECT_TRUE(row.ok() && row->has_value());
                    EXPECT_EQ((*row)->generation.text, odd.text);
                    EXPECT_EQ((*row)->generation.tokens, odd.tokens);
                    EXPECT_EQ((*row)->generation.Checksum(), odd.Checksum());
                    EXPECT_EQ((*row)->checksum, odd.Checksum());
                    return absl::OkStatus();
                  })
                  .ok());
}

// Parks the writer thread until released, so that what is queued behind it is one group.
class ParkedWriter {
 public:
  explicit ParkedWriter(Store& store) {
    thread_ = std::thread([this, &store] { EXPECT_TRUE(store.Write([this](WriteTxn&) { return Park(); }).ok()); });
    const absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&parked_));
  }
  void Release() {
    {
      const absl::MutexLock lock(&mu_);
      released_ = true;
    }
    thread_.join();
  }

 private:
  absl::Status Park() {
    const absl::MutexLock lock(&mu_);
    parked_ = true;
    mu_.Await(absl::Condition(&released_));
    return absl::OkStatus();
  }

  absl::Mutex mu_;
  bool parked_ = false;
  bool released_ = false;
  std::thread thread_;
};

TEST(StoreWrite, OneOfAGroupFailsAlone) {
  StoreFixture fixture;
  ParkedWriter parked(fixture.store());
  std::vector<absl::Status> results(5);
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      results[static_cast<size_t>(i)] = fixture.store().Write([&](WriteTxn& txn) -> absl::Status {
        if (absl::Status s = txn.InsertGeneration(MakeGeneration(i)); !s.ok()) return s;
        return i == 2 ? absl::InternalError("third") : absl::OkStatus();
      });
    });
  }
  parked.Release();
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(results[i].ok(), i != 2) << results[i];
  EXPECT_EQ(CountGenerations(fixture.store(), 5), 4);
}

TEST(StoreWrite, FullQueueRefusesIngest) {
  auto opened = OpenSqliteStore({.path = "", .queue_limit = 2});
  ASSERT_TRUE(opened.ok());
  Store& store = **opened;
  ParkedWriter parked(store);
  // While the writer is parked an accepted write blocks its caller and a refused one returns: of many callers at most
  // queue_limit are taken, and the first refusal shows that the queue is full.
  std::atomic<int> accepted{0};
  absl::Mutex mu;
  std::vector<absl::Status> refusals;
  std::vector<std::thread> callers;
  for (int i = 0; i < 5; ++i) {
    callers.emplace_back([&] {
      const absl::Status status = store.TryWrite([](WriteTxn&) { return absl::OkStatus(); });
      if (status.ok()) ++accepted;
      const absl::MutexLock lock(&mu);
      if (!status.ok()) refusals.push_back(status);
    });
  }
  {
    const absl::MutexLock lock(&mu);
    const auto three_refused = [&] { return refusals.size() == 3; };
    EXPECT_TRUE(mu.AwaitWithTimeout(absl::Condition(&three_refused), absl::Seconds(60)));
    for (const absl::Status& refused : refusals) EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  }
  parked.Release();
  for (std::thread& thread : callers) thread.join();
  EXPECT_EQ(accepted, 2);
  EXPECT_TRUE(store.TryWrite([](WriteTxn&) { return absl::OkStatus(); }).ok());
}

TEST(StoreWrite, DiskFullIsSaidAndLosesNothing) {
  TempDb db;
  { StoreFixture fixture(db.path()); }
  int64_t stored = 0;
  {
    auto limited = OpenSqliteStore({.path = db.path(), .queue_limit = 256, .group_limit = 64, .max_pages = 120});
    ASSERT_TRUE(limited.ok()) << limited.status();
    absl::Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i) {
      status = (*limited)->Write([&](WriteTxn& txn) { return txn.InsertGeneration(MakeGeneration(i, 5000)); });
      if (status.ok()) ++stored;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(MessageOf(status), HasSubstr("disk full"));
    EXPECT_GT(stored, 5);
    EXPECT_EQ(CountGenerations(**limited, 1000), stored);
    // Still alive: small writes that fit are taken, reads work.
    EXPECT_TRUE((*limited)->Write([](WriteTxn& txn) { return txn.SetMeta("note", "x"); }).ok());
  }
  auto roomy = OpenSqliteStore({.path = db.path()});
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  EXPECT_EQ(CountGenerations(**roomy, 1000), stored);
  EXPECT_TRUE((*roomy)->Write([&](WriteTxn& txn) { return txn.InsertGeneration(MakeGeneration(999, 5000)); }).ok());
}

TEST(StoreWrite, DiskFullFailsTheLargeWriteOfAGroupOnly) {
  TempDb db;
  { StoreFixture fixture(db.path()); }
  auto limited = OpenSqliteStore({.path = db.path(), .queue_limit = 256, .group_limit = 64, .max_pages = 120});
  ASSERT_TRUE(limited.ok());
  ParkedWriter parked(**limited);
  std::vector<absl::Status> results(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const size_t bytes = i == 1 ? 2'000'000 : 100;  // 120 pages of 4096 bytes hold no 2 MB
      results[static_cast<size_t>(i)] =
          (*limited)->Write([&](WriteTxn& txn) { return txn.InsertGeneration(MakeGeneration(i, bytes)); });
    });
  }
  parked.Release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(results[0].ok()) << results[0];
  EXPECT_EQ(results[1].code(), absl::StatusCode::kResourceExhausted) << results[1];
  EXPECT_TRUE(results[2].ok()) << results[2];
  EXPECT_EQ(CountGenerations(**limited, 3), 2);
}

TEST(StoreRead, ReadOnlyStoreSeesCommitsAndWritesNothing) {
  TempDb db;
  StoreFixture fixture(db.path());
  auto reader = OpenSqliteStoreReadOnly(db.path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE(fixture.store().Write([](WriteTxn& txn) { return txn.InsertGeneration(MakeGeneration(0)); }).ok());
  EXPECT_EQ(CountGenerations(**reader, 1), 1);
  EXPECT_EQ((*reader)->Write([](WriteTxn&) { return absl::OkStatus(); }).code(), absl::StatusCode::kFailedPrecondition);
}

// Statements that must be refused whoever sends them, on a database in mid-run.
TEST(Schema, RefusesWhatMustNeverHappen) {
  TempDb db;
  {
    StoreFixture fixture(db.path());
    const ShardRecord shard = fixture.FreshShard();
    ASSERT_TRUE(fixture.store()
                    .Write([&](WriteTxn& txn) -> absl::Status {
                      if (absl::Status s = txn.GrantShard(shard, {1, 1}, {"w"}); !s.ok()) return s;
                      if (absl::Status s = txn.AppendAttempt({.shard = shard.id,
                                                              .fence = {1, 1},
                                                              .worker = {"w"},
                                                              .event = AttemptEvent::kGranted,
                                                              .request = {"r"},
                                                              .reason = "",
                                                              .at = absl::UnixEpoch()});
                          !s.ok()) {
                        return s;
                      }
                      if (absl::Status s = txn.InsertGeneration(MakeGeneration(0)); !s.ok()) return s;
                      ItemResult item;
                      item.item_id = "sim-0";
                      item.samples = {{.generation = MakeGeneration(0).key, .grades = {}}};
                      item.samples[0].grades.resize(1);
                      item.values.resize(1);
                      if (absl::Status s = txn.InsertItem(fixture.job(), "g", item); !s.ok()) return s;
                      return txn.RequestCancel(fixture.job());
                    })
                    .ok());
  }
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(db.path().c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, "PRAGMA foreign_keys = ON", nullptr, nullptr, nullptr), SQLITE_OK);
  const char* refused[] = {
      "UPDATE attempt SET reason = 'x'",
      "DELETE FROM attempt",
      "INSERT INTO attempt(shard, incarnation, epoch, worker, event, at_us) VALUES(1, 1, 1, 'w', 'lost', 0)",
      "INSERT INTO attempt(shard, incarnation, epoch, worker, event, at_us) VALUES(1, 1, 1, 'w', 'granted', 0)",
      "INSERT INTO attempt(shard, incarnation, epoch, worker, event, at_us) VALUES(99, 1, 1, 'w', 'done', 0)",
      "INSERT INTO attempt(shard, incarnation, epoch, worker, event, at_us, permanent) VALUES(1, 1, 1, 'w', 'done', 0, "
      "1)",
      "DELETE FROM shard",
      "UPDATE shard SET end_item = 3 WHERE id = 1",
      "UPDATE shard SET owner = NULL WHERE id = 1",
      "UPDATE shard SET owner = 'w' WHERE id = 2",
      "UPDATE shard SET epoch = 7 WHERE id = 1",
      "INSERT INTO shard(job, first_item, end_item, estimated_tokens, state) SELECT id, 0, 1, 1, 'DONE' FROM job",
      "UPDATE job SET cancel_requested = 0",
      "UPDATE job SET items = 9",
      "DELETE FROM item_result",
      "UPDATE item_result SET item_id = 'x'",
      "INSERT INTO item_result SELECT job, item, item_id, 0, hash FROM item_result",
      "INSERT INTO item_result SELECT job, 1, item_id, 1, hash FROM item_result",  // pending is never stored
      "UPDATE sample SET k = 5",
      "DELETE FROM sample",
      "INSERT INTO sample SELECT job, item, 1, zeroblob(32) FROM sample",  // no such generation
      "UPDATE grade SET num = 1",
      "UPDATE item_value SET num = 1",
      "UPDATE generation SET checksum = zeroblob(32)",
      "DELETE FROM generation",
      "INSERT INTO generation SELECT zeroblob(32), tokens, text, 0, 0, 0, checksum FROM generation",  // unfinished
      "DELETE FROM job",
      "DELETE FROM sweep",
  };
  for (const char* sql : refused) {
    EXPECT_EQ(sqlite3_exec(raw, sql, nullptr, nullptr, nullptr) & 0xff, SQLITE_CONSTRAINT) << sql;
  }
  sqlite3_close(raw);
}

TEST(StoreResults, AnAnswerThatIsAllThoughtIsEmptyWhereThinkingIsStripped) {
  StoreFixture fixture;
  const std::vector<std::string> texts = {"<think>5</think>\n 7", "<think>5</think> \n", " \n", "5"};
  ASSERT_TRUE(fixture.store()
                  .Write([&](WriteTxn& txn) -> absl::Status {
                    for (int i = 0; i < 4; ++i) {
                      Generation generation = MakeGeneration(i);
                      generation.text = texts[static_cast<size_t>(i)];
                      if (absl::Status s = txn.InsertGeneration(generation); !s.ok()) return s;
                      ItemResult item;
                      item.index = i;
                      item.item_id = std::to_string(i);
                      item.samples.emplace_back().generation = generation.key;
                      item.values.emplace_back().metric = "sim.exact";
                      if (absl::Status s = txn.InsertItem(fixture.job(), "sim-grader/1", item); !s.ok()) return s;
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  const auto empty = [&](const std::string& think) {
    std::vector<int> counts;
    EXPECT_TRUE(fixture.store()
                    .Read([&](ReadTxn& txn) -> absl::Status {
                      JobRecord job = **txn.FindJob(fixture.job());
                      job.spec.entry.benchmark.options["think"] = think;
                      const auto rows = txn.ItemRows(job);
                      for (const reports::ItemRow& row : *rows) counts.push_back(row.empty);
                      return rows.status();
                    })
                    .ok());
    return counts;
  };
  EXPECT_EQ(empty("keep"), (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(empty("strip"), (std::vector<int>{0, 1, 1, 0}));
}

}  // namespace
}  // namespace iha::coordinator
