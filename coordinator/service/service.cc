#include "coordinator/service/service.h"

#include "benchmarks/graders/graders.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/version.h"
#include "coordinator/store/sqlite_store.h"
#include "reports/aggregate.h"
#include "reports/ranks.h"
#include "reports/render.h"
#include "reports/table.h"

namespace iha::coordinator {
namespace {

absl::StatusOr<std::vector<MetricValueRecord>> MetricValues(const reports::Snapshot& snapshot, size_t job_index) {
  const reports::JobRows& job = snapshot.jobs[job_index];
  std::vector<MetricValueRecord> records;
  for (const reports::Cell& cell : reports::CellsOf(job)) {
    MetricValueRecord& record = records.emplace_back();
    record.metric = cell.metric;
    record.planned = cell.planned;
    record.scored = cell.scored;
    if (!cell.value.has_value()) continue;
    record.value = cell.value->ToDouble();
    record.low = cell.interval->low;
    record.high = cell.interval->high;
  }
  return records;
}

absl::StatusOr<std::vector<AverageRankRecord>> AverageRankRows(const reports::Snapshot& snapshot) {
  IHA_ASSIGN_OR_RETURN(const reports::Table table,
                       reports::BuildTable(snapshot, {.baseline = "", .rank_spread = false}));
  std::vector<AverageRankRecord> records;
  for (size_t m = 0; m < table.rows.size(); m++) {
    AverageRankRecord& record = records.emplace_back();
    record.model_index = static_cast<int32_t>(m);
    if (table.rows[m].average_rank.has_value()) record.value = table.rows[m].average_rank->ToDouble();
  }
  return records;
}

absl::StatusOr<std::string> RenderTable(const reports::Snapshot& snapshot, const std::string& layout,
                                        const std::string& baseline, const std::string& format) {
  IHA_ASSIGN_OR_RETURN(const reports::Table table,
                       reports::BuildTable(snapshot, {.layout = layout, .baseline = baseline}));
  return reports::Render(table, format);
}

constexpr absl::Duration kTick = absl::Seconds(1);
// While writes fail, the log says so this often.
constexpr absl::Duration kSayAgain = absl::Minutes(1);

}  // namespace

BenchmarkOpener OpenerFor(const std::string& data_root, std::shared_ptr<benchmarks::Graders> graders) {
  return [data_root, graders = std::move(graders)](const BenchmarkRef& ref) {
    return benchmarks::OpenBenchmark(ref, data_root, graders);
  };
}

absl::StatusOr<std::unique_ptr<Service>> Service::Open(ServiceOptions options, Clock& clock) {
  std::unique_ptr<Service> service(new Service(std::move(options), clock));
  IHA_ASSIGN_OR_RETURN(service->store_,
                       OpenSqliteStore({.path = service->options_.db,
                                        .on_failed_write = [self = service.get()](const absl::Status& status) {
                                          self->OnFailedWrite(status);
                                        }}));
  CoordinatorConfig config;
  config.version = kVersion;
  config.metric_values = MetricValues;
  config.average_ranks = AverageRankRows;
  config.render_table = RenderTable;
  config.on_event = service->options_.events;
  auto graders = std::make_shared<benchmarks::Graders>(benchmarks::GraderOptions{.guard = service->options_.guard});
  IHA_ASSIGN_OR_RETURN(
      service->coordinator_,
      Coordinator::Open(service->store_.get(), &clock, OpenerFor(service->options_.data_root, std::move(graders)),
                        std::move(config)));
  service->ticker_ = std::thread([self = service.get()] { self->TickLoop(); });
  return service;
}

Service::~Service() {
  {
    const absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  if (ticker_.joinable()) ticker_.join();
}

void Service::OnFailedWrite(const absl::Status& status) {
  {
    const absl::MutexLock lock(&failed_mu_);
    const absl::Duration now = clock_.Elapsed();
    failed_ = {.status = status, .at = now};
    if (now - said_ < kSayAgain) return;
    said_ = now;
  }
  if (options_.log) options_.log(std::string(status.message()));
}

std::optional<FailedWrite> Service::last_failed_write() const {
  const absl::MutexLock lock(&failed_mu_);
  return failed_;
}

void Service::TickLoop() {
  for (;;) {
    if (const absl::Status status = coordinator_->Tick(); !status.ok() && options_.log) {
      options_.log(fmt::format("background step: {}", std::string(status.message())));
    }
    const absl::MutexLock lock(&mu_);
    const absl::Duration next = clock_.Elapsed() + kTick;
    if (clock_.AwaitUntil(
            &mu_, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return stopping_; }, next)) {
      return;
    }
  }
}

}  // namespace iha::coordinator
