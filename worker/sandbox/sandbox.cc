#include "worker/sandbox/sandbox.h"

#include <future>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::sandbox {
namespace {

using Json = nlohmann::json;

// Beyond what the fork server itself needs to end a job at its deadline.
constexpr absl::Duration kGrace = absl::Seconds(60);
constexpr absl::Duration kScanTimeout = absl::Seconds(120);
constexpr const char* kBroken = "broken";  // server.py: the sandbox's own failure

absl::StatusOr<RunEnd> EndOf(const std::string& name) {
  const std::pair<const char*, RunEnd> ends[] = {
      {"completed", RunEnd::kCompleted}, {"raised", RunEnd::kRaised}, {"exit", RunEnd::kExit},
      {"signal", RunEnd::kSignal},       {"cpu", RunEnd::kCpu},       {"wall", RunEnd::kWall},
      {"memory", RunEnd::kMemory}};
  for (const auto& [known, end] : ends) {
    if (name == known) return end;
  }
  return Unavailable("sandbox: unknown end \"{}\"", name);
}

Json LimitsJson(const char* op, const RunLimits& limits) {
  return {{"op", op}, {"cpu", limits.cpu_s}, {"wall", absl::ToDoubleSeconds(limits.wall)}};
}

}  // namespace

Sandbox::Starter::Starter()
    : thread_([this] {
        std::unique_lock lock(mutex_);
        while (true) {
          changed_.wait(lock, [this] { return ending_ || !asked_.empty(); });
          if (ending_) return;
          const std::function<void()> next = std::move(asked_.front());
          asked_.erase(asked_.begin());
          lock.unlock();
          next();
          lock.lock();
        }
      }) {}

Sandbox::Starter::~Starter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::StatusOr<std::unique_ptr<Slot>> Sandbox::Starter::Start(int index) {
  std::promise<absl::StatusOr<std::unique_ptr<Slot>>> promise;
  {
    const std::lock_guard lock(mutex_);
    asked_.emplace_back([&promise, index] {
      const absl::StatusOr<SlotSetup> setup = SetupOf(index);
      promise.set_value(setup.ok() ? Slot::Start(*setup) : setup.status());
    });
  }
  changed_.notify_all();
  return promise.get_future().get();
}

Sandbox::~Sandbox() { idle_.clear(); }

absl::StatusOr<std::unique_ptr<Sandbox>> Sandbox::Open(int slots) {
  std::unique_ptr<Sandbox> sandbox(new Sandbox(slots));
  std::vector<std::future<absl::Status>> tests;
  absl::Status failed;
  for (int i = 0; i < slots; i++) {
    auto slot = sandbox->starter_.Start(i);
    if (!slot.ok()) {
      failed = FailedPrecondition("sandbox: cannot be started: {}; it needs bubblewrap and user namespaces",
                                  std::string(slot.status().message()));
      break;
    }
    sandbox->idle_[static_cast<size_t>(i)] = *std::move(slot);
    sandbox->free_.push_back(i);
    tests.push_back(std::async(std::launch::async, [&slot = *sandbox->idle_[static_cast<size_t>(i)], i] {
      return slot.SelfTest(/*cpu=*/i == 0);  // the same code in every slot; the others save its second
    }));
  }
  for (std::future<absl::Status>& test : tests) failed.Update(test.get());
  if (!failed.ok()) return failed;
  return sandbox;
}

absl::StatusOr<Json> Sandbox::AskOnce(const Json& job, absl::Duration timeout) {
  size_t index = 0;
  std::unique_ptr<Slot> slot;
  {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return !free_.empty(); });
    index = static_cast<size_t>(free_.back());
    free_.pop_back();
    slot = std::move(idle_[index]);
  }
  absl::StatusOr<Json> answer = Unavailable("sandbox: no answer");
  absl::Status started;
  if (slot == nullptr) {
    absl::StatusOr<std::unique_ptr<Slot>> anew = starter_.Start(static_cast<int>(index));
    started = anew.status();
    if (anew.ok()) started = (*anew)->SelfTest(/*cpu=*/false);
    if (started.ok()) slot = *std::move(anew);
  }
  if (slot != nullptr) answer = slot->Ask(job, timeout);
  if (!answer.ok() || answer->value("end", "") == kBroken) slot.reset();
  {
    const std::lock_guard lock(mutex_);
    idle_[index] = std::move(slot);
    free_.push_back(static_cast<int>(index));
  }
  freed_.notify_one();
  IHA_RETURN_IF_ERROR(started);
  IHA_RETURN_IF_ERROR(answer.status());
  if (answer->value("end", "") == kBroken) return Unavailable("sandbox: {}", answer->value("detail", ""));
  return answer;
}

absl::StatusOr<Json> Sandbox::Ask(const Json& job, absl::Duration timeout, Turn turn) {
  std::shared_lock shared(turns_, std::defer_lock);
  std::unique_lock alone(turns_, std::defer_lock);
  turn == Turn::kAlone ? alone.lock() : shared.lock();
  absl::StatusOr<Json> answer = AskOnce(job, timeout);
  // A slot that was lost says nothing of the program: once more, in a fresh one.
  if (!answer.ok() && !absl::IsFailedPrecondition(answer.status())) answer = AskOnce(job, timeout);
  if (answer.ok() || absl::IsFailedPrecondition(answer.status())) return answer;
  return Unavailable("{}", std::string(answer.status().message()));
}

absl::StatusOr<RunOutcome> Sandbox::Outcome(const Json& job, const RunLimits& limits, Turn turn) {
  IHA_ASSIGN_OR_RETURN(const Json answer, Ask(job, limits.wall + kGrace, turn));
  RunOutcome outcome;
  IHA_ASSIGN_OR_RETURN(outcome.end, EndOf(answer.value("end", "")));
  outcome.detail = answer.value("detail", "");
  outcome.out = answer.value("out", "");
  outcome.err = answer.value("err", "");
  outcome.cpu_s = answer.value("cpu", 0.0);
  outcome.wall = absl::Seconds(answer.value("wall", 0.0));
  return outcome;
}

absl::StatusOr<RunOutcome> Sandbox::Run(const std::string& program, const RunLimits& limits, Turn turn) {
  Json job = LimitsJson("run", limits);
  job["program"] = program;
  return Outcome(job, limits, turn);
}

absl::StatusOr<RunOutcome> Sandbox::Confirm(const ConfirmJob& confirm, const RunLimits& limits, Turn turn) {
  Json job = LimitsJson("confirm", limits);
  job["candidate"] = confirm.candidate;
  job["setup"] = confirm.setup;
  job["tests"] = confirm.tests;
  job["trusted"] = confirm.trusted;
  job["names"] = confirm.names.empty() ? Json() : Json(confirm.names);
  return Outcome(job, limits, turn);
}

absl::StatusOr<std::vector<std::string>> Sandbox::Scan(const ScanJob& scan) {
  const Json job = {{"op", "scan"},    {"candidate", scan.candidate}, {"tests", scan.tests}, {"program", scan.program},
                    {"own", scan.own}, {"reference", scan.reference}};
  IHA_ASSIGN_OR_RETURN(const Json answer, Ask(job, kScanTimeout, Turn::kShared));
  const auto found = answer.find("findings");
  if (found == answer.end() || !found->is_array()) return Unavailable("sandbox: the scan gave no answer");
  std::vector<std::string> findings;
  for (const Json& finding : *found) findings.push_back(finding.is_string() ? finding.get<std::string>() : "?");
  return findings;
}

}  // namespace iha::sandbox
