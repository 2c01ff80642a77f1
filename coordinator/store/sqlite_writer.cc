#include "coordinator/store/sqlite_writer.h"

#include "common/errors.h"
#include "common/fault_point.h"
#include "common/status_macros.h"
#include "coordinator/store/sqlite_txn.h"

namespace iha::coordinator {

struct SqliteWriter::Task {
  const Fn* fn = nullptr;
  absl::Status result;  // set by the writer thread before `done`
  bool done = false;    // guarded by mu_
};

SqliteWriter::SqliteWriter(const SqliteStoreOptions& options, std::unique_ptr<Connection> db)
    : queue_limit_(options.queue_limit),
      group_limit_(options.group_limit),
      db_(std::move(db)),
      thread_([this] { Loop(); }) {}

SqliteWriter::~SqliteWriter() {
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
  }
  thread_.join();
}

absl::Status SqliteWriter::Run(const Fn& fn, WhenFull when_full) {
  Task task;
  task.fn = &fn;
  absl::MutexLock lock(&mu_);
  if (queue_.size() >= queue_limit_ && when_full == WhenFull::kRefuse) {
    return ResourceExhausted("{} writes are waiting for the database; send the same request again in a second",
                             queue_.size());
  }
  const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return queue_.size() < queue_limit_; };
  mu_.Await(absl::Condition(&has_room));
  queue_.push_back(&task);
  mu_.Await(absl::Condition(&task.done));
  return task.result;
}

std::vector<SqliteWriter::Task*> SqliteWriter::NextGroup() {
  absl::MutexLock lock(&mu_);
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return closing_ || !queue_.empty(); };
  mu_.Await(absl::Condition(&ready));
  std::vector<Task*> group;
  while (!queue_.empty() && group.size() < group_limit_) {
    group.push_back(queue_.front());
    queue_.pop_front();
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
        if (!alone.ok()) task->result = alone;
      }
    }
    absl::MutexLock lock(&mu_);
    for (Task* task : group) task->done = true;
  }
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
