#include "common/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/errors.h"
#include "common/nearest.h"

namespace iha {
namespace fault_internal {

std::atomic<bool> armed{false};

namespace {

enum class Action { kNone, kKill, kStop, kUnavailable, kInternal };

struct Plan {
  Action action = Action::kNone;
  int64_t hits_left = 0;  // acts on the hit that brings this to 0
};

using Plans = std::array<Plan, std::size(kFaultPoints)>;
ABSL_CONST_INIT absl::Mutex plans_mu(absl::kConstInit);
Plans plans ABSL_GUARDED_BY(plans_mu);

}  // namespace

absl::Status Hit(size_t index) {
  const absl::MutexLock lock(&plans_mu);
  Plan& plan = plans[index];
  if (plan.action == Action::kNone || --plan.hits_left > 0) return absl::OkStatus();
  const Action action = plan.action;
  plan.action = Action::kNone;
  const std::string_view name = kFaultPoints[index].name;
  switch (action) {
    case Action::kNone:
      break;
    case Action::kKill:
      kill(getpid(), SIGKILL);
      while (true) pause();  // the signal is on its way: nothing after this site may run
    case Action::kStop:
      kill(getpid(), SIGSTOP);
      break;
    case Action::kUnavailable:
      return Unavailable("fault point {}: armed to fail", name);
    case Action::kInternal:
      return Internal("fault point {}: armed to fail", name);
  }
  return absl::OkStatus();
}

namespace {

absl::Status ParseOne(std::string_view part, Plans* out) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0; begin <= part.size();) {
    const size_t end = std::min(part.find(':', begin), part.size());
    fields.push_back(part.substr(begin, end - begin));
    begin = end + 1;
  }
  if (fields.size() < 2 || fields.size() > 3) {
    return InvalidArgument("fault point \"{}\": expected NAME:ACTION[:NTH]", part);
  }
  std::vector<std::string> names;
  size_t index = 0;
  for (; index < std::size(kFaultPoints) && kFaultPoints[index].name != fields[0]; index++) {
    names.emplace_back(kFaultPoints[index].name);
  }
  if (index == std::size(kFaultPoints)) return UnknownName("fault point", fields[0], names);
  Plan plan{.hits_left = 1};
  if (fields[1] == "kill") {
    plan.action = Action::kKill;
  } else if (fields[1] == "stop") {
    plan.action = Action::kStop;
  } else if (fields[1] == "error" || fields[1] == "unavailable") {
    plan.action = Action::kUnavailable;
  } else if (fields[1] == "internal") {
    plan.action = Action::kInternal;
  } else {
    return InvalidArgument("fault point \"{}\": action {}: expected kill, stop, error, unavailable or internal", part,
                           fields[1]);
  }
  if (plan.action != Action::kKill && plan.action != Action::kStop && !kFaultPoints[index].returns_status) {
    return InvalidArgument("fault point \"{}\": this site cannot return an error, expected action kill or stop", part);
  }
  if (fields.size() == 3) {
    const char* end = fields[2].data() + fields[2].size();
    const auto [stop, error] = std::from_chars(fields[2].data(), end, plan.hits_left);
    if (error != std::errc() || stop != end || plan.hits_left < 1) {
      return InvalidArgument("fault point \"{}\": NTH {}: expected an integer from 1", part, fields[2]);
    }
  }
  (*out)[index] = plan;
  return absl::OkStatus();
}

}  // namespace
}  // namespace fault_internal

absl::Status ArmFaultPoints(std::string_view spec) {
  using namespace fault_internal;  // NOLINT: the implementation of one header
  Plans next{};
  for (size_t begin = 0; !spec.empty() && begin <= spec.size();) {
    const size_t end = std::min(spec.find(',', begin), spec.size());
    if (absl::Status status = ParseOne(spec.substr(begin, end - begin), &next); !status.ok()) return status;
    begin = end + 1;
  }
  const absl::MutexLock lock(&plans_mu);
  plans = next;
  armed.store(!spec.empty(), std::memory_order_relaxed);
  return absl::OkStatus();
}

}  // namespace iha
