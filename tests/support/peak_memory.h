// peak_memory.h: the most memory that was resident since a moment, for tests that bound it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace iha::testing {

// Sanitizers hold freed memory back and keep notes of all memory: what a process takes says nothing there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryIsTheProgramsOwn = false;
#else
inline constexpr bool kMemoryIsTheProgramsOwn = true;
#endif

// A line "NAME: N kB" of this process's /proc/self/status.
inline int64_t StatusKib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int64_t kib = 0;
    if (word == name && status >> kib) return kib;
  }
  ADD_FAILURE() << "no " << name << " in /proc/self/status";
  return 0;
}

// getrusage's peak is that of the process's whole life: what an earlier test needed would hide what this one does.
class PeakMemory {
 public:
  PeakMemory() {
    std::ofstream("/proc/self/clear_refs") << "5";
    before_ = StatusKib("VmRSS:");
    EXPECT_LE(StatusKib("VmHWM:"), before_ + 1024) << "the kernel did not set the peak back";
  }
  // Above what was resident at the start.
  [[nodiscard]] int64_t GrowthKib() const { return StatusKib("VmHWM:") - before_; }

 private:
  int64_t before_ = 0;
};

}  // namespace iha::testing
