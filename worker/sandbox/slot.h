// slot.h: one bubblewrap with a Python fork server inside, which runs one job at a time (server.py).
//
// Started as root, the slot first becomes an unprivileged user of its own: limits on processes don't bind root. Its
// user, network, IPC, UTS, PID and mount namespaces are made once; each part of a job gets PID, IPC and mount
// namespaces and a tmpfs of its own inside. The root is read-only: what CPython lies in, three device files.
// Thread: an object belongs to one thread at a time; start it from one that outlives it (ChildOptions).
// Blocking up to the time-outs. Errors of Start: NotFound (bubblewrap, setpriv or Python is missing), Unavailable (it
// ended, with its last words: namespaces are not allowed here, for one). Of Ask: Unavailable, DeadlineExceeded,
// DataLoss: the slot is lost, start another. Of SelfTest: FailedPrecondition names each limit that did not fire.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/line_helper.h"
#include "nlohmann/json_fwd.hpp"

namespace iha::sandbox {

// How a slot is started. Tests take single limits away from it, to see that the self-test notices.
struct SlotSetup {
  ChildOptions child;
  std::string config;  // server.py's first line, JSON
};

// Of slot `index`, which decides its user. Reads whether this process is root.
absl::StatusOr<SlotSetup> SetupOf(int index);

class Slot {
 public:
  static absl::StatusOr<std::unique_ptr<Slot>> Start(const SlotSetup& setup);

  // One job (an object with "op") and what came of it.
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& job, absl::Duration timeout);

  // Sees every limit fire. Takes a second for that on CPU time, which `cpu` asks for.
  absl::Status SelfTest(bool cpu);

 private:
  explicit Slot(std::unique_ptr<LineHelper> helper) : helper_(std::move(helper)) {}
  absl::StatusOr<nlohmann::json> Read(absl::Duration timeout);

  const std::unique_ptr<LineHelper> helper_;
  bool alone_in_network_ = false;
};

}  // namespace iha::sandbox
