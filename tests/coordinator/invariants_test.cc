// The checker finds each kind of damage that it names, on a real file changed behind the store's back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "coordinator/store/invariants.h"
#include "tests/coordinator/sim_runner.h"
#include "tests/coordinator/store_fixture.h"

namespace iha::coordinator {
namespace {

using ::testing::Contains;
using ::testing::StartsWith;

// Shards 1 (DONE after a lost lease), 2 (LEASED, one item in), 3 (PENDING).
void MakeDatabase(const std::string& path) {
  SimRunner runner({.name = "damage", .on_disk = true}, path);
  EXPECT_EQ(runner.RunFile(fmt::format("{}/fixtures/mid_run.txt", IHA_SIM_SCRIPTS)), "");
}

void Damage(const std::string& path, const std::string& sql) {
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  std::vector<std::string> triggers;
  ASSERT_EQ(sqlite3_exec(
                raw, "SELECT name FROM sqlite_schema WHERE type = 'trigger'",
                [](void* out, int, char** values, char**) {
                  static_cast<std::vector<std::string>*>(out)->push_back(values[0]);
                  return 0;
                },
                &triggers, nullptr),
            SQLITE_OK);
  for (const std::string& trigger : triggers) {
    ASSERT_EQ(sqlite3_exec(raw, ("DROP TRIGGER " + trigger).c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  }
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << sql << ": " << error;
  sqlite3_free(error);
  sqlite3_close(raw);
}

std::vector<std::string> Check(const std::string& path, const ItemValuesFn& values) {
  auto store = OpenSqliteStore({.path = path});
  EXPECT_TRUE(store.ok()) << store.status();
  const auto violations = CheckInvariants(**store, values);
  EXPECT_TRUE(violations.ok()) << violations.status();
  return violations.ok() ? *violations : std::vector<std::string>{};
}

struct Row {
  const char* sql;
  const char* invariant;
};

TEST(Invariants, EachDamageIsNamed) {
  const Row rows[] = {
      {"DELETE FROM shard WHERE id = 3", "INV-SHARD-1"},
      {"UPDATE shard SET end_item = 5 WHERE id = 2", "INV-SHARD-1"},
      {"INSERT INTO shard(job, first_item, end_item, estimated_tokens) SELECT job, 0, 2, 1 FROM shard WHERE id = 1",
       "INV-SHARD-1"},
      {"UPDATE shard SET parent = 1 WHERE id = 3", "INV-SHARD-1"},
      {"UPDATE shard SET owner = 'thief' WHERE id = 2", "INV-LEASE-1"},
      {"UPDATE shard SET epoch = 9 WHERE id = 2", "INV-LEASE-1"},
      {"UPDATE attempt SET epoch = 7 WHERE shard = 2", "INV-LEASE-1"},
      {"DELETE FROM attempt WHERE event = 'done'", "INV-LEASE-1"},
      {"DELETE FROM attempt WHERE event = 'granted' AND shard = 1 AND epoch = 1", "INV-LEASE-1"},
      {"UPDATE sweep SET spec = replace(spec, '\"max_attempts\":3', '\"max_attempts\":0')", "INV-LEASE-2"},
      {"DELETE FROM model_binding", "INV-LEASE-3"},
      {"UPDATE job SET cancel_requested = 1", "INV-LEASE-4"},
      {"DELETE FROM grade WHERE item = 0; DELETE FROM item_value WHERE item = 0; DELETE FROM sample WHERE item = 0;"
       "DELETE FROM item_result WHERE item = 0",
       "INV-RES-1"},
      {"DELETE FROM generation", "INV-FILE-1"},
      {"UPDATE generation SET text = x'00'", "INV-RES-2"},
      {"DELETE FROM generation", "INV-RES-2"},
      {"UPDATE item_value SET num = 1, den = 7", "INV-RES-4"},
      {"UPDATE grade SET extracted = x'78'", "INV-RES-4"},
      {"UPDATE item_result SET item_id = 'x'", "INV-RES-4"},
      {"UPDATE item_result SET item = 77 WHERE item = 2; UPDATE sample SET item = 77 WHERE item = 2", "INV-TAB-1"},
      {"UPDATE sweep SET spec = replace(spec, '\"run_tag\":\"\"', '\"run_tag\":\"x\"')", "INV-TAB-1"},
      {"UPDATE job SET spec = replace(spec, '\"items\":6', '\"items\":7')", "INV-TAB-1"},
  };
  TempDb sound;
  MakeDatabase(sound.path());
  ASSERT_TRUE(Check(sound.path(), &benchmarks::EntryValues).empty());
  for (const Row& row : rows) {
    TempDb db;
    MakeDatabase(db.path());
    Damage(db.path(), row.sql);
    EXPECT_THAT(Check(db.path(), &benchmarks::EntryValues), Contains(StartsWith(row.invariant))) << row.sql;
  }
}

TEST(Invariants, CheckedStartRefusesADamagedDatabase) {
  TempDb db;
  MakeDatabase(db.path());
  SimulatedClock clock;
  CoordinatorConfig config;
  config.check_at_start = true;
  {
    auto store = OpenSqliteStore({.path = db.path()});
    ASSERT_TRUE(store.ok());
    EXPECT_TRUE(Coordinator::Open(store->get(), &clock, SimOpener(), config).ok());
  }
  Damage(db.path(), "DELETE FROM model_binding");
  auto store = OpenSqliteStore({.path = db.path()});
  ASSERT_TRUE(store.ok());
  const absl::Status refused = Coordinator::Open(store->get(), &clock, SimOpener(), config).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("INV-LEASE-3"));
}

// A vote that is not that of its samples, under a digest that fits it: seen by computing the values once more.
TEST(Invariants, StoredValuesAreComputedAgain) {
  TempDb db;
  MakeDatabase(db.path());
  const auto another_rule = [](const SweepEntry& entry, const std::vector<std::vector<SampleGrade>>& grades) {
    auto values = benchmarks::EntryValues(entry, grades);
    values->at(0).score = {1, 9};
    return values;
  };
  EXPECT_THAT(Check(db.path(), another_rule), Contains(StartsWith("INV-RES-3")));
}

}  // namespace
}  // namespace iha::coordinator
