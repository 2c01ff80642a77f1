// service.h: the programs of a service, started and watched by a test: a coordinator, workers, what they say.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "common/child_process.h"
#include "common/file.h"
#include "tests/support/programs.h"

namespace iha::testing {

// A program in the background, its output in a file. Ends (SIGKILL) with the object.
class Program {
 public:
  Program(std::vector<std::string> argv, std::string log) : log_(std::move(log)) {
    const UniqueFd out(open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    ChildOptions options;
    options.argv = std::move(argv);
    options.argv[0] = ProgramPath(options.argv[0]);
    for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "HOME"}) {
      if (const char* value = std::getenv(name)) options.env.push_back(fmt::format("{}={}", name, value));
    }
    options.stdout_fd = out.get();
    options.stderr_fd = out.get();
    auto child = ChildProcess::Spawn(options);
    EXPECT_TRUE(child.ok()) << child.status();
    if (child.ok()) child_.emplace(*std::move(child));
  }
  ChildProcess& child() { return *child_; }
  std::string Log() const { return ReadFile(log_).value_or(""); }
  bool AwaitLog(const std::string& text, absl::Duration limit = absl::Seconds(60)) const {
    const absl::Time end = absl::Now() + limit;
    while (absl::Now() < end) {
      if (Log().find(text) != std::string::npos) return true;
      absl::SleepFor(absl::Milliseconds(20));
    }
    ADD_FAILURE() << "\"" << text << "\" was not said in:\n" << Log();
    return false;
  }

 private:
  const std::string log_;
  std::optional<ChildProcess> child_;
};

// Whether the process is stopped by a signal ("T" in /proc).
inline bool IsStopped(pid_t pid) {
  const std::string stat = ReadFile(fmt::format("/proc/{}/stat", pid)).value_or("");
  const size_t end = stat.rfind(')');
  return end != std::string::npos && end + 2 < stat.size() && stat[end + 2] == 'T';
}

}  // namespace iha::testing
