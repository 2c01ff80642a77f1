// fault_point.h: named places where a test, or CI on a release binary, makes the process die or a call fail.
//
//   IHA_FAULT_POINT("file.write.before_rename");                             // kill only
//   IHA_RETURN_IF_ERROR(IHA_FAULT_STATUS("store.commit.begin"));             // kill or error
//
// A name must stand in kFaultPoints below (checked when the site is compiled), so a test can iterate over all of them.
// Unarmed, a site costs one relaxed atomic load. The armed set is the one deliberate process-wide state of common/:
// a crash belongs to a process. main() arms it from a flag; nothing else does but tests. Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "absl/status/status.h"

namespace iha {

struct FaultPoint {
  std::string_view name;
  bool returns_status = false;  // the site can fail; others can only be killed
};

// Every site of the program, sorted by name. Add a line here with each new site.
inline constexpr FaultPoint kFaultPoints[] = {
    {"file.write.after_rename"},   {"file.write.before_rename"},  {"file.write.begin", true},
    {"store.commit.after_commit"}, {"store.commit.after_insert"}, {"store.commit.before_commit", true},
    {"store.commit.begin", true},  {"worker.lease.start"},        {"worker.outbox.between_put_and_commit"},
    {"worker.sample.done"},
};

// Arms sites: "NAME:ACTION[:NTH]" separated by commas. ACTION: kill (SIGKILL to this process), stop (SIGSTOP), error or
// unavailable (the site returns Unavailable), internal (the site returns Internal). NTH (from 1, default 1) = the hit
// that acts; later hits pass. Replaces what was armed; "" disarms. InvalidArgument names the part that is wrong.
absl::Status ArmFaultPoints(std::string_view spec);

namespace fault_internal {

extern std::atomic<bool> armed;
absl::Status Hit(size_t index);

consteval size_t IndexOf(std::string_view name, bool returns_status) {
  for (size_t i = 0; i < std::size(kFaultPoints); i++) {
    if (kFaultPoints[i].name != name) continue;
    if (kFaultPoints[i].returns_status != returns_status) throw "kFaultPoints says the other kind of site";
    return i;
  }
  throw "the name of this fault point is missing in kFaultPoints (common/fault_point.h)";
}

}  // namespace fault_internal

#define IHA_FAULT_POINT(name)                                                        \
  do {                                                                               \
    constexpr size_t iha_fault_index_ = ::iha::fault_internal::IndexOf(name, false); \
    if (::iha::fault_internal::armed.load(std::memory_order_relaxed)) {              \
      ::iha::fault_internal::Hit(iha_fault_index_).IgnoreError();                    \
    }                                                                                \
  } while (false)

#define IHA_FAULT_STATUS(name)                                                  \
  (::iha::fault_internal::armed.load(std::memory_order_relaxed)                 \
       ? ::iha::fault_internal::Hit(::iha::fault_internal::IndexOf(name, true)) \
       : absl::OkStatus())

}  // namespace iha
