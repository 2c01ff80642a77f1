// store_fixture.h: a store with one planned sweep (4 sim items, one sample, two shards), in memory or in a file.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "coordinator/planner/planner.h"
#include "coordinator/store/sqlite_store.h"
#include "tests/coordinator/sim_benchmark.h"
#include "tests/support/temp_dir.h"

namespace iha::coordinator {

// A path in a fresh folder, removed with the object.
class TempDb {
 public:
  std::string folder() const { return folder_.path(); }
  std::string path() const { return folder_.File("eval.db"); }

 private:
  // A name of its own for each object: tests of one binary run side by side.
  testing::TempDir folder_;
};

class StoreFixture {
 public:
  explicit StoreFixture(const std::string& path = "") {
    auto opened = OpenSqliteStore({.path = path});
    EXPECT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
    const auto plan = Plan(SimSweep(4, 1, 2), SimOpener());
    EXPECT_TRUE(plan.ok()) << plan.status();
    plan_ = *plan;
    const absl::Status inserted = store_->Write([&](WriteTxn& txn) {
      return txn.InsertSweep({.id = plan_.id, .spec = plan_.spec, .submitted = absl::UnixEpoch()}, plan_.jobs);
    });
    EXPECT_TRUE(inserted.ok()) << inserted;
  }

  Store& store() { return *store_; }
  const SweepPlan& plan() const { return plan_; }
  JobId job() const { return plan_.jobs[0].id; }
  // The first shard as it stands.
  ShardRecord FreshShard() { return Reload(ShardId{1}); }
  ShardRecord Reload(ShardId id) {
    ShardRecord shard;
    EXPECT_TRUE(store_
                    ->Read([&](ReadTxn& txn) -> absl::Status {
                      auto found = txn.FindShard(id);
                      if (!found.ok()) return found.status();
                      if (!found->has_value()) return absl::NotFoundError("shard");
                      shard = **found;
                      return absl::OkStatus();
                    })
                    .ok());
    return shard;
  }

 private:
  std::unique_ptr<Store> store_;
  SweepPlan plan_;
};

}  // namespace iha::coordinator
