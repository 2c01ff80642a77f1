// telemetry.h: what an engine did and how long it took, as sums; and the table of it.
//
// For people and run records only: nothing here enters a digest, a cache key or a result, and no decision reads it.
// Values and pure functions; any thread. Positions and tokens are counted once each time they are computed, so work
// that was lost and done again counts twice, as its seconds do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace iha {

// One operation of the model: the least work that it must do (model/op_profile.h).
struct OpTelemetry {
  std::string name;
  int64_t calls = 0;
  absl::Duration time;
  double flops = 0;
  double bytes = 0;
  bool operator==(const OpTelemetry&) const = default;
};

struct EngineTelemetry {
  int64_t prompt_tokens = 0;     // of the samples that were asked for
  int64_t reused_tokens = 0;     // positions taken over from a shared prefix or a sibling instead of computed
  int64_t prefill_tokens = 0;    // positions of prompts that went through the model
  int64_t decode_tokens = 0;     // positions of generated tokens that did
  int64_t generated_tokens = 0;  // drawn
  int64_t steps = 0;
  int64_t step_sequences = 0;  // sum over steps: divided by steps = batch occupancy
  int64_t preemptions = 0;
  int64_t prefix_hit_blocks = 0;     // full blocks of prompts found in the prefix cache
  int64_t prefix_lookup_blocks = 0;  // that were looked for
  int64_t kv_blocks = 0;             // of the KV cache, in all
  int64_t kv_blocks_peak = 0;        // most in use by sequences at once
  // A step that computes prompts and generated tokens is split between the two by positions.
  absl::Duration prefill_time;
  absl::Duration decode_time;
  absl::Duration schedule_time;
  absl::Duration sample_time;           // sampling, decoding of text, stop strings
  std::vector<OpTelemetry> operations;  // in order of a step, parts of prefill_time + decode_time; none: not noted
  bool operator==(const EngineTelemetry&) const = default;

  absl::Duration model_time() const { return prefill_time + decode_time; }
};

// What one worker process has done for one job since it started. Of one process and job the report with the largest
// sequence counts, so that a report may be lost, repeated or overtaken: nothing is added up twice.
struct JobTelemetry {
  int64_t incarnation = 0;  // of the process
  int64_t sequence = 0;     // from 1; grows with each report
  EngineTelemetry engine;
  bool operator==(const JobTelemetry&) const = default;
};

// `sum` and `more` together; of blocks the larger number.
void Add(const EngineTelemetry& more, EngineTelemetry& sum);
// What came between two states of one engine, `before` the earlier one; of blocks the later number.
EngineTelemetry Since(const EngineTelemetry& before, const EngineTelemetry& after);

absl::Duration AttentionTime(const EngineTelemetry& t);  // scores, softmax, weighted sums
absl::Duration MatmulTime(const EngineTelemetry& t);     // projections, MLP and head

// What the machine's CPU can do at most, on as many threads as the engine has.
struct MachinePeak {
  int threads = 0;
  double fma_gflops = 0;
  double read_gbs = 0;  // 1e9 bytes
};

// What an engine's kernels run on and were built with; no result depends on it.
struct EngineBuild {
  std::string simd;   // the vector instruction set as Highway names it: "AVX3"
  std::string build;  // "Highway 1.0.3, GCC 12.2.0"
};

// A line an operation: calls, seconds, share of the model's seconds, GFLOP/s and GB/s, and these in percent of the peak
// where one is given; then the rest of the model, the whole, scheduling and sampling; "" where no step was computed.
// Several engines at once: rates are those of one, since seconds add up.
std::string OperationTable(const EngineTelemetry& t, const std::optional<MachinePeak>& peak);
// Lines on tokens, batches, caches and the peak, and that no operation was timed where none was; one line that says so
// where no step was computed.
std::string TelemetrySummary(const EngineTelemetry& t, const std::optional<MachinePeak>& peak);

}  // namespace iha
