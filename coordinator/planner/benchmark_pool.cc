#include "coordinator/planner/benchmark_pool.h"

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::coordinator {

absl::StatusOr<std::shared_ptr<const benchmarks::Benchmark>> BenchmarkPool::Get(const JobSpec& job) {
  const std::string ref = benchmarks::ToString(job.entry.benchmark);
  std::shared_ptr<const benchmarks::Benchmark> benchmark;
  {
    absl::MutexLock lock(&mu_);
    std::shared_ptr<const benchmarks::Benchmark>& slot = open_by_ref_[ref];
    if (slot == nullptr) {
      IHA_ASSIGN_OR_RETURN(slot, open_(job.entry.benchmark));
    }
    benchmark = slot;
  }
  const benchmarks::BenchmarkInfo& info = benchmark->info();
  if (info.version != job.benchmark_version || info.grader_version != job.grader_version) {
    return FailedPrecondition(
        "{}: planned with {} and grader {}, this program has {} and {}; use the iha-eval that "
        "planned it, or submit again with another run tag",
        ref, job.benchmark_version, job.grader_version, info.version, info.grader_version);
  }
  if (benchmark->data_digest() != job.data_digest) {
    return FailedPrecondition(
        "{}: its data changed since the sweep was planned (digest {}, planned {}); restore the "
        "data, or submit again with another run tag",
        ref, benchmark->data_digest().Hex(), job.data_digest.Hex());
  }
  return benchmark;
}

}  // namespace iha::coordinator
