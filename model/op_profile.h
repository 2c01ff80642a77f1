// op_profile.h: where the time of forward passes goes, by operation, and the work that was done in it.
//
// Telemetry only: nothing reads it to decide anything. Work is what the operation must do at least: a multiply and an
// add are 2 FLOP; bytes are weights and cached keys and values, each read once a step. Belongs to the backend's thread.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "common/clock.h"

namespace iha::model {

enum class Op : uint8_t {
  kEmbedding,
  kNorm,             // and residual sums
  kQkv,              // projections of the attention input, knocking included
  kPositions,        // qk norms, RoPE; iha: mixing, and the cache write
  kAttention,        // scores, softmax, weighted sum; other kinds: the cache write
  kCombine,          // iha collapse, differences of diff
  kAttentionOutput,  // xsa, gate, o_proj
  kMlp,
  kHead,
};
inline constexpr size_t kOps = 9;
const char* NameOf(Op op);

struct OpWork {
  double flops = 0;
  double bytes = 0;
  OpWork& operator+=(const OpWork& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

struct OpTotal {
  int64_t calls = 0;
  absl::Duration time;
  OpWork work;
};
using OpTotals = std::array<OpTotal, kOps>;  // by Op

class OpProfile {
 public:
  // Without a clock nothing is noted. The clock must outlive this.
  explicit OpProfile(const Clock* clock) : clock_(clock) {}

  template <typename Run>
  void Time(Op op, const OpWork& work, const Run& run) {
    if (clock_ == nullptr) return run();
    const absl::Duration begin = clock_->Elapsed();
    run();
    Note(op, work, clock_->Elapsed() - begin);
  }
  // Work that takes time to count is counted where it is wanted, outside of the time that is noted.
  template <std::invocable Work, typename Run>
  void Time(Op op, const Work& work, const Run& run) {
    if (clock_ == nullptr) return run();
    Time(op, OpWork(work()), run);
  }
  const OpTotals& totals() const { return totals_; }

 private:
  void Note(Op op, const OpWork& work, absl::Duration time);

  const Clock* const clock_;
  OpTotals totals_{};
};

}  // namespace iha::model
