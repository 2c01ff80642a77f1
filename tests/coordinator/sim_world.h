// sim_world.h: a coordinator in a box for tests: simulated clock, real store, restarts, repeated and lost replies.
#pragma once

#include <memory>
#include <string>

#include "common/clock.h"
#include "common/errors.h"
#include "coordinator/coordinator.h"
#include "coordinator/store/sqlite_store.h"
#include "tests/coordinator/sim_benchmark.h"

namespace iha::coordinator {

// What goes wrong while a script runs (habit 10 of style.md).
struct SimConfig {
  std::string name;
  bool on_disk = false;
  bool restart_each_step = false;
  bool call_twice = false;             // every call is made twice with one request id
  bool lose_first_reply = false;       // call_twice: the second reply is the one that arrives
  bool restart_between_calls = false;  // call_twice: the coordinator restarts between the two
};
std::vector<SimConfig> SimConfigs();

CoordinatorConfig SimCoordinatorConfig();

class SimWorld {
 public:
  // `db_path` is used under on_disk; a file that is there is opened, not removed.
  SimWorld(SimConfig config, std::string db_path);

  absl::Status Open();
  absl::Status Restart();
  // Moves the clock in steps of at most a second with a Tick after each, as the service's loop would. The first error.
  absl::Status Advance(absl::Duration by);

  // Makes `call` as the config says; `call` must not keep the coordinator.
  template <class Fn>
  auto Call(const Fn& call) -> decltype(call(std::declval<Coordinator&>())) {
    auto first = call(*coordinator_);
    if (!config_.call_twice) return first;
    if (config_.restart_between_calls) {
      if (absl::Status restarted = Restart(); !restarted.ok()) return restarted;
    }
    auto second = call(*coordinator_);
    if (config_.lose_first_reply || config_.restart_between_calls) return second;
    return first;
  }

  Coordinator& coordinator() { return *coordinator_; }
  Store& store() { return *store_; }
  SimulatedClock& clock() { return clock_; }
  const SimConfig& config() const { return config_; }
  const std::string& db_path() const { return db_path_; }
  void set_benchmark(const SimBenchmarkOptions& options) { benchmark_ = options; }

 private:
  const SimConfig config_;
  const std::string db_path_;
  SimBenchmarkOptions benchmark_;
  SimulatedClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Coordinator> coordinator_;
};

// What a worker would compute for an item: generations and the judged result. Pure.
struct SimWork {
  std::vector<Generation> generations;
  ItemResult item;
};
struct SimWorkOptions {
  std::string text = {};     // "" = sample k of item i is right iff i + k is even
  std::string variant = {};  // not empty: a worker whose keys and texts differ (broken determinism)
  int32_t samples = -1;      // fewer or more than asked for
};
absl::StatusOr<SimWork> DoSimWork(const LeaseGrant& grant, int64_t item, const SimWorkOptions& options = {});

Digest SimWeights(const std::string& label);
Digest SimTokenizer();

}  // namespace iha::coordinator
