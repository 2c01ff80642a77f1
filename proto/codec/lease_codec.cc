// Leases, heartbeats, releases.
#include <limits>

#include "proto/codec/parts.h"

namespace iha::codec {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

ItemRange Read(const wire::ItemRange& in, const Check& at) {
  ItemRange out;
  out.begin = at.Int("begin", in.begin(), 0, kMaxItems);
  out.end = at.Int("end", in.end(), in.begin(), kMaxItems);
  return out;
}

LeaseGrant Read(const wire::LeaseGrant& in, const Check& at) {
  LeaseGrant out;
  out.shard = ReadShard(in.shard(), at);
  at.Has("fence", in.has_fence());
  at.Has("job", in.has_job());
  at.Has("range", in.has_range());
  out.fence = Read(in.fence(), at.Sub("fence"));
  out.ttl = at.Micros("ttl_us", in.ttl_us());
  out.job_id = {at.Hash("job_id", in.job_id())};
  out.job = Read(in.job(), at.Sub("job"));
  out.range = Read(in.range(), at.Sub("range"));
  int64_t lowest = out.range.begin;
  for (const int64_t item : in.missing()) {
    at.Int("missing", item, lowest, out.range.end - 1);
    if (!at.ok()) break;
    out.missing.push_back(item);
    lowest = item + 1;
  }
  out.weights = at.Hash("weights", in.weights());
  out.tokenizer = at.Hash("tokenizer", in.tokenizer());
  return out;
}

}  // namespace

Fence Read(const wire::Fence& in, const Check& at) {
  return {.incarnation = at.Int("incarnation", in.incarnation(), 0, kMaxInt64),
          .epoch = at.Int("epoch", in.epoch(), 0, kMaxInt64)};
}

void Write(const Fence& in, wire::Fence* out) {
  out->set_incarnation(in.incarnation);
  out->set_epoch(in.epoch);
}

ShardId ReadShard(int64_t shard, const Check& at) { return ShardId{at.Int("shard", shard, 1, kMaxInt64)}; }

void ToWire(const AcquireLeaseRequest& in, wire::AcquireLeaseRequest* out) {
  out->Clear();
  out->set_request_id(in.request_id.value);
  out->set_worker(in.worker.value);
  out->set_incarnation(in.incarnation);
  for (const std::string& model : in.models) out->add_models(model);
  for (const std::string& id : in.numerics_ids) out->add_numerics_ids(id);
  for (const std::string& name : in.refused_benchmarks) out->add_refused_benchmarks(name);
}

absl::StatusOr<AcquireLeaseRequest> FromWire(const wire::AcquireLeaseRequest& in) {
  absl::Status status;
  const Check at("AcquireLeaseRequest", &status);
  AcquireLeaseRequest out;
  out.request_id = {at.Id("request_id", in.request_id())};
  out.worker = {at.Id("worker", in.worker())};
  out.incarnation = at.Int("incarnation", in.incarnation(), 0, kMaxInt64);
  out.models = ReadNames("models", in.models(), at);
  out.numerics_ids = ReadNames("numerics_ids", in.numerics_ids(), at);
  out.refused_benchmarks = ReadNames("refused_benchmarks", in.refused_benchmarks(), at);
  return Checked(std::move(status), std::move(out));
}

void ToWire(const AcquireLeaseReply& in, wire::AcquireLeaseReply* out) {
  out->Clear();
  if (in.grant.has_value()) {
    const LeaseGrant& grant = *in.grant;
    wire::LeaseGrant* to = out->mutable_grant();
    to->set_shard(static_cast<int64_t>(grant.shard));
    Write(grant.fence, to->mutable_fence());
    to->set_ttl_us(absl::ToInt64Microseconds(grant.ttl));
    to->set_job_id(RawBytes(grant.job_id.digest));
    ToWire(grant.job, to->mutable_job());
    to->mutable_range()->set_begin(grant.range.begin);
    to->mutable_range()->set_end(grant.range.end);
    to->mutable_missing()->Add(grant.missing.begin(), grant.missing.end());
    to->set_weights(RawBytes(grant.weights));
    to->set_tokenizer(RawBytes(grant.tokenizer));
  }
  out->set_retry_after_us(absl::ToInt64Microseconds(in.retry_after));
  out->set_all_done(in.all_done);
  for (const std::string& model : in.wanted_models) out->add_wanted_models(model);
}

absl::StatusOr<AcquireLeaseReply> FromWire(const wire::AcquireLeaseReply& in) {
  absl::Status status;
  const Check at("AcquireLeaseReply", &status);
  AcquireLeaseReply out;
  if (in.has_grant()) out.grant = Read(in.grant(), at.Sub("grant"));
  out.retry_after = at.Micros("retry_after_us", in.retry_after_us());
  out.all_done = in.all_done();
  out.wanted_models = ReadNames("wanted_models", in.wanted_models(), at);
  return Checked(std::move(status), std::move(out));
}

void ToWire(const HeartbeatRequest& in, wire::HeartbeatRequest* out) {
  out->Clear();
  out->set_request_id(in.request_id.value);
  out->set_worker(in.worker.value);
  out->set_incarnation(in.incarnation);
  for (const HeartbeatRequest::Held& held : in.leases) {
    wire::HeldLease* to = out->add_leases();
    to->set_shard(static_cast<int64_t>(held.shard));
    Write(held.fence, to->mutable_fence());
  }
  out->set_outbox_items(in.outbox_items);
  out->set_tokens_per_second(in.tokens_per_second);
}

absl::StatusOr<HeartbeatRequest> FromWire(const wire::HeartbeatRequest& in) {
  absl::Status status;
  const Check at("HeartbeatRequest", &status);
  HeartbeatRequest out;
  out.request_id = {at.Id("request_id", in.request_id())};
  out.worker = {at.Id("worker", in.worker())};
  out.incarnation = at.Int("incarnation", in.incarnation(), 0, kMaxInt64);
  if (at.Count("leases", in.leases_size(), kMaxListed)) {
    for (int i = 0; i < in.leases_size(); i++) {
      const Check lease = at.Sub("leases", i);
      lease.Has("fence", in.leases(i).has_fence());
      const ShardId shard = ReadShard(in.leases(i).shard(), lease);
      out.leases.push_back({.shard = shard, .fence = Read(in.leases(i).fence(), lease.Sub("fence"))});
    }
  }
  out.outbox_items = at.Int("outbox_items", in.outbox_items(), 0, kMaxCount);
  out.tokens_per_second = at.Real("tokens_per_second", in.tokens_per_second(), 0.0, static_cast<double>(kMaxCount));
  return Checked(std::move(status), std::move(out));
}

void ToWire(const HeartbeatReply& in, wire::HeartbeatReply* out) {
  out->Clear();
  for (const LeaseVerdict verdict : in.verdicts) out->add_verdicts(static_cast<wire::LeaseVerdict>(verdict));
  out->set_ttl_us(absl::ToInt64Microseconds(in.ttl));
}

absl::StatusOr<HeartbeatReply> FromWire(const wire::HeartbeatReply& in) {
  absl::Status status;
  const Check at("HeartbeatReply", &status);
  HeartbeatReply out;
  if (at.Count("verdicts", in.verdicts_size(), kMaxListed)) {
    for (const int verdict : in.verdicts()) {
      at.Int("verdicts", verdict, static_cast<int>(LeaseVerdict::kKeep), static_cast<int>(LeaseVerdict::kLost));
      out.verdicts.push_back(static_cast<LeaseVerdict>(verdict));
    }
  }
  out.ttl = at.Micros("ttl_us", in.ttl_us());
  return Checked(std::move(status), std::move(out));
}

void ToWire(const ReleaseLeaseRequest& in, wire::ReleaseLeaseRequest* out) {
  out->Clear();
  out->set_request_id(in.request_id.value);
  out->set_worker(in.worker.value);
  out->set_shard(static_cast<int64_t>(in.shard));
  Write(in.fence, out->mutable_fence());
  out->set_reason(static_cast<wire::ReleaseReason>(in.reason));
  out->set_error(in.error.substr(0, kMaxLineBytes));
  out->set_permanent(in.permanent);
}

absl::StatusOr<ReleaseLeaseRequest> FromWire(const wire::ReleaseLeaseRequest& in) {
  absl::Status status;
  const Check at("ReleaseLeaseRequest", &status);
  ReleaseLeaseRequest out;
  out.request_id = {at.Id("request_id", in.request_id())};
  out.worker = {at.Id("worker", in.worker())};
  out.shard = ReadShard(in.shard(), at);
  at.Has("fence", in.has_fence());
  out.fence = Read(in.fence(), at.Sub("fence"));
  const int64_t reason = at.Int("reason", static_cast<int>(in.reason()), static_cast<int>(ReleaseReason::kDrain),
                                static_cast<int>(ReleaseReason::kUnfit));
  out.reason = static_cast<ReleaseReason>(reason);
  out.error = at.Bytes("error", in.error(), kMaxLineBytes);
  out.permanent = in.permanent();
  return Checked(std::move(status), std::move(out));
}

}  // namespace iha::codec
