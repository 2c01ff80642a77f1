// sqlite_writer.h: the one thread that writes to the database, with a bounded queue and group commit.
//
// Waiting writes are committed together, each in a savepoint of its own inside one BEGIN IMMEDIATE: one that fails
// undoes only itself. If the commit itself fails (disk full), each is run again alone, so that only those that cannot
// be stored fail. A caller hears OK only after its commit has been synced.
// Thread: Run from any thread but the writer's own; it blocks until the write has ended.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/bounded_queue.h"
#include "coordinator/store/sqlite_connection.h"
#include "coordinator/store/sqlite_store.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

class SqliteWriter {
 public:
  using Fn = std::function<absl::Status(WriteTxn&)>;
  enum class WhenFull { kWait, kRefuse };

  SqliteWriter(const SqliteStoreOptions& options, std::unique_ptr<Connection> db);
  // Finishes what is queued.
  ~SqliteWriter();
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  // ResourceExhausted when full under kRefuse; else the result of `fn` or of the commit.
  absl::Status Run(const Fn& fn, WhenFull when_full);

 private:
  struct Task;
  void Loop();
  std::vector<Task*> NextGroup();  // empty: closing and nothing is left
  absl::Status RunInSavepoint(Task* task);
  absl::Status TryGroup(const std::vector<Task*>& group);
  void ReportFailure(const absl::Status& status) const;

  const size_t group_limit_;
  const std::function<void(const absl::Status&)> on_failed_write_;
  const std::unique_ptr<Connection> db_;  // used by the writer thread only
  BoundedQueue<Task*> queue_;             // each lives on its caller's stack until it is done
  absl::Mutex done_mu_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace iha::coordinator
