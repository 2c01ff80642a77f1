// result_ingest.h: judges and stores committed items (docs/contracts/commit.md; style of an optimistic, fenced writer).
//
// Outside the transaction, as grading takes time: shape checks, and the grades and values computed again from the
// stored texts. Inside the one IMMEDIATE transaction, for each item in order:
//   (a) already stored: equal digest -> OK whatever the checks and the fence say (a lost reply's replay); unequal ->
//       AlreadyExists, first write wins, a divergence row;
//   then what the checks found: InvalidArgument (shape: no retry helps), Internal (grades differ: another attempt may);
//   (b) shard final or job cancelled -> FailedPrecondition;
//   (c) fence not the row's current one -> Aborted (from PENDING the current fence still lands its work);
//   (d) insert;  (e) the last missing item moves the shard to DONE, exactly one row changed.
// Thread: Commit from any thread; it blocks on the store's writer.
#pragma once

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/coordinator_api.h"
#include "coordinator/planner/benchmark_pool.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

enum class RegradeMode { kAll, kOnePercent, kNone };

class ResultIngest {
 public:
  // All pointers outlive this object.
  ResultIngest(Store* store, BenchmarkPool* benchmarks, const Clock* clock, RegradeMode regrade)
      : store_(*store), benchmarks_(*benchmarks), clock_(*clock), regrade_(regrade) {}

  // The reply's outcomes follow request.items. A non-OK status means that nothing was stored: NotFound (no such job or
  // shard), ResourceExhausted (queue or disk full: same request again later), store errors.
  absl::StatusOr<CommitItemsReply> Commit(const CommitItemsRequest& request);

 private:
  struct Context;
  absl::Status CheckItem(const Context& context, const ItemResult& item) const;
  absl::Status Regrade(const Context& context, const ItemResult& item) const;
  absl::StatusOr<absl::Status> Land(WriteTxn& txn, const Context& context, const ItemResult& item,
                                    const absl::Status& checked) const;
  absl::Status CommitAll(WriteTxn& txn, const std::vector<absl::Status>& checked, Context* context,
                         CommitItemsReply* reply) const;
  absl::Status FinishIfComplete(WriteTxn& txn, const Context& context, CommitItemsReply* reply) const;

  Store& store_;
  BenchmarkPool& benchmarks_;
  const Clock& clock_;
  const RegradeMode regrade_;
};

}  // namespace iha::coordinator
