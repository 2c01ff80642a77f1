// What worker processes did, and how long it took.
#include <limits>

#include "proto/codec/parts.h"

namespace iha::codec {
namespace {

constexpr int kMaxOperations = 64;
constexpr double kMaxWork = 1e30;  // FLOP, bytes

absl::Duration ReadNanos(const char* field, int64_t value, const Check& at) {
  return absl::Nanoseconds(at.Int(field, value, 0, std::numeric_limits<int64_t>::max()));
}

OpTelemetry Read(const wire::OpTelemetry& in, const Check& at) {
  OpTelemetry out;
  out.name = at.Name("name", in.name());
  out.calls = at.Int("calls", in.calls(), 0, kMaxCount);
  out.time = ReadNanos("time_ns", in.time_ns(), at);
  out.flops = at.Real("flops", in.flops(), 0, kMaxWork);
  out.bytes = at.Real("bytes", in.bytes(), 0, kMaxWork);
  return out;
}

EngineTelemetry ReadEngine(const wire::Telemetry& in, const Check& at) {
  EngineTelemetry out;
  out.prompt_tokens = at.Int("prompt_tokens", in.prompt_tokens(), 0, kMaxCount);
  out.reused_tokens = at.Int("reused_tokens", in.reused_tokens(), 0, kMaxCount);
  out.prefill_tokens = at.Int("prefill_tokens", in.prefill_tokens(), 0, kMaxCount);
  out.decode_tokens = at.Int("decode_tokens", in.decode_tokens(), 0, kMaxCount);
  out.generated_tokens = at.Int("generated_tokens", in.generated_tokens(), 0, kMaxCount);
  out.steps = at.Int("steps", in.steps(), 0, kMaxCount);
  out.step_sequences = at.Int("step_sequences", in.step_sequences(), 0, kMaxCount);
  out.preemptions = at.Int("preemptions", in.preemptions(), 0, kMaxCount);
  out.prefix_hit_blocks = at.Int("prefix_hit_blocks", in.prefix_hit_blocks(), 0, kMaxCount);
  out.prefix_lookup_blocks = at.Int("prefix_lookup_blocks", in.prefix_lookup_blocks(), 0, kMaxCount);
  out.kv_blocks = at.Int("kv_blocks", in.kv_blocks(), 0, kMaxCount);
  out.kv_blocks_peak = at.Int("kv_blocks_peak", in.kv_blocks_peak(), 0, kMaxCount);
  out.prefill_time = ReadNanos("prefill_ns", in.prefill_ns(), at);
  out.decode_time = ReadNanos("decode_ns", in.decode_ns(), at);
  out.schedule_time = ReadNanos("schedule_ns", in.schedule_ns(), at);
  out.sample_time = ReadNanos("sample_ns", in.sample_ns(), at);
  if (!at.Count("operations", in.operations_size(), kMaxOperations)) return out;
  for (int i = 0; i < in.operations_size(); i++) {
    out.operations.push_back(Read(in.operations(i), at.Sub("operations", i)));
  }
  return out;
}

}  // namespace

JobTelemetry Read(const wire::Telemetry& in, const Check& at) {
  return {.incarnation = at.Int("incarnation", in.incarnation(), 0, std::numeric_limits<int64_t>::max()),
          .sequence = at.Int("sequence", in.sequence(), 1, kMaxCount),
          .engine = ReadEngine(in, at)};
}

void Write(const JobTelemetry& in, wire::Telemetry* out) {
  const EngineTelemetry& t = in.engine;
  out->set_incarnation(in.incarnation);
  out->set_sequence(in.sequence);
  out->set_prompt_tokens(t.prompt_tokens);
  out->set_reused_tokens(t.reused_tokens);
  out->set_prefill_tokens(t.prefill_tokens);
  out->set_decode_tokens(t.decode_tokens);
  out->set_generated_tokens(t.generated_tokens);
  out->set_steps(t.steps);
  out->set_step_sequences(t.step_sequences);
  out->set_preemptions(t.preemptions);
  out->set_prefix_hit_blocks(t.prefix_hit_blocks);
  out->set_prefix_lookup_blocks(t.prefix_lookup_blocks);
  out->set_kv_blocks(t.kv_blocks);
  out->set_kv_blocks_peak(t.kv_blocks_peak);
  out->set_prefill_ns(absl::ToInt64Nanoseconds(t.prefill_time));
  out->set_decode_ns(absl::ToInt64Nanoseconds(t.decode_time));
  out->set_schedule_ns(absl::ToInt64Nanoseconds(t.schedule_time));
  out->set_sample_ns(absl::ToInt64Nanoseconds(t.sample_time));
  for (const OpTelemetry& op : t.operations) {
    wire::OpTelemetry* to = out->add_operations();
    to->set_name(op.name);
    to->set_calls(op.calls);
    to->set_time_ns(absl::ToInt64Nanoseconds(op.time));
    to->set_flops(op.flops);
    to->set_bytes(op.bytes);
  }
}

}  // namespace iha::codec
