// Any bytes as any message of the wire: the codec refuses or gives a value that is a fixed point of the round trip.
// The first byte of the input chooses the message.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "proto/codec/codec.h"

namespace iha::codec {
namespace {

// What the peer reads back of a value that we read.
template <class Wire, class Domain>
void CheckFixedPoint(const Domain& value) {
  Wire again;
  ToWire(value, &again);
  const auto second = FromWire(again);
  if (!second.ok()) {
    std::fprintf(stderr, "refused after a round trip: %s\n", second.status().ToString().c_str());
    std::abort();
  }
}

template <class Wire>
void Try(const uint8_t* data, size_t size) {
  Wire message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return;
  const auto value = FromWire(message);
  if (!value.ok()) {
    if (value.status().message().empty()) std::abort();
    return;
  }
  CheckFixedPoint<Wire>(*value);
}

template <>
void Try<wire::LookupGenerationsReply>(const uint8_t* data, size_t size) {
  wire::LookupGenerationsReply message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return;
  const auto value = FromWire(message);
  if (!value.ok()) return;
  wire::LookupGenerationsReply again;
  ToWire(value->reply, &again, SIZE_MAX);
  if (again.found_size() != message.found_size() || !FromWire(again).ok()) std::abort();
}

constexpr void (*kMessages[])(const uint8_t*, size_t) = {
    Try<wire::SweepSpec>,
    Try<wire::JobSpec>,
    Try<wire::Generation>,
    Try<wire::ItemResult>,
    Try<wire::LookupGenerationsRequest>,
    Try<wire::LookupGenerationsReply>,
    Try<wire::PutGenerationsRequest>,
    Try<wire::PutGenerationsReply>,
    Try<wire::CommitItemsRequest>,
    Try<wire::CommitItemsReply>,
    Try<wire::AcquireLeaseRequest>,
    Try<wire::AcquireLeaseReply>,
    Try<wire::HeartbeatRequest>,
    Try<wire::HeartbeatReply>,
    Try<wire::ReleaseLeaseRequest>,
    Try<wire::RegisterWorkerRequest>,
    Try<wire::RegisterWorkerReply>,
    Try<wire::OfferModelsRequest>,
    Try<wire::OfferModelsReply>,
    Try<wire::SweepProgress>,
    Try<wire::ListReply>,
    Try<wire::TableRequest>,
};

}  // namespace
}  // namespace iha::codec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using iha::codec::kMessages;
  if (size == 0) return 0;
  kMessages[data[0] % std::size(kMessages)](data + 1, size - 1);
  return 0;
}
