#include "proto/codec/codec.h"

#include <google/protobuf/message.h>

#include <cmath>
#include <limits>

#include "common/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/link/grpc_status.h"
#include "tests/proto/samples.h"

namespace iha::codec {
namespace {

using testing::Filled;
using ::testing::HasSubstr;
using testing::SampleGeneration;
using testing::SampleGrant;
using testing::SampleItem;
using testing::SampleJob;
using testing::SampleRequestId;
using testing::SampleSweep;
using testing::SampleWorker;

// Paths of fields that ToWire left at their default: a field that the codec forgot shows up here.
void CollectUnset(const google::protobuf::Message& message, const std::string& path, std::vector<std::string>* unset) {
  const google::protobuf::Descriptor* descriptor = message.GetDescriptor();
  const google::protobuf::Reflection* reflection = message.GetReflection();
  for (int i = 0; i < descriptor->field_count(); i++) {
    const google::protobuf::FieldDescriptor* field = descriptor->field(i);
    const std::string here = path + "." + field->name();
    const bool set =
        field->is_repeated() ? reflection->FieldSize(message, field) > 0 : reflection->HasField(message, field);
    if (!set) {
      unset->push_back(here);
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      CollectUnset(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, 0)
                                        : reflection->GetMessage(message, field),
                   here, unset);
    }
  }
}

std::vector<std::string> Unset(const google::protobuf::Message& message) {
  std::vector<std::string> unset;
  CollectUnset(message, message.GetDescriptor()->name(), &unset);
  return unset;
}

// Over the bytes, as between two processes; gives what the peer reads.
template <class Wire, class Domain>
auto RoundTrip(const Domain& in) {
  Wire sent;
  ToWire(in, &sent);
  EXPECT_THAT(Unset(sent), ::testing::IsEmpty());
  Wire received;
  EXPECT_TRUE(received.ParseFromString(sent.SerializeAsString()));
  auto out = FromWire(received);
  EXPECT_TRUE(out.ok()) << out.status();
  return out;
}

// As RoundTrip, for types without ==: what was read, written again, gives the same bytes.
template <class Wire, class Domain>
Domain ByteRoundTrip(const Domain& in) {
  auto out = RoundTrip<Wire>(in);
  Wire first, second;
  ToWire(in, &first);
  ToWire(*out, &second);
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());
  return *std::move(out);
}

template <class Wire>
std::string Refusal(const Wire& message) {
  const absl::Status status = FromWire(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message.ShortDebugString();
  return std::string(status.message());
}

TEST(Codec, SweepRoundTrip) {
  EXPECT_EQ(*RoundTrip<wire::SweepSpec>(SampleSweep()), SampleSweep());
  EXPECT_EQ(*RoundTrip<wire::SubmitRequest>(SampleSweep()), SampleSweep());
  EXPECT_EQ(IdOf(*RoundTrip<wire::SweepSpec>(SampleSweep())), IdOf(SampleSweep()));
}

TEST(Codec, OptionsMayBeLongAndHaveLineBreaks) {
  for (const std::string& text : {std::string("be brief\nand right"), std::string(65536, 'x')}) {
    SweepSpec sweep = SampleSweep();
    sweep.entries[0].benchmark.options.begin()->second = text;
    EXPECT_EQ(*RoundTrip<wire::SweepSpec>(sweep), sweep);
  }
  // What clients show of such an entry is cut.
  SweepProgress progress;
  progress.state = "running";
  progress.jobs = {{JobId{Filled(6)}, "base", "gsm8k?system=" + std::string(65536, 'x'), "running", 10, 4, 1}};
  progress.live_workers = progress.leased_shards = 1;
  progress.tokens_per_second = 1;
  progress.notes = {"note"};
  const std::string entry = ByteRoundTrip<wire::SweepProgress>(progress).jobs[0].entry;
  EXPECT_TRUE(entry.starts_with("gsm8k?system=xxx") && entry.ends_with("xxx...")) << entry.size();
}

TEST(Codec, JobRoundTripKeepsItsId) { EXPECT_EQ(IdOf(ByteRoundTrip<wire::JobSpec>(SampleJob())), IdOf(SampleJob())); }

TEST(Codec, ResultRoundTrips) {
  const Generation generation = ByteRoundTrip<wire::Generation>(SampleGeneration());
  EXPECT_EQ(generation.Checksum(), SampleGeneration().Checksum());
  EXPECT_EQ(generation.text, SampleGeneration().text);
  EXPECT_EQ(*RoundTrip<wire::ItemResult>(SampleItem()), SampleItem());
  for (int reason = 0; reason <= static_cast<int>(kLastUnscored); reason++) {
    if (static_cast<Unscored>(reason) == Unscored::kPending) continue;
    ItemResult not_run;
    not_run.index = 1;
    not_run.item_id = "x";
    not_run.unscored = static_cast<Unscored>(reason);
    wire::ItemResult message;
    ToWire(not_run, &message);
    EXPECT_EQ(message.unscored(), reason + 1);
    const auto read = FromWire(message);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, not_run);
  }
}

TEST(Codec, ResultCallRoundTrips) {
  ByteRoundTrip<wire::LookupGenerationsRequest>(LookupGenerationsRequest{{{Filled(1)}, {Filled(2)}}});
  ByteRoundTrip<wire::PutGenerationsRequest>(
      PutGenerationsRequest{SampleRequestId(), SampleWorker(), {SampleGeneration(1), SampleGeneration(2)}});
  ByteRoundTrip<wire::PutGenerationsReply>(PutGenerationsReply{{{Filled(1)}}});
  const auto commit = ByteRoundTrip<wire::CommitItemsRequest>(CommitItemsRequest{SampleRequestId(),
                                                                                 SampleWorker(),
                                                                                 ShardId{3},
                                                                                 Fence{1, 2},
                                                                                 JobId{Filled(9)},
                                                                                 {SampleItem(), SampleItem()},
                                                                                 testing::SampleTelemetry()});
  EXPECT_EQ(commit.telemetry, testing::SampleTelemetry());
  EXPECT_EQ(commit.items.size(), 2u);
  EXPECT_EQ(commit.fence, (Fence{1, 2}));
  const auto reply = ByteRoundTrip<wire::CommitItemsReply>(
      CommitItemsReply{{Aborted("fence lost"), absl::OkStatus(), AlreadyExists("stored")}, true});
  EXPECT_EQ(reply.outcomes[0], Aborted("fence lost"));
  EXPECT_EQ(reply.outcomes[1], absl::OkStatus());
  EXPECT_EQ(reply.outcomes[2], AlreadyExists("stored"));
}

TEST(Codec, LeaseRoundTrips) {
  const auto acquire = ByteRoundTrip<wire::AcquireLeaseRequest>(
      AcquireLeaseRequest{SampleRequestId(), SampleWorker(), 77, {"a", "b"}, {NumericsSpec().Id()}, {"mbpp"}});
  EXPECT_EQ(acquire.models, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(acquire.refused_benchmarks, std::vector<std::string>{"mbpp"});
  const auto granted =
      ByteRoundTrip<wire::AcquireLeaseReply>(AcquireLeaseReply{SampleGrant(), absl::Milliseconds(1500), true, {"a"}});
  ASSERT_TRUE(granted.grant.has_value());
  EXPECT_EQ(granted.grant->missing, SampleGrant().missing);
  EXPECT_EQ(granted.grant->ttl, absl::Seconds(30));
  EXPECT_EQ(IdOf(granted.grant->job), granted.grant->job_id);
  wire::AcquireLeaseReply nothing;
  ToWire(AcquireLeaseReply{std::nullopt, absl::Seconds(2), false, {}}, &nothing);
  EXPECT_FALSE(FromWire(nothing)->grant.has_value());

  HeartbeatRequest beat{SampleRequestId(), SampleWorker(), 77, {}, 4, 123.5};
  beat.leases = {{ShardId{1}, {1, 1}}, {ShardId{2}, {1, 5}}};
  const auto beat_read = ByteRoundTrip<wire::HeartbeatRequest>(beat);
  EXPECT_EQ(beat_read.leases[1].fence, (Fence{1, 5}));
  const auto verdicts = ByteRoundTrip<wire::HeartbeatReply>(
      HeartbeatReply{{LeaseVerdict::kKeep, LeaseVerdict::kCancel, LeaseVerdict::kLost}, absl::Seconds(30)});
  EXPECT_EQ(verdicts.verdicts[2], LeaseVerdict::kLost);
  const auto release = ByteRoundTrip<wire::ReleaseLeaseRequest>(ReleaseLeaseRequest{
      SampleRequestId(), SampleWorker(), ShardId{8}, {2, 3}, ReleaseReason::kFailed, "bad \xFF weights", true});
  EXPECT_EQ(release.reason, ReleaseReason::kFailed);
  const auto unfit = ByteRoundTrip<wire::ReleaseLeaseRequest>(ReleaseLeaseRequest{
      SampleRequestId(), SampleWorker(), ShardId{8}, {2, 3}, ReleaseReason::kUnfit, "no sandbox", true});
  EXPECT_EQ(unfit.reason, ReleaseReason::kUnfit);
}

TEST(Codec, WorkerRoundTrips) {
  ByteRoundTrip<wire::RegisterWorkerRequest>(
      RegisterWorkerRequest{SampleRequestId(), SampleWorker(), 99, {NumericsSpec().Id()}, "host, 8 threads"});
  const auto registered =
      ByteRoundTrip<wire::RegisterWorkerReply>(RegisterWorkerReply{4, absl::Milliseconds(2500), {"m"}});
  EXPECT_EQ(registered.heartbeat_interval, absl::Milliseconds(2500));
  const auto offers = ByteRoundTrip<wire::OfferModelsRequest>(
      OfferModelsRequest{SampleRequestId(), SampleWorker(), {{"team/iha", Filled(1), Filled(2), 2048}}});
  EXPECT_EQ(offers.offers[0], (ModelOffer{"team/iha", Filled(1), Filled(2), 2048}));
  ByteRoundTrip<wire::OfferModelsReply>(OfferModelsReply{{"a"}, {"b: has weights 12, the sweep is bound to 34"}});
}

TEST(Codec, ClientRoundTrips) {
  const SweepId id = {Filled(5)};
  EXPECT_EQ(*RoundTrip<wire::SubmitReply>(id), id);
  EXPECT_EQ(*RoundTrip<wire::StatusRequest>(id), id);
  EXPECT_EQ(*RoundTrip<wire::CancelRequest>(id), id);
  const TableQuery query{id, "table1", "base", "md"};
  EXPECT_EQ(*RoundTrip<wire::TableRequest>(query), query);
  EXPECT_EQ(*RoundTrip<wire::TableReply>(std::string("| a \xFF|\n")), "| a \xFF|\n");
  SweepProgress progress;
  progress.sweep = id;
  progress.state = "running";
  progress.jobs = {{JobId{Filled(6)}, "base", "gsm8k?fewshot=8", "waiting_for_model", 10, 4, 1}};
  progress.live_workers = 2;
  progress.leased_shards = 3;
  progress.tokens_per_second = 1234.5;
  progress.notes = {"base: refused"};
  EXPECT_EQ(ByteRoundTrip<wire::SweepProgress>(progress).jobs[0].scored, 4);
  const std::vector<SweepSummary> list = {{id, "done", "tag", absl::FromUnixMicros(1700000000000001), 10, 9}};
  EXPECT_EQ(ByteRoundTrip<wire::ListReply>(list)[0].submitted, list[0].submitted);
}

TEST(Codec, RefusesBadSweeps) {
  const auto refusal = [](const auto& change) {
    wire::SweepSpec message;
    ToWire(SampleSweep(), &message);
    change(message);
    return Refusal(message);
  };
  using Spec = wire::SweepSpec;
  EXPECT_EQ(refusal([](Spec& m) { m.mutable_entries(1)->mutable_sampling()->set_top_p(1.5); }),
            "SweepSpec.entries[1].sampling.top_p: found 1.5, expected a number in [0, 1]");
  const auto sampling = [&](const auto& change) {
    return refusal([&](Spec& m) { change(*m.mutable_entries(0)->mutable_sampling()); });
  };
  EXPECT_THAT(sampling([](auto& s) { s.set_top_p(0); }), HasSubstr("(0, 1]"));
  EXPECT_THAT(sampling([](auto& s) { s.set_temperature(-1); }), HasSubstr("temperature"));
  EXPECT_THAT(sampling([](auto& s) { s.set_temperature(std::nan("")); }), HasSubstr("temperature: found nan"));
  EXPECT_THAT(sampling([](auto& s) { s.set_temperature(std::numeric_limits<double>::infinity()); }), HasSubstr("inf"));
  EXPECT_THAT(sampling([](auto& s) { s.set_top_k(-1); }), HasSubstr("top_k"));
  EXPECT_THAT(sampling([](auto& s) { s.set_samples(0); }), HasSubstr("samples"));
  EXPECT_THAT(sampling([](auto& s) { s.set_max_new_tokens(-1); }), HasSubstr("max_new_tokens"));
  EXPECT_THAT(refusal([](Spec& m) { m.clear_models(); }), HasSubstr("SweepSpec.models: found nothing"));
  EXPECT_THAT(refusal([](Spec& m) { m.clear_entries(); }), HasSubstr("SweepSpec.entries"));
  EXPECT_THAT(refusal([](Spec& m) { m.clear_numerics(); }), HasSubstr("SweepSpec.numerics"));
  EXPECT_THAT(refusal([](Spec& m) { m.mutable_entries(0)->clear_sampling(); }), HasSubstr("entries[0].sampling"));
  EXPECT_THAT(refusal([](Spec& m) { m.mutable_entries(0)->set_limit(0); }), HasSubstr("limit"));
  EXPECT_THAT(refusal([](Spec& m) { m.mutable_models(1)->set_name(m.models(0).name()); }), HasSubstr("models[1].name"));
  EXPECT_THAT(refusal([](Spec& m) { m.mutable_models(0)->set_weights_digest("AB"); }), HasSubstr("64 lower-case hex"));
  EXPECT_THAT(refusal([](Spec& m) { m.set_run_tag("a\nb"); }), HasSubstr("printable UTF-8"));
  const auto option = [&](const std::string& value) {
    return refusal([&](Spec& m) { m.mutable_entries(0)->mutable_benchmark()->mutable_options(0)->set_value(value); });
  };
  EXPECT_THAT(option(std::string(65537, 'x')),
              HasSubstr("options[0].value: found 65537 bytes, expected at most 65536"));
  EXPECT_THAT(option("\xFF"), HasSubstr("options[0].value: found \"\\xFF\", expected UTF-8"));
  EXPECT_THAT(refusal([](Spec& m) { m.set_max_attempts(0); }), HasSubstr("max_attempts"));
  EXPECT_THAT(refusal([](Spec& m) { m.set_shard_tokens(0); }), HasSubstr("shard_tokens"));
  EXPECT_THAT(refusal([](Spec& m) {
                auto* options = m.mutable_entries(0)->mutable_benchmark();
                *options->add_options() = options->options(0);
              }),
              HasSubstr("options[2].key: found fewshot, expected keys in increasing order"));
}

TEST(Codec, ModelNamesStayBelowTheRoot) {
  for (const char* bad : {"", "/etc", "a/../b", "..", "a//b", "a/", "./a", "a\tb", "a\x1b[31m"}) {
    wire::SweepSpec message;
    ToWire(SampleSweep(), &message);
    message.mutable_models(0)->set_name(bad);
    EXPECT_THAT(Refusal(message), HasSubstr("SweepSpec.models[0].name")) << bad;
  }
}

TEST(Codec, RefusesBadIdsAndDigests) {
  for (const std::string& bad : std::vector<std::string>{"", "a b", "a/b", "a\n", "\xC3\xA9", std::string(129, 'a')}) {
    wire::RegisterWorkerRequest message;
    message.set_request_id("r");
    message.set_worker(bad);
    EXPECT_THAT(Refusal(message), HasSubstr("RegisterWorkerRequest.worker")) << bad;
    message.set_worker("w");
    message.set_request_id(bad);
    EXPECT_THAT(Refusal(message), HasSubstr("RegisterWorkerRequest.request_id")) << bad;
  }
  for (const size_t size : {0, 31, 33, 64}) {
    wire::StatusRequest message;
    message.set_sweep(std::string(size, 'x'));
    EXPECT_THAT(Refusal(message), HasSubstr("StatusRequest.sweep"));
  }
}

TEST(Codec, RefusesBadGrants) {
  const auto refusal = [](const auto& change) {
    wire::AcquireLeaseReply message;
    ToWire(AcquireLeaseReply{SampleGrant(), absl::ZeroDuration(), false, {}}, &message);
    change(*message.mutable_grant());
    return Refusal(message);
  };
  using Grant = wire::LeaseGrant;
  EXPECT_THAT(refusal([](Grant& g) { g.set_missing(1, 10); }), HasSubstr("missing: found 10"));  // not increasing
  EXPECT_THAT(refusal([](Grant& g) { g.set_missing(0, 9); }), HasSubstr("missing: found 9"));
  EXPECT_THAT(refusal([](Grant& g) { g.set_missing(2, 20); }), HasSubstr("missing: found 20"));
  EXPECT_THAT(refusal([](Grant& g) { g.mutable_range()->set_end(9); }), HasSubstr("range.end"));
  EXPECT_THAT(refusal([](Grant& g) { g.set_shard(0); }), HasSubstr("shard"));
  EXPECT_THAT(refusal([](Grant& g) { g.clear_fence(); }), HasSubstr("fence"));
  EXPECT_THAT(refusal([](Grant& g) { g.set_ttl_us(-1); }), HasSubstr("ttl_us"));
  EXPECT_THAT(refusal([](Grant& g) { g.clear_job(); }), HasSubstr("job"));
}

TEST(Codec, RefusesBadResults) {
  const auto refusal = [](const auto& change) {
    wire::ItemResult message;
    ToWire(SampleItem(), &message);
    change(message);
    return Refusal(message);
  };
  using Item = wire::ItemResult;
  const auto grade = [&](const auto& change) {
    return refusal([&](Item& m) { change(*m.mutable_samples(1)->mutable_grades(0)); });
  };
  EXPECT_THAT(grade([](auto& g) { g.mutable_score()->set_den(0); }),
              HasSubstr("ItemResult.samples[1].grades[0].score.den: found 0"));
  EXPECT_THAT(grade([](auto& g) { g.mutable_score()->set_num(4); }), HasSubstr("score.num"));
  EXPECT_THAT(grade([](auto& g) { g.mutable_score()->set_num(-1); }), HasSubstr("score.num"));
  EXPECT_THAT(grade([](auto& g) { g.clear_score(); }), HasSubstr("score"));
  EXPECT_THAT(grade([](auto& g) { g.clear_unscored(); }), HasSubstr("unscored: found 0"));
  EXPECT_THAT(grade([](auto& g) { g.set_unscored(wire::UNSCORED_PENDING); }), HasSubstr("unscored: found 2"));
  EXPECT_THAT(grade([](auto& g) { g.set_unscored(static_cast<wire::Unscored>(99)); }), HasSubstr("found 99"));
  EXPECT_THAT(refusal([](Item& m) { m.set_unscored(wire::UNSCORED_QUARANTINED); }), HasSubstr("was not run"));
  EXPECT_THAT(refusal([](Item& m) { m.set_index(-1); }), HasSubstr("index"));
}

TEST(Codec, GenerationsAreCheckedEndToEnd) {
  wire::Generation message;
  ToWire(SampleGeneration(), &message);
  const auto code = [](const wire::Generation& m) { return FromWire(m).status().code(); };
  wire::Generation changed = message;
  changed.set_text("another");
  EXPECT_EQ(code(changed), absl::StatusCode::kDataLoss);
  changed = message;
  changed.set_tokens(0, 5);
  EXPECT_EQ(code(changed), absl::StatusCode::kDataLoss);
  changed = message;
  changed.set_tokens(0, -5);
  EXPECT_THAT(Refusal(changed), HasSubstr("tokens: found -5"));
  changed = message;
  changed.clear_finish();
  EXPECT_THAT(Refusal(changed), HasSubstr("finish"));
  changed = message;
  changed.set_text(std::string(kMaxTextBytes + 1, 'a'));
  EXPECT_THAT(Refusal(changed), HasSubstr("text: found 8388609 bytes"));
}

TEST(Codec, TelemetryMayBeAbsentAndIsRefusedWhereItIsBad) {
  wire::CommitItemsRequest message;
  CommitItemsRequest commit{SampleRequestId(), SampleWorker(), ShardId{3}, Fence{1, 2}, JobId{Filled(9)}, {}};
  ToWire(commit, &message);
  EXPECT_FALSE(FromWire(message)->telemetry.has_value()) << "as workers of earlier versions send it";
  commit.telemetry = testing::SampleTelemetry();
  const auto refusal = [&](const auto& change) {
    ToWire(commit, &message);
    change(*message.mutable_telemetry());
    return Refusal(message);
  };
  const std::string at = "CommitItemsRequest.telemetry.";
  EXPECT_THAT(refusal([](auto& t) { t.set_sequence(0); }), HasSubstr(at + "sequence: found 0"));
  EXPECT_THAT(refusal([](auto& t) { t.set_incarnation(-1); }), HasSubstr(at + "incarnation: found -1"));
  EXPECT_THAT(refusal([](auto& t) { t.set_decode_tokens(-5); }), HasSubstr(at + "decode_tokens: found -5"));
  EXPECT_THAT(refusal([](auto& t) { t.set_kv_blocks((int64_t{1} << 53) + 1); }), HasSubstr(at + "kv_blocks: found"));
  EXPECT_THAT(refusal([](auto& t) { t.set_sample_ns(-1); }), HasSubstr(at + "sample_ns: found -1"));
  EXPECT_THAT(refusal([](auto& t) { t.mutable_operations(1)->set_flops(std::nan("")); }),
              HasSubstr(at + "operations[1].flops"));
  EXPECT_THAT(refusal([](auto& t) { t.mutable_operations(0)->set_name("\x1b[2J"); }),
              HasSubstr(at + "operations[0].name"));
  EXPECT_THAT(refusal([](auto& t) {
                while (t.operations_size() < 65) *t.add_operations() = t.operations(0);
              }),
              HasSubstr(at + "operations"));
}

TEST(Codec, RefusesUnknownVerdictsAndReasons) {
  wire::HeartbeatReply beat;
  beat.add_verdicts(wire::LEASE_VERDICT_UNSPECIFIED);
  EXPECT_THAT(Refusal(beat), HasSubstr("verdicts: found 0"));
  wire::ReleaseLeaseRequest release;
  ToWire(ReleaseLeaseRequest{SampleRequestId(), SampleWorker(), ShardId{1}, {}, ReleaseReason::kDrain, "", false},
         &release);
  release.clear_reason();
  EXPECT_THAT(Refusal(release), HasSubstr("reason: found 0"));
  wire::CommitItemsReply commit;
  commit.add_outcomes()->set_code(17);
  EXPECT_THAT(Refusal(commit), HasSubstr("outcomes[0].code"));
}

// The estimate is an upper bound, so that a run that fits it fits the message.
TEST(Codec, WireBytesIsAnUpperBound) {
  wire::PutGenerationsRequest put;
  wire::CommitItemsRequest commit;
  Generation generation = SampleGeneration();
  ItemResult item = SampleItem();
  for (int i = 0; i < 40; i++) {
    put.clear_generations();
    commit.clear_items();
    ToWire(generation, put.add_generations());
    ToWire(item, commit.add_items());
    EXPECT_LE(put.ByteSizeLong(), WireBytes(generation));
    EXPECT_LE(commit.ByteSizeLong(), WireBytes(item));
    generation.tokens.insert(generation.tokens.end(), 100, std::numeric_limits<int32_t>::max());
    generation.text += std::string(1000, 'a');
    item.samples.push_back(item.samples[0]);
    item.samples.back().grades.push_back(item.samples[0].grades[0]);
    item.samples.back().grades[0].score = {std::numeric_limits<int64_t>::max() - 1,
                                           std::numeric_limits<int64_t>::max()};
    item.values.push_back(item.values[0]);
  }
}

TEST(Codec, SplitsBySizeInOrder) {
  std::vector<Generation> all;
  for (uint8_t i = 0; i < 10; i++) all.push_back(SampleGeneration(i));
  all[3].text = std::string(5000, 'x');
  const auto runs = SplitBySize<Generation>(all, 3 * WireBytes(all[0]));
  std::vector<size_t> sizes;
  size_t next = 0;
  for (const auto& run : runs) {
    sizes.push_back(run.size());
    for (const Generation& generation : run) EXPECT_EQ(generation.key, all[next++].key);
  }
  EXPECT_EQ(next, all.size());
  EXPECT_THAT(sizes, ::testing::ElementsAre(3, 1, 3, 3));  // the large one alone
  EXPECT_TRUE(SplitBySize<Generation>(std::vector<Generation>{}, 1).empty());
}

TEST(Codec, LookupRepliesStayWithinTheBudget) {
  LookupGenerationsReply reply;
  for (uint8_t i = 1; i <= 4; i++) reply.found.push_back(SampleGeneration(i));
  wire::LookupGenerationsReply message;
  ToWire(reply, &message, 2 * WireBytes(reply.found[0]));
  const absl::StatusOr<LookupPage> page = FromWire(message);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->reply.found.size(), 2u);
  EXPECT_THAT(page->not_sent, ::testing::ElementsAre(GenKey{Filled(3)}, GenKey{Filled(4)}));
  ToWire(reply, &message, 0);
  EXPECT_EQ(FromWire(message)->reply.found.size(), 1u);  // always some progress
  message.clear_found();
  EXPECT_THAT(Refusal(message), HasSubstr("at least one"));
}

TEST(GrpcStatus, KeepsCodeAndMessage) {
  for (int code = 1; code <= 16; code++) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    EXPECT_EQ(link::FromGrpc(link::ToGrpc(status)), status);
  }
  EXPECT_EQ(link::ToGrpc(Unavailable("x")).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(link::FromGrpc(grpc::Status::OK).ok());
  EXPECT_TRUE(link::ToGrpc(absl::OkStatus()).ok());
  EXPECT_EQ(link::ToGrpc(Internal("{}", std::string(100000, 'm'))).error_message().size(), 2048u);
}

}  // namespace
}  // namespace iha::codec
