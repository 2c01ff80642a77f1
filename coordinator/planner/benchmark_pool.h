// benchmark_pool.h: benchmarks that are open, by reference; opened once, shared by planner checks, ingest and rescue.
// Thread: any. Blocking: the first Get of a benchmark reads its data.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/planner/planner.h"

namespace iha::coordinator {

class BenchmarkPool {
 public:
  explicit BenchmarkPool(BenchmarkOpener open) : open_(std::move(open)) {}

  // The benchmark that `job` was planned with. FailedPrecondition when this program's version, grader or data differ
  // from the planned ones: its verdicts would not be those that were asked for.
  absl::StatusOr<std::shared_ptr<const benchmarks::Benchmark>> Get(const JobSpec& job);

  const BenchmarkOpener& opener() const { return open_; }

 private:
  const BenchmarkOpener open_;
  absl::Mutex mu_;
  std::map<std::string, std::shared_ptr<const benchmarks::Benchmark>> open_by_ref_ ABSL_GUARDED_BY(mu_);
};

}  // namespace iha::coordinator
