// sandbox.h: runs strangers' Python where it can harm nothing, and says how it ended.
//
// A program runs under CPython's standard library alone, with nothing of this process: no environment, descriptors,
// network, files but read-only ones of CPython and small private folders, no privileges; and with limits on memory,
// processes, files, output and time (slot.cc). Nothing of it outlives its run. Open refuses where a limit does not
// hold; there is no way to run without. What a candidate can claim about itself is another matter: judge.h.
// Thread-safe: up to `slots` runs at a time, more wait. Blocking: the run's limits, and the wait. Time limits are the
// caller's: a program that reached one is run again kAlone before that counts.
// Errors: FailedPrecondition (a limit does not hold, or this machine has no bubblewrap: no retry), Unavailable (the
// sandbox itself broke twice over this job: not the program's verdict).
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/sandbox/slot.h"

namespace iha::sandbox {

struct RunLimits {
  int32_t cpu_s = 10;  // of each process
  absl::Duration wall = absl::Seconds(25);
};

enum class RunEnd {
  kCompleted,  // reached its last line
  kRaised,     // an exception ended it, SystemExit included
  kExit,       // the process ended without either (os._exit)
  kSignal,
  kCpu,
  kWall,
  kMemory,  // of all its processes together; one alone gets MemoryError
};

struct RunOutcome {
  RunEnd end = RunEnd::kExit;
  std::string detail;  // the exception, signal or exit code; untrusted
  std::string out;     // what it printed, up to 64 KiB each; untrusted
  std::string err;
  double cpu_s = 0.0;
  absl::Duration wall;
};

enum class Turn { kShared, kAlone };  // kAlone: no other run of this object meanwhile

// A candidate, and the tests that it is judged by.
struct ConfirmJob {
  std::string candidate;
  std::string setup;  // runs behind the candidate, where it runs
  std::string tests;
  std::string trusted;             // a reference program: what the tests use beside the candidate
  std::vector<std::string> names;  // that stand for the candidate's in the tests; empty: all that `trusted` and
                                   // `setup` define and the tests use
};

// A candidate that passed by the official rule.
struct ScanJob {
  std::string candidate;
  std::string tests;             // setup included
  std::string program;           // both, as Run got them
  std::vector<std::string> own;  // names that the tests take from the candidate; empty: those that `reference` defines
  std::string reference;
};

class Sandbox {
 public:
  // Starts the slots and sees every limit fire: about two seconds.
  static absl::StatusOr<std::unique_ptr<Sandbox>> Open(int slots);
  ~Sandbox();

  int slots() const { return slots_; }

  // The whole program in one namespace.
  absl::StatusOr<RunOutcome> Run(const std::string& program, const RunLimits& limits, Turn turn);
  // The tests in one process, the candidate in another; only plain data crosses. kCompleted = confirmed.
  absl::StatusOr<RunOutcome> Confirm(const ConfirmJob& job, const RunLimits& limits, Turn turn);
  // What of the candidate calls for a confirming run (scan.py); empty: nothing.
  absl::StatusOr<std::vector<std::string>> Scan(const ScanJob& job);

 private:
  // Starts children for all other threads: they end with the thread that started them.
  class Starter {
   public:
    Starter();
    ~Starter();
    absl::StatusOr<std::unique_ptr<Slot>> Start(int index);

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::function<void()>> asked_;
    bool ending_ = false;
    std::thread thread_;
  };

  explicit Sandbox(int slots) : slots_(slots), idle_(static_cast<size_t>(slots)) {}
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& job, absl::Duration timeout, Turn turn);
  absl::StatusOr<nlohmann::json> AskOnce(const nlohmann::json& job, absl::Duration timeout);
  absl::StatusOr<RunOutcome> Outcome(const nlohmann::json& job, const RunLimits& limits, Turn turn);

  const int slots_;
  Starter starter_;
  std::shared_mutex turns_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<int> free_;                    // indices of idle_
  std::vector<std::unique_ptr<Slot>> idle_;  // null: in use, or lost and to be started again
};

}  // namespace iha::sandbox
