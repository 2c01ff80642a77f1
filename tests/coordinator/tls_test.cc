// TLS between real ends: who is trusted, and what a bad file or a bad certificate is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/errors.h"
#include "coordinator/rpc/server.h"
#include "proto/link/caller.h"
#include "proto/link/grpc_log.h"
#include "proto/link/tls_files.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_dir.h"
#include "worker/link/grpc_worker_api.h"

namespace iha::coordinator {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
using testing::WriteCertificate;

// Knows one call, which tells that a request came through.
class Api final : public WorkerApi, public ClientApi {
 public:
  absl::StatusOr<RegisterWorkerReply> RegisterWorker(const RegisterWorkerRequest&) override {
    return RegisterWorkerReply{
        .coordinator_incarnation = 1, .heartbeat_interval = absl::Seconds(1), .wanted_models = {}};
  }
  absl::StatusOr<OfferModelsReply> OfferModels(const OfferModelsRequest&) override { return No(); }
  absl::StatusOr<AcquireLeaseReply> AcquireLease(const AcquireLeaseRequest&) override { return No(); }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest&) override { return No(); }
  absl::StatusOr<LookupGenerationsReply> LookupGenerations(const LookupGenerationsRequest&) override { return No(); }
  absl::StatusOr<PutGenerationsReply> PutGenerations(const PutGenerationsRequest&) override { return No(); }
  absl::StatusOr<CommitItemsReply> CommitItems(const CommitItemsRequest&) override { return No(); }
  absl::Status ReleaseLease(const ReleaseLeaseRequest&) override { return No(); }
  absl::StatusOr<SweepId> Submit(const SweepSpec&) override { return No(); }
  absl::StatusOr<SweepProgress> Status(const SweepId&) override { return No(); }
  absl::StatusOr<std::vector<SweepSummary>> List() override { return No(); }
  absl::Status Cancel(const SweepId&) override { return No(); }
  absl::StatusOr<std::string> Table(const SweepId&, const std::string&, const std::string&,
                                    const std::string&) override {
    return No();
  }

 private:
  static absl::Status No() { return Internal("not called here"); }
};

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    link::SilenceGrpcLog();
    const testing::Signed ca = WriteCertificate(dir_.path(), "ca", 30, nullptr);
    WriteCertificate(dir_.path(), "other", 30, nullptr);
    WriteCertificate(dir_.path(), "good", 30, &ca);
    WriteCertificate(dir_.path(), "expired", -2, &ca);
    std::ofstream(dir_.File("text")) << "no PEM";
  }
  std::string Pem(const std::string& name) const { return dir_.File(name + ".pem"); }
  std::string Key(const std::string& name) const { return dir_.File(name + ".key"); }
  ServerOptions Options(const std::string& cert, const std::string& key) const {
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.tls_cert = cert;
    options.tls_key = key;
    return options;
  }
  // Registers at a server with the certificate, trusting `ca`.
  absl::Status Register(const ServerOptions& options, link::Endpoint endpoint) {
    const auto server = RpcServer::Start(api_, api_, options);
    if (!server.ok()) return server.status();
    endpoint.address = fmt::format("127.0.0.1:{}", (*server)->port());
    link::CallPolicy policy;
    policy.deadline = absl::Seconds(20);
    auto caller = link::Caller::Open(endpoint, policy, clock_);
    if (!caller.ok()) return caller.status();
    const RegisterWorkerRequest request{
        .request_id = {"r"}, .worker = {"w"}, .incarnation = 1, .numerics_ids = {}, .description = ""};
    return worker::MakeGrpcWorkerApi(*std::move(caller))->RegisterWorker(request).status();
  }
  static link::Endpoint Trusting(const std::string& ca) {
    link::Endpoint endpoint;
    endpoint.tls_ca = ca;
    return endpoint;
  }

  TempDir dir_;
  RealClock clock_;
  Api api_;
};

TEST_F(TlsTest, ATrustedCertificateIsTakenOthersAreRefusedAtOnce) {
  const absl::Status good = Register(Options(Pem("good"), Key("good")), Trusting(Pem("ca")));
  EXPECT_TRUE(good.ok()) << good;
  const absl::Duration start = clock_.Elapsed();
  for (const auto& [cert, ca] : {std::pair{"good", "other"}, std::pair{"expired", "ca"}}) {
    const absl::Status refused = Register(Options(Pem(cert), Key(cert)), Trusting(Pem(ca)));
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("its TLS certificate is not trusted"));
  }
  EXPECT_LT(clock_.Elapsed() - start, absl::Seconds(20)) << "it was tried until the deadline";
}

TEST_F(TlsTest, ClientsMustShowACertificateWhereOneIsAsked) {
  ServerOptions options = Options(Pem("good"), Key("good"));
  options.tls_client_ca = Pem("ca");
  link::Endpoint endpoint = Trusting(Pem("ca"));
  endpoint.tls_cert = Pem("good");
  endpoint.tls_key = Key("good");
  const absl::Status shown = Register(options, endpoint);
  EXPECT_TRUE(shown.ok()) << shown;
}

TEST_F(TlsTest, BadFilesAreNamedByTheirFlag) {
  const auto server = [&](const std::string& cert, const std::string& key) {
    return std::string(Register(Options(cert, key), Trusting(Pem("ca"))).message());
  };
  EXPECT_THAT(server(Pem("good"), ""), HasSubstr("TLS needs both --tls-cert and --tls-key"));
  EXPECT_THAT(server(dir_.File("text"), Key("good")), HasSubstr("text: no PEM certificate in it"));
  EXPECT_THAT(server(Pem("good"), dir_.File("text")), HasSubstr("text: no private key in it"));
  EXPECT_THAT(server(Pem("good"), Key("other")), HasSubstr("other.key: not the key of the certificate in"));
  EXPECT_THAT(server(dir_.File("none"), Key("good")), HasSubstr("--tls-cert: " + dir_.File("none")));

  const ServerOptions good = Options(Pem("good"), Key("good"));
  EXPECT_THAT(std::string(Register(good, Trusting(dir_.File("text"))).message()),
              HasSubstr("--tls-ca " + dir_.File("text") + ": no PEM certificate"));
  link::Endpoint half = Trusting(Pem("ca"));
  half.tls_cert = Pem("good");
  EXPECT_THAT(std::string(Register(good, half).message()), HasSubstr("TLS needs both --tls-cert and --tls-key"));
  half.tls_ca.clear();
  EXPECT_THAT(std::string(Register(good, half).message()), HasSubstr("need --tls-ca"));
}

}  // namespace
}  // namespace iha::coordinator
