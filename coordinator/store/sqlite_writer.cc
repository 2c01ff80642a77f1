#include "coordinator/store/sqlite_writer.h"

#include "common/errors.h"
#include "common/fault_point.h"
#include "common/status_macros.h"
#include "coordinator/store/sqlite_txn.h"

namespace iha::coordinator {

struct SqliteWriter::Task {
  const Fn* fn = nullptr;
  absl::Status result;  // set by the writer thread before `done`
  bool done = false;    // guarded by done_mu_
};

SqliteWriter::SqliteWriter(const SqliteStoreOptions& options, std::unique_ptr<Connection> db)
    : group_limit_(options.group_limit),
      on_failed_write_(options.on_failed_write),
      db_(std::move(db)),
      queue_(options.queue_limit, options.queue_limit / 2),
      thread_([this] { Loop(); }) {}

SqliteWriter::~SqliteWriter() {
  queue_.Close();
  thread_.join();
}

absl::Status SqliteWriter::Run(const Fn& fn, WhenFull when_full) {
  Task task;
  task.fn = &fn;
  Task* pending = &task;
  if (when_full == WhenFull::kWait) {
    if (!queue_.WaitPush(std::move(pending))) return Unavailable("{}: the store is closing", db_->path());
  } else if (const PushResult pushed = queue_.TryPush(std::move(pending)); pushed != PushResult::kOk) {
    if (pushed == PushResult::kClosed) return Unavailable("{}: the store is closing", db_->path());
    return ResourceExhausted("too many writes are waiting for the database; send the same request again in a second");
  }
  const absl::MutexLock lock(&done_mu_);
  done_mu_.Await(absl::Condition(&task.done));
  return task.result;
}

std::vector<SqliteWriter::Task*> SqliteWriter::NextGroup() {
  std::vector<Task*> group;
  for (std::optional<Task*> task = queue_.WaitPop(); task.has_value(); task = queue_.TryPop()) {
    group.push_back(*task);
    if (group.size() == group_limit_) break;
  }
  return group;
}

void SqliteWriter::Loop() {
  for (std::vector<Task*> group = NextGroup(); !group.empty(); group = NextGroup()) {
    const absl::Status status = TryGroup(group);
    if (!status.ok()) {
      for (Task* task : group) {
        // OK of the commit leaves what the function itself returned.
        const absl::Status alone = group.size() == 1 ? status : TryGroup({task});
        if (alone.ok()) continue;
        task->result = alone;
        ReportFailure(alone);
      }
    }
    const absl::MutexLock lock(&done_mu_);
    for (Task* task : group) task->done = true;  // gone once the lock is given up
  }
}

void SqliteWriter::ReportFailure(const absl::Status& status) const {
  if (on_failed_write_) on_failed_write_(status);
}

absl::Status SqliteWriter::RunInSavepoint(Task* task) {
  IHA_RETURN_IF_ERROR(db_->Exec("SAVEPOINT task"));
  SqliteTxn txn(db_.get());
  task->result = (*task->fn)(txn);
  // A full disk or an I/O error makes SQLite roll the whole transaction back: the group has failed, not the task alone.
  if (!db_->in_transaction()) {
    return task->result.ok() ? Internal("{}: transaction lost in the middle of a write", db_->path()) : task->result;
  }
  if (!task->result.ok()) IHA_RETURN_IF_ERROR(db_->Exec("ROLLBACK TO task"));
  return db_->Exec("RELEASE task");
}

absl::Status SqliteWriter::TryGroup(const std::vector<Task*>& group) {
  IHA_RETURN_IF_ERROR(IHA_FAULT_STATUS("store.commit.begin"));
  absl::Status status = db_->Exec("BEGIN IMMEDIATE");
  for (size_t i = 0; i < group.size() && status.ok(); ++i) status = RunInSavepoint(group[i]);
  if (status.ok()) status = IHA_FAULT_STATUS("store.commit.before_commit");
  if (status.ok()) status = db_->Exec("COMMIT");
  if (!status.ok()) {
    if (db_->in_transaction()) db_->Exec("ROLLBACK").IgnoreError();
    return status;
  }
  IHA_FAULT_POINT("store.commit.after_commit");
  return absl::OkStatus();
}

}  // namespace iha::coordinator
