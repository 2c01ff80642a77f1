// Generations, item results, and the calls that carry them.
#include <limits>

#include "proto/codec/parts.h"

namespace iha::codec {
namespace {

constexpr int kMaxStatusCode = 16;

wire::Unscored ToWire(Unscored reason) { return static_cast<wire::Unscored>(static_cast<int>(reason) + 1); }

Unscored ReadUnscored(const char* field, wire::Unscored value, const Check& at) {
  const int domain = static_cast<int>(value) - 1;
  if (domain < 0 || domain > static_cast<int>(kLastUnscored) || value == wire::UNSCORED_PENDING) {
    at.Fail(field, fmt::to_string(static_cast<int>(value)), "a reason of the list other than PENDING");
    return Unscored::kScored;
  }
  return static_cast<Unscored>(domain);
}

void Write(const Score& in, wire::Score* out) {
  out->set_num(in.num);
  out->set_den(in.den);
}

Score ReadScore(const char* field, bool present, const wire::Score& in, const Check& parent) {
  parent.Has(field, present);
  const Check at = parent.Sub(field);
  const int64_t den = at.Int("den", in.den(), 1, std::numeric_limits<int64_t>::max());
  return {.num = at.Int("num", in.num(), 0, den), .den = den};
}

SampleGrade Read(const wire::SampleGrade& in, const Check& at) {
  SampleGrade out;
  out.metric = at.Name("metric", in.metric());
  out.extracted = at.Bytes("extracted", in.extracted(), kMaxTextBytes);
  out.valid = in.valid();
  out.unscored = ReadUnscored("unscored", in.unscored(), at);
  out.score = ReadScore("score", in.has_score(), in.score(), at);
  out.reason = at.Bytes("reason", in.reason(), kMaxTextBytes);
  out.group = at.Int32("group", in.group(), 0, kMaxSamples) - 1;
  return out;
}

ItemValue Read(const wire::ItemValue& in, const Check& at) {
  ItemValue out;
  out.metric = at.Name("metric", in.metric());
  out.unscored = ReadUnscored("unscored", in.unscored(), at);
  out.score = ReadScore("score", in.has_score(), in.score(), at);
  out.winner = at.Bytes("winner", in.winner(), kMaxTextBytes);
  out.tie = ReadScore("tie", in.has_tie(), in.tie(), at);
  out.invalid = at.Int32("invalid", in.invalid(), 0, kMaxSamples);
  return out;
}

std::vector<GenKey> ReadKeys(const char* field, const google::protobuf::RepeatedPtrField<std::string>& in,
                             const Check& at) {
  std::vector<GenKey> keys;
  if (!at.Count(field, in.size(), kMaxListed)) return keys;
  for (const std::string& key : in) keys.push_back({at.Hash(field, key)});
  return keys;
}

std::vector<Generation> ReadGenerations(const char* field,
                                        const google::protobuf::RepeatedPtrField<wire::Generation>& in,
                                        const Check& at) {
  std::vector<Generation> out;
  if (!at.Count(field, in.size(), kMaxListed)) return out;
  for (int i = 0; i < in.size() && at.ok(); i++) out.push_back(Read(in[i], at.Sub(field, i)));
  return out;
}

}  // namespace

ItemResult Read(const wire::ItemResult& in, const Check& at) {
  ItemResult out;
  out.index = at.Int("index", in.index(), 0, kMaxItems);
  out.item_id = at.Name("item_id", in.item_id());
  out.unscored = ReadUnscored("unscored", in.unscored(), at);
  if (!at.Count("samples", in.samples_size(), kMaxSamples) || !at.Count("values", in.values_size(), kMaxListed)) {
    return out;
  }
  if (out.unscored != Unscored::kScored && in.samples_size() > 0) {
    at.Fail("samples", fmt::format("{} samples", in.samples_size()), "none for an item that was not run");
  }
  for (int s = 0; s < in.samples_size(); s++) {
    const Check sample = at.Sub("samples", s);
    SampleResult& result = out.samples.emplace_back();
    result.generation = {sample.Hash("generation", in.samples(s).generation())};
    if (!sample.Count("grades", in.samples(s).grades_size(), kMaxListed)) return out;
    for (int g = 0; g < in.samples(s).grades_size(); g++) {
      result.grades.push_back(Read(in.samples(s).grades(g), sample.Sub("grades", g)));
    }
  }
  for (int v = 0; v < in.values_size(); v++) out.values.push_back(Read(in.values(v), at.Sub("values", v)));
  return out;
}

Generation Read(const wire::Generation& in, const Check& at) {
  Generation out;
  out.key = {at.Hash("key", in.key())};
  if (!at.Count("tokens", in.tokens_size(), kMaxTokens)) return out;
  out.tokens.assign(in.tokens().begin(), in.tokens().end());
  for (const int32_t token : out.tokens) at.Int("tokens", token, 0, std::numeric_limits<int32_t>::max());
  out.text = at.Bytes("text", in.text(), kMaxTextBytes);
  const int finish = static_cast<int>(in.finish());
  if (finish < static_cast<int>(FinishReason::kEos) || finish > static_cast<int>(FinishReason::kLength)) {
    at.Fail("finish", fmt::to_string(finish), "EOS, STOP or LENGTH");
  } else {
    out.finish = static_cast<FinishReason>(finish);
  }
  out.prompt_tokens = at.Int32("prompt_tokens", in.prompt_tokens(), 0, kMaxTokens);
  const Digest checksum = at.Hash("checksum", in.checksum());
  if (at.ok() && checksum != out.Checksum()) {
    at.Fail("checksum", checksum.Hex(), out.Checksum().Hex(), absl::StatusCode::kDataLoss);
  }
  return out;
}

void ToWire(const Generation& in, wire::Generation* out) {
  out->Clear();
  out->set_key(RawBytes(in.key.digest));
  out->mutable_tokens()->Add(in.tokens.begin(), in.tokens.end());
  out->set_text(in.text);
  out->set_finish(static_cast<wire::FinishReason>(in.finish));
  out->set_prompt_tokens(in.prompt_tokens);
  out->set_checksum(RawBytes(in.Checksum()));
}

absl::StatusOr<Generation> FromWire(const wire::Generation& in) { return ReadMessage("Generation", in); }

void ToWire(const ItemResult& in, wire::ItemResult* out) {
  out->Clear();
  out->set_index(in.index);
  out->set_item_id(in.item_id);
  out->set_unscored(ToWire(in.unscored));
  for (const SampleResult& sample : in.samples) {
    wire::SampleResult* to = out->add_samples();
    to->set_generation(RawBytes(sample.generation.digest));
    for (const SampleGrade& grade : sample.grades) {
      wire::SampleGrade* g = to->add_grades();
      g->set_metric(grade.metric);
      g->set_extracted(grade.extracted);
      g->set_valid(grade.valid);
      g->set_unscored(ToWire(grade.unscored));
      Write(grade.score, g->mutable_score());
      g->set_reason(grade.reason);
      g->set_group(grade.group + 1);
    }
  }
  for (const ItemValue& value : in.values) {
    wire::ItemValue* to = out->add_values();
    to->set_metric(value.metric);
    to->set_unscored(ToWire(value.unscored));
    Write(value.score, to->mutable_score());
    to->set_winner(value.winner);
    Write(value.tie, to->mutable_tie());
    to->set_invalid(value.invalid);
  }
}

absl::StatusOr<ItemResult> FromWire(const wire::ItemResult& in) { return ReadMessage("ItemResult", in); }

// Tags, lengths and numbers of one field take at most 16 bytes beside its payload.
size_t WireBytes(const Generation& generation) {
  constexpr size_t kFields = 7, kTokenBytes = 5;
  return generation.tokens.size() * kTokenBytes + generation.text.size() + 2 * kDigestBytes + 16 * kFields;
}

size_t WireBytes(const ItemResult& item) {
  constexpr size_t kScoreBytes = 32, kElementBytes = 128;
  size_t bytes = kElementBytes + item.item_id.size();
  for (const SampleResult& sample : item.samples) {
    bytes += kElementBytes;
    for (const SampleGrade& g : sample.grades) {
      bytes += kElementBytes + kScoreBytes + g.metric.size() + g.extracted.size() + g.reason.size();
    }
  }
  for (const ItemValue& v : item.values) bytes += kElementBytes + 2 * kScoreBytes + v.metric.size() + v.winner.size();
  return bytes;
}

void ToWire(const LookupGenerationsRequest& in, wire::LookupGenerationsRequest* out) {
  out->Clear();
  for (const GenKey& key : in.keys) out->add_keys(RawBytes(key.digest));
}

absl::StatusOr<LookupGenerationsRequest> FromWire(const wire::LookupGenerationsRequest& in) {
  absl::Status status;
  LookupGenerationsRequest out;
  out.keys = ReadKeys("keys", in.keys(), Check("LookupGenerationsRequest", &status));
  return Checked(std::move(status), std::move(out));
}

void ToWire(const LookupGenerationsReply& in, wire::LookupGenerationsReply* out, size_t budget) {
  out->Clear();
  size_t bytes = 0;
  for (const Generation& generation : in.found) {
    bytes += WireBytes(generation);
    if (bytes <= budget || out->found_size() == 0) {
      ToWire(generation, out->add_found());
    } else {
      out->add_not_sent(RawBytes(generation.key.digest));
    }
  }
}

absl::StatusOr<LookupPage> FromWire(const wire::LookupGenerationsReply& in) {
  absl::Status status;
  const Check at("LookupGenerationsReply", &status);
  LookupPage out;
  out.reply.found = ReadGenerations("found", in.found(), at);
  out.not_sent = ReadKeys("not_sent", in.not_sent(), at);
  if (in.found_size() == 0 && in.not_sent_size() > 0) at.Fail("found", "nothing", "at least one when more are left");
  return Checked(std::move(status), std::move(out));
}

void ToWire(const PutGenerationsRequest& in, wire::PutGenerationsRequest* out) {
  out->Clear();
  out->set_request_id(in.request_id.value);
  out->set_worker(in.worker.value);
  for (const Generation& generation : in.generations) ToWire(generation, out->add_generations());
}

absl::StatusOr<PutGenerationsRequest> FromWire(const wire::PutGenerationsRequest& in) {
  absl::Status status;
  const Check at("PutGenerationsRequest", &status);
  PutGenerationsRequest out;
  out.request_id = {at.Id("request_id", in.request_id())};
  out.worker = {at.Id("worker", in.worker())};
  out.generations = ReadGenerations("generations", in.generations(), at);
  return Checked(std::move(status), std::move(out));
}

void ToWire(const PutGenerationsReply& in, wire::PutGenerationsReply* out) {
  out->Clear();
  for (const GenKey& key : in.divergent) out->add_divergent(RawBytes(key.digest));
}

absl::StatusOr<PutGenerationsReply> FromWire(const wire::PutGenerationsReply& in) {
  absl::Status status;
  PutGenerationsReply out;
  out.divergent = ReadKeys("divergent", in.divergent(), Check("PutGenerationsReply", &status));
  return Checked(std::move(status), std::move(out));
}

void ToWire(const CommitItemsRequest& in, wire::CommitItemsRequest* out) {
  out->Clear();
  out->set_request_id(in.request_id.value);
  out->set_worker(in.worker.value);
  out->set_shard(static_cast<int64_t>(in.shard));
  Write(in.fence, out->mutable_fence());
  out->set_job_id(RawBytes(in.job_id.digest));
  for (const ItemResult& item : in.items) ToWire(item, out->add_items());
  if (in.telemetry.has_value()) Write(*in.telemetry, out->mutable_telemetry());
}

absl::StatusOr<CommitItemsRequest> FromWire(const wire::CommitItemsRequest& in) {
  absl::Status status;
  const Check at("CommitItemsRequest", &status);
  CommitItemsRequest out;
  out.request_id = {at.Id("request_id", in.request_id())};
  out.worker = {at.Id("worker", in.worker())};
  out.shard = ReadShard(in.shard(), at);
  at.Has("fence", in.has_fence());
  out.fence = Read(in.fence(), at.Sub("fence"));
  out.job_id = {at.Hash("job_id", in.job_id())};
  if (at.Count("items", in.items_size(), kMaxListed)) {
    for (int i = 0; i < in.items_size() && at.ok(); i++) out.items.push_back(Read(in.items(i), at.Sub("items", i)));
  }
  if (in.has_telemetry()) out.telemetry = Read(in.telemetry(), at.Sub("telemetry"));
  return Checked(std::move(status), std::move(out));
}

void ToWire(const CommitItemsReply& in, wire::CommitItemsReply* out) {
  out->Clear();
  for (const absl::Status& outcome : in.outcomes) {
    wire::Outcome* to = out->add_outcomes();
    to->set_code(static_cast<int>(outcome.code()));
    to->set_message(std::string(outcome.message()).substr(0, kMaxLineBytes));
  }
  out->set_shard_done(in.shard_done);
}

absl::StatusOr<CommitItemsReply> FromWire(const wire::CommitItemsReply& in) {
  absl::Status status;
  const Check at("CommitItemsReply", &status);
  CommitItemsReply out;
  if (at.Count("outcomes", in.outcomes_size(), kMaxListed)) {
    for (int i = 0; i < in.outcomes_size(); i++) {
      const Check outcome = at.Sub("outcomes", i);
      const int code = outcome.Int32("code", in.outcomes(i).code(), 0, kMaxStatusCode);
      out.outcomes.emplace_back(static_cast<absl::StatusCode>(code),
                                outcome.Bytes("message", in.outcomes(i).message(), kMaxLineBytes));
    }
  }
  out.shard_done = in.shard_done();
  return Checked(std::move(status), std::move(out));
}

}  // namespace iha::codec
