#include "cli/run/local_workers.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::cli {
namespace {

std::string LastLine(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return "no log";
  const size_t end = text->find_last_not_of("\r\n");
  if (end == std::string::npos) return "its log is empty";
  const size_t before = text->rfind('\n', end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return TerminalSafe(text->substr(begin, end + 1 - begin), 400);
}

}  // namespace

std::string LocalWorkers::LogPath(int index) const {
  return fmt::format("{}/worker-{}.log", options_.log_folder, index);
}

absl::StatusOr<ChildProcess> LocalWorkers::StartOne(int index, bool first) {
  const UniqueFd log(open(LogPath(index).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log.valid()) return ErrnoStatus(LogPath(index), "open", errno);
  ChildOptions child;
  child.argv = {options_.program, "--id", fmt::format("local-{}", index)};
  child.argv.insert(child.argv.end(), options_.arguments.begin(), options_.arguments.end());
  if (first) child.argv.insert(child.argv.end(), options_.first_arguments.begin(), options_.first_arguments.end());
  child.stdout_fd = log.get();
  child.stderr_fd = log.get();
  return ChildProcess::Spawn(child);
}

absl::Status LocalWorkers::Start() {
  for (int i = 0; i < options_.count; i++) {
    unlink(LogPath(i).c_str());  // of an earlier run
    IHA_ASSIGN_OR_RETURN(ChildProcess worker, StartOne(i, true));
    workers_.push_back(std::move(worker));
    ended_well_.push_back(false);
  }
  return absl::OkStatus();
}

absl::Status LocalWorkers::Watch() {
  for (size_t i = 0; i < workers_.size(); i++) {
    const std::optional<ExitState> exit = workers_[i].Wait(absl::ZeroDuration());
    if (!exit.has_value()) continue;
    // It may have ended because the last item has just landed: only a second look, with work still left, tells.
    if (exit->ok() && !ended_well_[i]) {
      ended_well_[i] = true;
      continue;
    }
    ended_well_[i] = false;
    if (exit->code == kExitBadInput) {  // it said why, and would say it again
      return FailedPrecondition("{}", LastLine(LogPath(static_cast<int>(i))));
    }
    if (++restarts_ > options_.max_restarts) {
      return Unavailable("a worker ended with {} again and again ({} restarts); last line of {}: {}", exit->ToString(),
                         options_.max_restarts, LogPath(static_cast<int>(i)), LastLine(LogPath(static_cast<int>(i))));
    }
    IHA_ASSIGN_OR_RETURN(workers_[i], StartOne(static_cast<int>(i), false));
  }
  return absl::OkStatus();
}

void LocalWorkers::Stop(absl::Duration grace) {
  for (ChildProcess& worker : workers_) worker.Kill(SIGTERM);
  const absl::Time deadline = absl::Now() + grace;
  for (ChildProcess& worker : workers_) worker.Wait(std::max(absl::ZeroDuration(), deadline - absl::Now()));
  workers_.clear();  // kills what is left
}

}  // namespace iha::cli
