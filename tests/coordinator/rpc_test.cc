// The seam between the programs: RpcServer in front of a recording Api, called as workers and clients call it, over TCP
// and a Unix socket.
#include "coordinator/rpc/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/codec/codec.h"
#include "proto/eval/v1/service.grpc.pb.h"
#include "proto/link/unary.h"
#include "tests/proto/samples.h"
#include "tests/support/temp_dir.h"
#include "worker/link/grpc_worker_api.h"

namespace iha::coordinator {
namespace {

namespace wire = codec::wire;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::TempDir;

// A value as text, to compare values of types without ==.
template <class Wire, class T>
std::string Text(const T& value) {
  Wire out;
  codec::ToWire(value, &out);
  return out.DebugString();
}

AcquireLeaseReply SampleAcquireReply() {
  AcquireLeaseReply reply;
  reply.grant = testing::SampleGrant();
  reply.wanted_models = {"team/iha"};
  return reply;
}

SweepProgress SampleProgress() {
  SweepProgress progress;
  progress.sweep = IdOf(testing::SampleSweep());
  progress.state = "running";
  progress.jobs = {{.job = IdOf(testing::SampleJob()),
                    .model = "base",
                    .entry = "gsm8k",
                    .state = "running",
                    .planned = 9,
                    .scored = 4,
                    .unscored = 1}};
  progress.live_workers = 2;
  progress.notes = {"one line"};
  return progress;
}

// Keeps what it was asked, in wire text, and answers with fixed values, or with `error` unless that is OK.
// The calls of these tests come one after the other, so nothing is locked.
class Recorder final : public WorkerApi, public ClientApi {
 public:
  absl::StatusOr<RegisterWorkerReply> RegisterWorker(const RegisterWorkerRequest& request) override {
    return Answer<wire::RegisterWorkerRequest>(request, register_reply);
  }
  absl::StatusOr<OfferModelsReply> OfferModels(const OfferModelsRequest& request) override {
    return Answer<wire::OfferModelsRequest>(request, offer_reply);
  }
  absl::StatusOr<AcquireLeaseReply> AcquireLease(const AcquireLeaseRequest& request) override {
    return Answer<wire::AcquireLeaseRequest>(request, SampleAcquireReply());
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override {
    return Answer<wire::HeartbeatRequest>(request, heartbeat_reply);
  }
  absl::StatusOr<LookupGenerationsReply> LookupGenerations(const LookupGenerationsRequest& request) override {
    lookups.push_back(request.keys.size());
    LookupGenerationsReply reply;
    for (const GenKey& key : request.keys) {
      for (const Generation& generation : stored) {
        if (generation.key == key) reply.found.push_back(generation);
      }
    }
    return reply;
  }
  absl::StatusOr<PutGenerationsReply> PutGenerations(const PutGenerationsRequest& request) override {
    put_ids.push_back(request.request_id.value);
    stored.insert(stored.end(), request.generations.begin(), request.generations.end());
    return PutGenerationsReply{.divergent = {request.generations.front().key}};
  }
  absl::StatusOr<CommitItemsReply> CommitItems(const CommitItemsRequest& request) override {
    return Answer<wire::CommitItemsRequest>(request, commit_reply);
  }
  absl::Status ReleaseLease(const ReleaseLeaseRequest& request) override {
    return Answer<wire::ReleaseLeaseRequest>(request, 0).status();
  }

  absl::StatusOr<SweepId> Submit(const SweepSpec& spec) override { return Answer<wire::SweepSpec>(spec, IdOf(spec)); }
  absl::StatusOr<SweepProgress> Status(const SweepId& sweep) override {
    return Answer<wire::StatusRequest>(sweep, SampleProgress());
  }
  absl::StatusOr<std::vector<SweepSummary>> List() override {
    if (!error.ok()) return error;
    return std::vector<SweepSummary>{summary};
  }
  absl::Status Cancel(const SweepId& sweep) override { return Answer<wire::CancelRequest>(sweep, 0).status(); }
  absl::StatusOr<std::string> Table(const SweepId& sweep, const std::string& layout, const std::string& baseline,
                                    const std::string& format) override {
    return Answer<wire::TableRequest>(
        codec::TableQuery{.sweep = sweep, .layout = layout, .baseline = baseline, .format = format},
        std::string("| table |"));
  }

  template <class Wire, class Request, class Reply>
  absl::StatusOr<Reply> Answer(const Request& request, const Reply& reply) {
    seen.push_back(Text<Wire>(request));
    if (!error.ok()) return error;
    return reply;
  }

  absl::Status error;
  std::vector<std::string> seen;
  std::vector<size_t> lookups;  // keys of each call
  std::vector<std::string> put_ids;
  std::vector<Generation> stored;
  const RegisterWorkerReply register_reply{
      .coordinator_incarnation = 7, .heartbeat_interval = absl::Milliseconds(1500), .wanted_models = {"a", "b"}};
  const OfferModelsReply offer_reply{.accepted = {"a"}, .refused = {"b: has weights X, the sweep is bound to Y"}};
  const HeartbeatReply heartbeat_reply{.verdicts = {LeaseVerdict::kKeep, LeaseVerdict::kLost},
                                       .ttl = absl::Seconds(30)};
  const CommitItemsReply commit_reply{.outcomes = {absl::AlreadyExistsError("another value")}, .shard_done = true};
  const SweepSummary summary{.sweep = IdOf(testing::SampleSweep()),
                             .state = "done",
                             .run_tag = "again",
                             .submitted = absl::FromUnixSeconds(1'700'000'000),
                             .planned = 5,
                             .finished = 3};
};

RegisterWorkerRequest SampleRegister() {
  return {.request_id = testing::SampleRequestId(),
          .worker = testing::SampleWorker(),
          .incarnation = 11,
          .numerics_ids = {NumericsSpec().Id()},
          .description = "host, 8 threads"};
}

CommitItemsRequest SampleCommit() {
  return {.request_id = testing::SampleRequestId(),
          .worker = testing::SampleWorker(),
          .shard = ShardId{5},
          .fence = {.incarnation = 2, .epoch = 9},
          .job_id = IdOf(testing::SampleJob()),
          .items = {testing::SampleItem()}};
}

HeartbeatRequest SampleHeartbeat() {
  return {.request_id = testing::SampleRequestId(),
          .worker = testing::SampleWorker(),
          .incarnation = 11,
          .leases = {{.shard = ShardId{5}, .fence = {2, 9}}, {ShardId{6}, {2, 1}}},
          .outbox_items = 3,
          .tokens_per_second = 12.5};
}

ReleaseLeaseRequest SampleRelease() {
  return {.request_id = testing::SampleRequestId(),
          .worker = testing::SampleWorker(),
          .shard = ShardId{5},
          .fence = {2, 9},
          .reason = ReleaseReason::kFailed,
          .error = "bad data",
          .permanent = true};
}

class RpcTest : public ::testing::Test {
 protected:
  static ServerOptions OptionsFor(const std::string& address, const std::string& token = "") {
    ServerOptions options;
    options.address = address;
    options.token = token;
    return options;
  }
  std::unique_ptr<RpcServer> StartAt(const std::string& address, const std::string& token = "") {
    auto server = RpcServer::Start(api_, api_, OptionsFor(address, token));
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  std::unique_ptr<link::Caller> Caller(link::CallPolicy policy = {}, const std::string& token = "") {
    link::Endpoint endpoint;
    endpoint.address = address_;
    endpoint.token = token;
    auto caller = link::Caller::Open(endpoint, std::move(policy), clock_);
    EXPECT_TRUE(caller.ok()) << caller.status();
    return *std::move(caller);
  }
  std::unique_ptr<WorkerApi> Worker(link::CallPolicy policy = {}, const std::string& token = "") {
    return worker::MakeGrpcWorkerApi(Caller(std::move(policy), token));
  }

  TempDir dir_;
  RealClock clock_;
  Recorder api_;
  std::unique_ptr<RpcServer> server_;  // ends before the api
  std::string address_;
};

// Over both kinds of address.
class RpcCallTest : public RpcTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // Starts server_ at address_.
  void Start(const std::string& token = "") {
    const bool tcp = GetParam() == std::string("tcp");
    address_ = tcp ? "127.0.0.1:0" : "unix:" + dir_.File("socket");
    server_ = StartAt(address_, token);
    ASSERT_NE(server_, nullptr);
    if (tcp) address_ = fmt::format("127.0.0.1:{}", server_->port());
  }
};
INSTANTIATE_TEST_SUITE_P(Addresses, RpcCallTest, ::testing::Values("tcp", "unix"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(RpcCallTest, WorkerCallsCarryTheirValues) {
  Start();
  const auto worker = Worker();
  const auto registered = worker->RegisterWorker(SampleRegister());
  ASSERT_TRUE(registered.ok()) << registered.status();
  EXPECT_EQ(api_.seen.back(), Text<wire::RegisterWorkerRequest>(SampleRegister()));
  EXPECT_EQ(Text<wire::RegisterWorkerReply>(*registered), Text<wire::RegisterWorkerReply>(api_.register_reply));

  const OfferModelsRequest offer{
      .request_id = testing::SampleRequestId(),
      .worker = testing::SampleWorker(),
      .offers = {
          {.name = "a", .weights = testing::Filled(1), .tokenizer = testing::Filled(2), .context_tokens = 2048}}};
  const auto offered = worker->OfferModels(offer);
  ASSERT_TRUE(offered.ok()) << offered.status();
  EXPECT_EQ(api_.seen.back(), Text<wire::OfferModelsRequest>(offer));
  EXPECT_EQ(offered->accepted, api_.offer_reply.accepted);
  EXPECT_EQ(offered->refused, api_.offer_reply.refused);

  const AcquireLeaseRequest acquire{.request_id = testing::SampleRequestId(),
                                    .worker = testing::SampleWorker(),
                                    .incarnation = 11,
                                    .models = {"a"},
                                    .numerics_ids = {NumericsSpec().Id()}};
  const auto acquired = worker->AcquireLease(acquire);
  ASSERT_TRUE(acquired.ok()) << acquired.status();
  EXPECT_EQ(api_.seen.back(), Text<wire::AcquireLeaseRequest>(acquire));
  EXPECT_EQ(Text<wire::AcquireLeaseReply>(*acquired), Text<wire::AcquireLeaseReply>(SampleAcquireReply()));

  const auto beat = worker->Heartbeat(SampleHeartbeat());
  ASSERT_TRUE(beat.ok()) << beat.status();
  EXPECT_EQ(api_.seen.back(), Text<wire::HeartbeatRequest>(SampleHeartbeat()));
  EXPECT_EQ(beat->verdicts, api_.heartbeat_reply.verdicts);
  EXPECT_EQ(beat->ttl, api_.heartbeat_reply.ttl);

  const auto committed = worker->CommitItems(SampleCommit());
  ASSERT_TRUE(committed.ok()) << committed.status();
  CommitItemsRequest arrived = SampleCommit();
  arrived.request_id.value += ".0";  // the part of the request
  EXPECT_EQ(api_.seen.back(), Text<wire::CommitItemsRequest>(arrived));
  EXPECT_EQ(committed->outcomes, api_.commit_reply.outcomes);
  EXPECT_TRUE(committed->shard_done);

  EXPECT_TRUE(worker->ReleaseLease(SampleRelease()).ok());
  EXPECT_EQ(api_.seen.back(), Text<wire::ReleaseLeaseRequest>(SampleRelease()));

  const auto put = worker->PutGenerations({testing::SampleRequestId(),
                                           testing::SampleWorker(),
                                           {testing::SampleGeneration(7), testing::SampleGeneration(8)}});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_THAT(put->divergent, ElementsAre(GenKey{testing::Filled(7)}));
  const auto found = worker->LookupGenerations({{{testing::Filled(8)}, {testing::Filled(9)}}});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_THAT(found->found, SizeIs(1));
  EXPECT_EQ(found->found[0].key, GenKey{testing::Filled(8)});
  EXPECT_EQ(found->found[0].Checksum(), testing::SampleGeneration(8).Checksum());
}

TEST_P(RpcCallTest, ClientCallsCarryTheirValues) {
  Start();
  const auto caller = Caller();
  const auto stub = wire::ClientService::NewStub(caller->channel());
  using Stub = wire::ClientService::Stub;
  const SweepSpec spec = testing::SampleSweep();
  const auto id = link::Unary<Stub, wire::SubmitRequest, wire::SubmitReply>(*caller, *stub, &Stub::Submit, spec);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(*id, IdOf(spec));
  EXPECT_EQ(api_.seen.back(), Text<wire::SweepSpec>(spec));

  const auto progress = link::Unary<Stub, wire::StatusRequest, wire::SweepProgress>(*caller, *stub, &Stub::Status, *id);
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(api_.seen.back(), Text<wire::StatusRequest>(*id));
  EXPECT_EQ(Text<wire::SweepProgress>(*progress), Text<wire::SweepProgress>(SampleProgress()));

  const codec::TableQuery query{.sweep = *id, .layout = "table1", .baseline = "base", .format = "csv"};
  const auto table = link::Unary<Stub, wire::TableRequest, wire::TableReply>(*caller, *stub, &Stub::Table, query);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table, "| table |");
  EXPECT_EQ(api_.seen.back(), Text<wire::TableRequest>(query));

  wire::ListReply listed;
  ASSERT_TRUE(caller->Call([&](grpc::ClientContext& c) { return stub->List(&c, wire::ListRequest(), &listed); }).ok());
  EXPECT_EQ(listed.DebugString(), Text<wire::ListReply>(std::vector<SweepSummary>{api_.summary}));

  wire::CancelRequest cancel;
  codec::ToWire(*id, &cancel);
  wire::CancelReply cancelled;
  ASSERT_TRUE(caller->Call([&](grpc::ClientContext& c) { return stub->Cancel(&c, cancel, &cancelled); }).ok());
  EXPECT_EQ(api_.seen.back(), cancel.DebugString());
}

TEST_P(RpcCallTest, ErrorsKeepCodeAndMessage) {
  Start();
  const auto worker = Worker();
  for (const absl::Status& error :
       {absl::NotFoundError("worker \"w\": register again"), absl::AbortedError("fence 2/9 lost, 100% sure \xC3\xA9"),
        absl::FailedPreconditionError("shard 5 is final"), absl::InvalidArgumentError("models[0]: empty"),
        absl::DataLossError("checksum"), absl::InternalError("ours")}) {
    api_.error = error;
    EXPECT_EQ(worker->RegisterWorker(SampleRegister()).status(), error);
    EXPECT_EQ(worker->CommitItems(SampleCommit()).status(), error);
    EXPECT_EQ(worker->Heartbeat(SampleHeartbeat()).status(), error);
    EXPECT_EQ(worker->ReleaseLease(SampleRelease()), error);
  }
}

// 24 MiB: more than a message holds by the codec's own budget.
TEST_P(RpcCallTest, LargePutsAreCutAndLargeLookupsPaged) {
  Start();
  const auto worker = Worker();
  PutGenerationsRequest put{.request_id = {"put"}, .worker = testing::SampleWorker(), .generations = {}};
  LookupGenerationsRequest lookup;
  for (uint8_t i = 1; i <= 4; i++) {
    Generation& generation = put.generations.emplace_back(testing::SampleGeneration(i));
    generation.text.assign(size_t{6} << 20, static_cast<char>('a' + i));
    lookup.keys.push_back(generation.key);
  }
  const auto reply = worker->PutGenerations(put);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_THAT(api_.put_ids, ElementsAre("put.0", "put.1"));
  // The answers of both parts are there.
  EXPECT_THAT(reply->divergent, ElementsAre(put.generations[0].key, put.generations[2].key));
  ASSERT_THAT(api_.stored, SizeIs(4));
  for (size_t i = 0; i < 4; i++) EXPECT_EQ(api_.stored[i].Checksum(), put.generations[i].Checksum()) << i;

  const auto found = worker->LookupGenerations(lookup);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(api_.lookups, ElementsAre(4, 2));
  ASSERT_THAT(found->found, SizeIs(4));
  for (size_t i = 0; i < 4; i++) EXPECT_EQ(found->found[i].Checksum(), put.generations[i].Checksum()) << i;
}

TEST_P(RpcCallTest, ATokenIsAskedOfEveryCall) {
  Start("secret");
  for (const char* token : {"", "Secret", "secret2", "secre"}) {
    SCOPED_TRACE(token);
    const absl::Status refused = Worker({}, token)->RegisterWorker(SampleRegister()).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnauthenticated) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(*token == '\0' ? "needs a token" : "token refused"));
    const auto caller = Caller({}, token);
    const auto stub = wire::ClientService::NewStub(caller->channel());
    wire::ListReply listed;
    EXPECT_EQ(caller->Call([&](grpc::ClientContext& c) { return stub->List(&c, wire::ListRequest(), &listed); }).code(),
              absl::StatusCode::kUnauthenticated);
  }
  EXPECT_THAT(api_.seen, SizeIs(0));
  EXPECT_TRUE(Worker({}, "secret")->RegisterWorker(SampleRegister()).ok());
}

TEST_F(RpcTest, ATakenPortIsUnavailable) {
  const auto first = StartAt("127.0.0.1:0");
  ASSERT_NE(first, nullptr);
  const std::string address = fmt::format("127.0.0.1:{}", first->port());
  const absl::Status second = RpcServer::Start(api_, api_, OptionsFor(address)).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr(address));
}

TEST_F(RpcTest, ADeadAddressIsUnavailableByName) {
  address_ = "unix:" + dir_.File("nobody");
  const absl::Duration start = clock_.Elapsed();
  link::CallPolicy policy;
  policy.deadline = absl::Milliseconds(300);
  const absl::Status status = Worker(policy)->RegisterWorker(SampleRegister()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(address_));
  // It ends at once when the next attempt would begin past the deadline; 10 s allow for a busy machine, and are less
  // than an attempt's own 20 s.
  EXPECT_LT(clock_.Elapsed() - start, absl::Seconds(10));
}

TEST_F(RpcTest, AServerThatStartsLaterIsFound) {
  address_ = "unix:" + dir_.File("late");
  std::vector<std::string> told;
  link::CallPolicy policy;
  policy.on_retry = [&](const std::string& line) {
    told.push_back(line);
    server_ = StartAt(address_);
  };
  const auto registered = Worker(policy)->RegisterWorker(SampleRegister());
  EXPECT_TRUE(registered.ok()) << registered.status();
  EXPECT_THAT(told, ElementsAre(HasSubstr(address_)));
  EXPECT_THAT(api_.seen, SizeIs(1));
}

}  // namespace
}  // namespace iha::coordinator
