#include "cli/run/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/counted.h"
#include "common/text.h"

namespace iha::cli {
namespace {

std::string Short(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
}

// The job that is being worked on: the first that has begun and not ended, else the first unfinished one.
const JobProgress* Current(const SweepProgress& progress) {
  const JobProgress* first = nullptr;
  for (const JobProgress& job : progress.jobs) {
    const int64_t finished = job.scored + job.unscored;
    if (finished >= job.planned) continue;
    if (finished > 0) return &job;
    if (first == nullptr) first = &job;
  }
  return first;
}

}  // namespace

int64_t FinishedItems(const SweepProgress& progress) {
  int64_t finished = 0;
  for (const JobProgress& job : progress.jobs) finished += job.scored + job.unscored;
  return finished;
}

int64_t PlannedItems(const SweepProgress& progress) {
  int64_t planned = 0;
  for (const JobProgress& job : progress.jobs) planned += job.planned;
  return planned;
}

std::string ProgressMeter::Line(const SweepProgress& progress, absl::Duration elapsed, int width) {
  const int64_t finished = FinishedItems(progress);
  const int64_t planned = PlannedItems(progress);
  if (!started_) {
    started_ = true;
    first_finished_ = finished;
    first_elapsed_ = elapsed;
  }
  std::string line;
  if (const JobProgress* job = Current(progress); job != nullptr && progress.jobs.size() > 1) {
    line = fmt::format("{} · {} {}/{} · total ", job->entry.substr(0, job->entry.find(' ')), job->model,
                       job->scored + job->unscored, job->planned);
  }
  line += fmt::format("{}/{} items · {:.0f} tokens/s · {}", finished, planned, progress.tokens_per_second,
                      Counted(progress.live_workers, "worker"));
  if (finished > first_finished_ && finished < planned) {
    const absl::Duration spent = elapsed - first_elapsed_;
    const double each = absl::ToDoubleSeconds(spent) / static_cast<double>(finished - first_finished_);
    line += " · ETA " + Short(absl::Seconds(each * static_cast<double>(planned - finished)));
  }
  return TerminalSafe(line, static_cast<size_t>(width));
}

bool ProgressPace::Due(absl::Duration elapsed) {
  if (elapsed < next_) return false;
  next_ = elapsed + std::min(elapsed, absl::Minutes(5));
  return true;
}

}  // namespace iha::cli
