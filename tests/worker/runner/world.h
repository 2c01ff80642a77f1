// world.h: a coordinator over a database in memory, and workers of fake checkpoints for it. For tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coordinator/coordinator.h"
#include "coordinator/service/service.h"
#include "coordinator/store/sqlite_store.h"
#include "model/fake_model.h"
#include "worker/runner/checkpoint_source.h"
#include "worker/runner/worker.h"

namespace iha::worker {

inline constexpr int64_t kItems = 4;

inline CheckpointSourceOptions RootAt(const std::string& folder) {
  return {.folders = {}, .models_root = folder, .threads = 1};
}

inline void MakeModel(const std::string& folder, uint64_t seed = 1) {
  ASSERT_TRUE(model::MakeFakeCheckpoint(folder, {.seed = seed, .style = model::FakeStyle::kWords}).ok());
}

inline SweepSpec DemoSweep(const std::string& model) {
  SweepEntry entry;
  entry.benchmark.name = "gsm8k_demo";
  entry.sampling.temperature = 0.8;
  entry.sampling.samples = 2;
  entry.sampling.max_new_tokens = 32;
  entry.limit = kItems;
  SweepSpec spec;
  spec.models = {{.name = model, .weights_digest = ""}};
  spec.entries = {entry};
  spec.numerics.backend = "fake";
  // One item a shard, so that a drain finds shards begun and shards untouched.
  spec.shard_tokens = 1;
  return spec;
}

// Everything of a coordinator but its network.
struct World {
  explicit World(const std::string& data_root = "") {
    auto opened_store = coordinator::OpenSqliteStore({.path = ""});
    EXPECT_TRUE(opened_store.ok()) << opened_store.status();
    store = *std::move(opened_store);
    coordinator::CoordinatorConfig config;
    config.version = "test";
    config.idle_retry = absl::Milliseconds(20);
    auto opened =
        coordinator::Coordinator::Open(store.get(), &clock, coordinator::OpenerFor(data_root), std::move(config));
    EXPECT_TRUE(opened.ok()) << opened.status();
    api = *std::move(opened);
  }
  void Submit(const std::string& model) { Submit(DemoSweep(model)); }
  void Submit(const SweepSpec& spec) {
    const auto submitted = api->Submit(spec);
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    sweep = *submitted;
  }
  SweepProgress Progress() {
    auto progress = api->Status(sweep);
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.value_or(SweepProgress{});
  }
  // Hashes of the stored items, in order.
  std::vector<Digest> ItemHashes() {
    std::vector<Digest> hashes;
    const absl::Status read = store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
      const auto jobs = txn.Jobs(sweep);
      if (!jobs.ok()) return jobs.status();
      for (int64_t item = 0; item < kItems; item++) {
        const auto hash = txn.ItemHash(jobs->at(0).id, item);
        if (!hash.ok()) return hash.status();
        if (hash->has_value()) hashes.push_back(**hash);
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return hashes;
  }
  std::vector<coordinator::AttemptRecord> AttemptsOf(const std::string& worker) {
    std::vector<coordinator::AttemptRecord> attempts;
    const absl::Status read = store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
      auto found = txn.AttemptsOf({worker});
      if (found.ok()) attempts = *std::move(found);
      return found.status();
    });
    EXPECT_TRUE(read.ok()) << read;
    return attempts;
  }
  int64_t LeasedShards() {
    size_t leased = 0;
    const absl::Status read = store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
      const auto found = txn.LeasedShards();
      if (found.ok()) leased = found->size();
      return found.status();
    });
    EXPECT_TRUE(read.ok()) << read;
    return static_cast<int64_t>(leased);
  }

  RealClock clock;
  std::unique_ptr<coordinator::Store> store;
  std::unique_ptr<coordinator::Coordinator> api;
  SweepId sweep;
};

inline WorkerOptions OptionsFor(const std::string& id) {
  WorkerOptions options;
  options.id = {id};
  options.incarnation = 1;
  options.description = "test";
  options.exit_when_done = true;
  options.engine.kv_bytes = int64_t{64} << 20;
  return options;
}

}  // namespace iha::worker
