// service.h: a whole coordinator over one database file: store, coordinator, reports' aggregation and the background
// tick, as iha-coordinator and `iha-eval run` both need it.
//
// Thread: api() may be called from any; the tick runs on a thread of its own. Errors of Open: those of OpenSqliteStore
// and Coordinator::Open.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "coordinator/coordinator.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

struct ServiceOptions {
  std::string db;          // file; created if absent
  std::string data_root;   // benchmark data
  std::string guard = {};  // FindMathGuard(); "" = math.robust is graded again in this process (tests)
  std::function<void(const std::string& line)> log = nullptr;     // what goes wrong
  std::function<void(const std::string& line)> events = nullptr;  // CoordinatorConfig::on_event
};

// A write that the database file could not take.
struct FailedWrite {
  absl::Status status;
  absl::Duration at;  // clock.Elapsed()
};

class Service {
 public:
  // `clock` must outlive the service.
  static absl::StatusOr<std::unique_ptr<Service>> Open(ServiceOptions options, Clock& clock);
  ~Service();

  Coordinator& api() { return *coordinator_; }
  Store& store() { return *store_; }
  // The last one; workers send their results again until the file takes them.
  std::optional<FailedWrite> last_failed_write() const;

 private:
  Service(ServiceOptions options, Clock& clock) : options_(std::move(options)), clock_(clock) {}
  void TickLoop();
  void OnFailedWrite(const absl::Status& status);

  const ServiceOptions options_;
  Clock& clock_;
  mutable absl::Mutex failed_mu_;
  std::optional<FailedWrite> failed_ ABSL_GUARDED_BY(failed_mu_);
  absl::Duration said_ ABSL_GUARDED_BY(failed_mu_) = -absl::InfiniteDuration();
  std::unique_ptr<Store> store_;
  std::unique_ptr<Coordinator> coordinator_;
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread ticker_;
};

// The opener of real benchmarks below `data_root`.
BenchmarkOpener OpenerFor(const std::string& data_root, std::shared_ptr<benchmarks::Graders> graders = nullptr);

}  // namespace iha::coordinator
