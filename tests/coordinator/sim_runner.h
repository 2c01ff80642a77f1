// sim_runner.h: runs one tests/sim/*.sim script. The language stands in tests/sim/README.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/state/shard_machine.h"
#include "tests/coordinator/sim_world.h"

namespace iha::coordinator {

class SimRunner {
 public:
  SimRunner(SimConfig config, std::string db_path) : world_(std::move(config), std::move(db_path)) {}

  // "" = passed; else one text: script line, what was found and expected, config, event log, path of the database.
  std::string RunFile(const std::string& script_path);

  // One statement's words after the verb, and what stands right of "->".
  struct Step {
    std::string verb;
    std::vector<std::string> words = {};                 // in order, those without '='
    std::map<std::string, std::string> parameters = {};  // those with '='
    std::vector<std::string> expected = {};
    std::string Get(const std::string& key, const std::string& otherwise) const;
    int64_t GetInt(const std::string& key, int64_t otherwise) const;
  };

 private:
  struct Held {
    std::string worker;
    RequestId request;
    std::optional<LeaseGrant> grant;
  };

  // Executes a step; the result is a line of words that must contain all expected ones.
  absl::StatusOr<std::string> Execute(const Step& step);
  absl::StatusOr<std::string> Submit(const Step& step);
  absl::StatusOr<std::string> Register(const Step& step);
  absl::StatusOr<std::string> Offer(const Step& step);
  absl::StatusOr<std::string> Acquire(const Step& step);
  absl::StatusOr<std::string> Commit(const Step& step, bool commit);
  absl::StatusOr<std::string> Unscored(const Step& step);
  absl::StatusOr<std::string> Heartbeat(const Step& step);
  absl::StatusOr<std::string> Release(const Step& step);
  absl::StatusOr<std::string> Drive(const Step& step);
  absl::StatusOr<std::string> Lookup(const Step& step);
  absl::StatusOr<std::string> Expect(const Step& step);
  absl::StatusOr<std::string> DescribeShard(ShardId id);
  absl::StatusOr<std::string> DescribeTable(const SweepId& sweep);
  absl::StatusOr<std::string> ItemRowsDigest(const SweepId& sweep);

  absl::Status EnsureWorker(const std::string& name);
  absl::StatusOr<AcquireLeaseReply> AcquireFor(const std::string& worker, const RequestId& request);
  absl::StatusOr<SweepId> SweepOf(const Step& step) const;
  absl::StatusOr<Held*> LeaseOf(const Step& step);
  RequestId NewRequest() { return {fmt::format("r{}", ++requests_)}; }
  absl::Status CheckAfterStep();

  SimWorld world_;
  std::map<std::string, SweepId> sweeps_;
  std::map<std::string, Held> leases_;
  std::map<std::string, int64_t> incarnations_;  // of registered workers
  std::map<std::string, std::string> weights_;   // label a worker offers, default "A"
  std::map<ShardId, ShardState> final_states_;   // INV-SHARD-2: never change again
  std::string last_sweep_;
  int requests_ = 0;
};

}  // namespace iha::coordinator
