#include "cli/run/local_workers.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "common/errors.h"
#include "common/file.h"
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

absl::Status LocalWorkers::StartOne(int index, bool first) {
  const UniqueFd log(open(LogPath(index).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log.valid()) return ErrnoStatus(LogPath(index), "open", errno);
  ChildOptions child;
  child.argv = {options_.program, "--id", fmt::format("local-{}", index)};
  child.argv.insert(child.argv.end(), options_.arguments.begin(), options_.arguments.end());
  if (first) child.argv.insert(child.argv.end(), options_.first_arguments.begin(), options_.first_arguments.end());
  child.stdout_fd = log.get();
  child.stderr_fd = log.get();
  IHA_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Spawn(child));
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.process = std::move(process);
  slot.started = clock_.Elapsed();
  slot.ended_well = false;
  slot.restart_at.reset();
  return absl::OkStatus();
}

absl::Status LocalWorkers::Start() {
  slots_.resize(static_cast<size_t>(options_.count));
  for (int i = 0; i < options_.count; i++) {
    unlink(LogPath(i).c_str());  // of an earlier run
    IHA_RETURN_IF_ERROR(StartOne(i, true));
  }
  return absl::OkStatus();
}

absl::Status LocalWorkers::Watch() {
  for (int i = 0; i < static_cast<int>(slots_.size()); i++) IHA_RETURN_IF_ERROR(Look(i));
  return absl::OkStatus();
}

absl::Status LocalWorkers::Look(int index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (slot.restart_at.has_value())
    return clock_.Elapsed() < *slot.restart_at ? absl::OkStatus() : StartOne(index, false);
  const std::optional<ExitState> exit = slot.process->Wait(absl::ZeroDuration());
  if (!exit.has_value()) return absl::OkStatus();
  // It may have ended because the last item has just landed: only a second look, with work still left, tells.
  if (exit->ok() && !slot.ended_well) {
    slot.ended_well = true;
    return absl::OkStatus();
  }
  if (exit->code == kExitBadInput) return FailedPrecondition("{}", LastLine(LogPath(index)));  // it would say it again
  if (++restarts_ > options_.max_restarts) {
    return Unavailable("a worker ended with {} again and again ({} restarts); last line of {}: {}", exit->ToString(),
                       options_.max_restarts, LogPath(index), LastLine(LogPath(index)));
  }
  const absl::Duration now = clock_.Elapsed();
  slot.short_lives = now - slot.started < options_.long_life ? slot.short_lives + 1 : 1;
  slot.restart_at = now + Backoff(options_.backoff, slot.short_lives, static_cast<uint64_t>(index));
  return absl::OkStatus();
}

void LocalWorkers::Stop(absl::Duration grace) {
  for (Slot& slot : slots_) slot.process->Kill(SIGTERM);
  const absl::Duration deadline = clock_.Elapsed() + grace;
  for (Slot& slot : slots_) slot.process->Wait(std::max(absl::ZeroDuration(), deadline - clock_.Elapsed()));
  slots_.clear();  // kills what is left
}

}  // namespace iha::cli
