#include "worker/engine/telemetry.h"

namespace iha::engine {

EngineTelemetry TelemetryOf(const EngineCounters& counters) {
  EngineTelemetry t{.prompt_tokens = counters.prompt_tokens,
                    .reused_tokens = counters.scheduler.reused_tokens,
                    .prefill_tokens = counters.prefill_tokens,
                    .decode_tokens = counters.computed_tokens - counters.prefill_tokens,
                    .generated_tokens = counters.generated_tokens,
                    .steps = counters.steps,
                    .step_sequences = counters.step_sequences,
                    .preemptions = counters.scheduler.preemptions,
                    .prefix_hit_blocks = counters.scheduler.prefix_hit_blocks,
                    .prefix_lookup_blocks = counters.scheduler.prefix_lookup_blocks,
                    .kv_blocks = counters.kv_blocks,
                    .kv_blocks_peak = counters.kv_blocks_peak,
                    .prefill_time = counters.prefill_time,
                    .decode_time = counters.forward_time - counters.prefill_time,
                    .schedule_time = counters.schedule_time,
                    .sample_time = counters.sample_time,
                    .operations = {}};
  for (size_t op = 0; op < model::kOps; op++) {
    const model::OpTotal& total = counters.operations[op];
    if (total.calls == 0) continue;
    t.operations.push_back({.name = NameOf(static_cast<model::Op>(op)),
                            .calls = total.calls,
                            .time = total.time,
                            .flops = total.work.flops,
                            .bytes = total.work.bytes});
  }
  return t;
}

}  // namespace iha::engine
