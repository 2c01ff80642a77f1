// codec.h: the one translation between wire messages (eval.v1) and domain values (common/).
//
// ToWire cannot fail: it clears *out and fills it. FromWire trusts nothing: it checks presence, lengths, counts, ranges
// and character sets (limits.h) and gives InvalidArgument with the path of the field, or DataLoss for a generation
// whose checksum does not match. A value that went through both is equal to the first. Pure; thread: any.
//
// Callers: coordinator/rpc, worker/link, cli. Wire types go no further.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/coordinator_api.h"
#include "common/eval_types.h"
#include "proto/codec/limits.h"
#include "proto/eval/v1/lease.pb.h"
#include "proto/eval/v1/result.pb.h"
#include "proto/eval/v1/service.pb.h"
#include "proto/eval/v1/sweep.pb.h"
#include "proto/eval/v1/worker.pb.h"

namespace iha::codec {

namespace wire = ::eval::v1;

// ---- sweeps and jobs -------------------------------------------------------------------------------------------

void ToWire(const SweepSpec& in, wire::SweepSpec* out);
absl::StatusOr<SweepSpec> FromWire(const wire::SweepSpec& in);
void ToWire(const JobSpec& in, wire::JobSpec* out);
absl::StatusOr<JobSpec> FromWire(const wire::JobSpec& in);

// ---- generations and results -----------------------------------------------------------------------------------

void ToWire(const Generation& in, wire::Generation* out);
absl::StatusOr<Generation> FromWire(const wire::Generation& in);
void ToWire(const ItemResult& in, wire::ItemResult* out);
absl::StatusOr<ItemResult> FromWire(const wire::ItemResult& in);

void ToWire(const LookupGenerationsRequest& in, wire::LookupGenerationsRequest* out);
absl::StatusOr<LookupGenerationsRequest> FromWire(const wire::LookupGenerationsRequest& in);
// What would make the message larger than `budget` goes into not_sent; at least one generation is sent.
void ToWire(const LookupGenerationsReply& in, wire::LookupGenerationsReply* out, size_t budget = kChunkBytes);
struct LookupPage {
  LookupGenerationsReply reply;
  std::vector<GenKey> not_sent;  // look these up again
};
absl::StatusOr<LookupPage> FromWire(const wire::LookupGenerationsReply& in);

void ToWire(const PutGenerationsRequest& in, wire::PutGenerationsRequest* out);
absl::StatusOr<PutGenerationsRequest> FromWire(const wire::PutGenerationsRequest& in);
void ToWire(const PutGenerationsReply& in, wire::PutGenerationsReply* out);
absl::StatusOr<PutGenerationsReply> FromWire(const wire::PutGenerationsReply& in);
void ToWire(const CommitItemsRequest& in, wire::CommitItemsRequest* out);
absl::StatusOr<CommitItemsRequest> FromWire(const wire::CommitItemsRequest& in);
void ToWire(const CommitItemsReply& in, wire::CommitItemsReply* out);
absl::StatusOr<CommitItemsReply> FromWire(const wire::CommitItemsReply& in);

// Upper bounds of what one element takes in a message.
size_t WireBytes(const Generation& generation);
size_t WireBytes(const ItemResult& item);

// Cuts `all` into runs of at most `budget` bytes (or one larger element), in order. The spans point into `all`.
template <class T>
std::vector<std::span<const T>> SplitBySize(std::span<const T> all, size_t budget = kChunkBytes) {
  std::vector<std::span<const T>> runs;
  size_t begin = 0, bytes = 0;
  for (size_t i = 0; i < all.size(); i++) {
    const size_t next = WireBytes(all[i]);
    if (i > begin && bytes + next > budget) {
      runs.push_back(all.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += next;
  }
  if (begin < all.size()) runs.push_back(all.subspan(begin));
  return runs;
}

// ---- leases ----------------------------------------------------------------------------------------------------

void ToWire(const AcquireLeaseRequest& in, wire::AcquireLeaseRequest* out);
absl::StatusOr<AcquireLeaseRequest> FromWire(const wire::AcquireLeaseRequest& in);
void ToWire(const AcquireLeaseReply& in, wire::AcquireLeaseReply* out);
absl::StatusOr<AcquireLeaseReply> FromWire(const wire::AcquireLeaseReply& in);
void ToWire(const HeartbeatRequest& in, wire::HeartbeatRequest* out);
absl::StatusOr<HeartbeatRequest> FromWire(const wire::HeartbeatRequest& in);
void ToWire(const HeartbeatReply& in, wire::HeartbeatReply* out);
absl::StatusOr<HeartbeatReply> FromWire(const wire::HeartbeatReply& in);
void ToWire(const ReleaseLeaseRequest& in, wire::ReleaseLeaseRequest* out);
absl::StatusOr<ReleaseLeaseRequest> FromWire(const wire::ReleaseLeaseRequest& in);

// ---- workers ---------------------------------------------------------------------------------------------------

void ToWire(const RegisterWorkerRequest& in, wire::RegisterWorkerRequest* out);
absl::StatusOr<RegisterWorkerRequest> FromWire(const wire::RegisterWorkerRequest& in);
void ToWire(const RegisterWorkerReply& in, wire::RegisterWorkerReply* out);
absl::StatusOr<RegisterWorkerReply> FromWire(const wire::RegisterWorkerReply& in);
void ToWire(const OfferModelsRequest& in, wire::OfferModelsRequest* out);
absl::StatusOr<OfferModelsRequest> FromWire(const wire::OfferModelsRequest& in);
void ToWire(const OfferModelsReply& in, wire::OfferModelsReply* out);
absl::StatusOr<OfferModelsReply> FromWire(const wire::OfferModelsReply& in);

// ---- clients ---------------------------------------------------------------------------------------------------

struct TableQuery {
  SweepId sweep;
  std::string layout;
  std::string baseline;  // model name or ""
  std::string format;
  bool operator==(const TableQuery&) const = default;
};

void ToWire(const SweepSpec& in, wire::SubmitRequest* out);
absl::StatusOr<SweepSpec> FromWire(const wire::SubmitRequest& in);
void ToWire(const SweepId& in, wire::SubmitReply* out);
absl::StatusOr<SweepId> FromWire(const wire::SubmitReply& in);
void ToWire(const SweepId& in, wire::StatusRequest* out);
absl::StatusOr<SweepId> FromWire(const wire::StatusRequest& in);
void ToWire(const SweepId& in, wire::CancelRequest* out);
absl::StatusOr<SweepId> FromWire(const wire::CancelRequest& in);
void ToWire(const SweepProgress& in, wire::SweepProgress* out);
absl::StatusOr<SweepProgress> FromWire(const wire::SweepProgress& in);
void ToWire(const std::vector<SweepSummary>& in, wire::ListReply* out);
absl::StatusOr<std::vector<SweepSummary>> FromWire(const wire::ListReply& in);
void ToWire(const TableQuery& in, wire::TableRequest* out);
absl::StatusOr<TableQuery> FromWire(const wire::TableRequest& in);
void ToWire(const std::string& in, wire::TableReply* out);
absl::StatusOr<std::string> FromWire(const wire::TableReply& in);

}  // namespace iha::codec
