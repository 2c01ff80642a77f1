// Registration and model offers.
#include <limits>

#include "proto/codec/parts.h"

namespace iha::codec {

void ToWire(const RegisterWorkerRequest& in, wire::RegisterWorkerRequest* out) {
  out->Clear();
  out->set_request_id(in.request_id.value);
  out->set_worker(in.worker.value);
  out->set_incarnation(in.incarnation);
  for (const std::string& id : in.numerics_ids) out->add_numerics_ids(id);
  out->set_description(in.description);
}

absl::StatusOr<RegisterWorkerRequest> FromWire(const wire::RegisterWorkerRequest& in) {
  absl::Status status;
  const Check at("RegisterWorkerRequest", &status);
  RegisterWorkerRequest out;
  out.request_id = {at.Id("request_id", in.request_id())};
  out.worker = {at.Id("worker", in.worker())};
  out.incarnation = at.Int("incarnation", in.incarnation(), 0, std::numeric_limits<int64_t>::max());
  out.numerics_ids = ReadNames("numerics_ids", in.numerics_ids(), at);
  out.description = at.Line("description", in.description(), kMaxLineBytes);
  return Checked(std::move(status), std::move(out));
}

void ToWire(const RegisterWorkerReply& in, wire::RegisterWorkerReply* out) {
  out->Clear();
  out->set_coordinator_incarnation(in.coordinator_incarnation);
  out->set_heartbeat_interval_us(absl::ToInt64Microseconds(in.heartbeat_interval));
  for (const std::string& model : in.wanted_models) out->add_wanted_models(model);
}

absl::StatusOr<RegisterWorkerReply> FromWire(const wire::RegisterWorkerReply& in) {
  absl::Status status;
  const Check at("RegisterWorkerReply", &status);
  RegisterWorkerReply out;
  out.coordinator_incarnation =
      at.Int("coordinator_incarnation", in.coordinator_incarnation(), 0, std::numeric_limits<int64_t>::max());
  out.heartbeat_interval = at.Micros("heartbeat_interval_us", in.heartbeat_interval_us());
  out.wanted_models = ReadNames("wanted_models", in.wanted_models(), at);
  return Checked(std::move(status), std::move(out));
}

void ToWire(const OfferModelsRequest& in, wire::OfferModelsRequest* out) {
  out->Clear();
  out->set_request_id(in.request_id.value);
  out->set_worker(in.worker.value);
  for (const ModelOffer& offer : in.offers) {
    wire::ModelOffer* to = out->add_offers();
    to->set_name(offer.name);
    to->set_weights(RawBytes(offer.weights));
    to->set_tokenizer(RawBytes(offer.tokenizer));
    to->set_context_tokens(offer.context_tokens);
  }
}

absl::StatusOr<OfferModelsRequest> FromWire(const wire::OfferModelsRequest& in) {
  absl::Status status;
  const Check at("OfferModelsRequest", &status);
  OfferModelsRequest out;
  out.request_id = {at.Id("request_id", in.request_id())};
  out.worker = {at.Id("worker", in.worker())};
  if (at.Count("offers", in.offers_size(), kMaxListed)) {
    for (int i = 0; i < in.offers_size(); i++) {
      const Check offer = at.Sub("offers", i);
      ModelOffer& to = out.offers.emplace_back();
      to.name = ReadModelName("name", in.offers(i).name(), offer);
      to.weights = offer.Hash("weights", in.offers(i).weights());
      to.tokenizer = offer.Hash("tokenizer", in.offers(i).tokenizer());
      to.context_tokens = offer.Int("context_tokens", in.offers(i).context_tokens(), 1, kMaxCount);
    }
  }
  return Checked(std::move(status), std::move(out));
}

void ToWire(const OfferModelsReply& in, wire::OfferModelsReply* out) {
  out->Clear();
  for (const std::string& name : in.accepted) out->add_accepted(name);
  for (const std::string& line : in.refused) out->add_refused(line);
}

absl::StatusOr<OfferModelsReply> FromWire(const wire::OfferModelsReply& in) {
  absl::Status status;
  const Check at("OfferModelsReply", &status);
  OfferModelsReply out;
  out.accepted = ReadNames("accepted", in.accepted(), at);
  out.refused = ReadNames("refused", in.refused(), at);
  return Checked(std::move(status), std::move(out));
}

}  // namespace iha::codec
