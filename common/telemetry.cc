#include "common/telemetry.h"

#include <fmt/format.h>

#include <algorithm>

namespace iha {
namespace {

// Names that model/op_profile.cc gives.
constexpr std::string_view kAttention = "attention";
constexpr std::string_view kMatmuls[] = {"qkv", "attention_output", "mlp", "head"};

// The totals that add up, each with its place.
constexpr int64_t EngineTelemetry::*kCounts[] = {
    &EngineTelemetry::prompt_tokens,       &EngineTelemetry::reused_tokens,    &EngineTelemetry::prefill_tokens,
    &EngineTelemetry::decode_tokens,       &EngineTelemetry::generated_tokens, &EngineTelemetry::steps,
    &EngineTelemetry::step_sequences,      &EngineTelemetry::preemptions,      &EngineTelemetry::prefix_hit_blocks,
    &EngineTelemetry::prefix_lookup_blocks};
constexpr absl::Duration EngineTelemetry::*kTimes[] = {&EngineTelemetry::prefill_time, &EngineTelemetry::decode_time,
                                                       &EngineTelemetry::schedule_time, &EngineTelemetry::sample_time};

OpTelemetry& OpOf(EngineTelemetry& t, const std::string& name) {
  const auto at =
      std::find_if(t.operations.begin(), t.operations.end(), [&](const auto& op) { return op.name == name; });
  if (at != t.operations.end()) return *at;
  return t.operations.emplace_back(OpTelemetry{.name = name, .time = {}});
}

double Ratio(double amount, double of) { return of > 0 ? amount / of : 0; }

std::string Percent(double rate, double peak) {
  return rate > 0 && peak > 0 ? fmt::format("{:.1f}%", 100 * rate / peak) : std::string();
}

// Percentages come where a peak is given.
class Table {
 public:
  Table(double model_seconds, const std::optional<MachinePeak>& peak) : model_seconds_(model_seconds), peak_(peak) {
    text_ =
        fmt::format("{:<18}{:>10}{:>11}{:>8}{:>10}{:>9}", "operation", "calls", "seconds", "share", "GFLOP/s", "GB/s");
    if (peak_.has_value()) text_ += fmt::format("{:>9}{:>9}", "of fma", "of read");
    text_ += "\n";
  }

  void Row(std::string_view name, int64_t calls, double seconds, double flops, double bytes) {
    const double gflops = Ratio(flops * 1e-9, seconds), gbs = Ratio(bytes * 1e-9, seconds);
    const auto rate = [](double value) { return value > 0 ? fmt::format("{:.1f}", value) : std::string(); };
    std::string line = fmt::format("{:<18}{:>10}{:>11.3f}{:>7.1f}%{:>10}{:>9}", name, calls, seconds,
                                   100 * Ratio(seconds, model_seconds_), rate(gflops), rate(gbs));
    if (peak_.has_value()) {
      line += fmt::format("{:>9}{:>9}", Percent(gflops, peak_->fma_gflops), Percent(gbs, peak_->read_gbs));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text_ += line + "\n";
  }
  std::string text() && { return std::move(text_); }

 private:
  const double model_seconds_;
  const std::optional<MachinePeak>& peak_;
  std::string text_;
};

}  // namespace

void Add(const EngineTelemetry& more, EngineTelemetry& sum) {
  for (const auto count : kCounts) sum.*count += more.*count;
  for (const auto time : kTimes) sum.*time += more.*time;
  sum.kv_blocks = std::max(sum.kv_blocks, more.kv_blocks);
  sum.kv_blocks_peak = std::max(sum.kv_blocks_peak, more.kv_blocks_peak);
  for (const OpTelemetry& op : more.operations) {
    OpTelemetry& to = OpOf(sum, op.name);
    to.calls += op.calls;
    to.time += op.time;
    to.flops += op.flops;
    to.bytes += op.bytes;
  }
}

EngineTelemetry Since(const EngineTelemetry& before, const EngineTelemetry& after) {
  EngineTelemetry between = after;
  for (const auto count : kCounts) between.*count -= before.*count;
  for (const auto time : kTimes) between.*time -= before.*time;
  for (const OpTelemetry& op : before.operations) {
    OpTelemetry& to = OpOf(between, op.name);
    to.calls -= op.calls;
    to.time -= op.time;
    to.flops -= op.flops;
    to.bytes -= op.bytes;
  }
  return between;
}

absl::Duration AttentionTime(const EngineTelemetry& t) {
  absl::Duration time;
  for (const OpTelemetry& op : t.operations) time += op.name == kAttention ? op.time : absl::ZeroDuration();
  return time;
}

absl::Duration MatmulTime(const EngineTelemetry& t) {
  absl::Duration time;
  for (const OpTelemetry& op : t.operations) {
    if (std::find(std::begin(kMatmuls), std::end(kMatmuls), op.name) != std::end(kMatmuls)) time += op.time;
  }
  return time;
}

std::string OperationTable(const EngineTelemetry& t, const std::optional<MachinePeak>& peak) {
  if (t.steps == 0) return "";
  const double model = absl::ToDoubleSeconds(t.model_time());
  Table table(model, peak);
  double rest = model;
  for (const OpTelemetry& op : t.operations) {
    if (op.calls == 0) continue;
    const double seconds = absl::ToDoubleSeconds(op.time);
    table.Row(op.name, op.calls, seconds, op.flops, op.bytes);
    rest -= seconds;
  }
  table.Row("rest of the model", t.steps, std::max(0.0, rest), 0, 0);
  table.Row("model", t.steps, model, 0, 0);
  table.Row("scheduling", t.steps, absl::ToDoubleSeconds(t.schedule_time), 0, 0);
  table.Row("sampling, text", t.steps, absl::ToDoubleSeconds(t.sample_time), 0, 0);
  return std::move(table).text();
}

std::string TelemetrySummary(const EngineTelemetry& t, const std::optional<MachinePeak>& peak) {
  if (t.steps == 0) return "profile: nothing was generated: all answers were there already, or nothing was asked\n";
  const auto speed = [](const char* name, int64_t tokens, absl::Duration time) {
    const double seconds = absl::ToDoubleSeconds(time);
    return fmt::format("{}: {} positions in {:.2f} s ({:.1f} a second)\n", name, tokens, seconds,
                       Ratio(static_cast<double>(tokens), seconds));
  };
  std::string text = fmt::format("tokens: {} of prompts, {} of them taken over instead of computed; {} generated\n",
                                 t.prompt_tokens, t.reused_tokens, t.generated_tokens);
  text += speed("prefill", t.prefill_tokens, t.prefill_time);
  text += speed("decode", t.decode_tokens, t.decode_time);
  text += fmt::format("batch: {} steps, {:.1f} sequences a step, {} preemptions\n", t.steps,
                      Ratio(static_cast<double>(t.step_sequences), static_cast<double>(t.steps)), t.preemptions);
  text += fmt::format("KV cache: {} of {} blocks in use at most; prefix cache: {} of {} blocks of prompts found\n",
                      t.kv_blocks_peak, t.kv_blocks, t.prefix_hit_blocks, t.prefix_lookup_blocks);
  const auto timed = [](const OpTelemetry& op) { return op.calls != 0; };
  if (std::none_of(t.operations.begin(), t.operations.end(), timed)) {
    text += "operations: none were timed; our engines time them where --profile asks, LibTorch's does not\n";
  }
  if (peak.has_value()) {
    text += fmt::format("machine, {} thread{}: {:.1f} GFLOP/s of fp32 fma, {:.1f} GB/s of reading, measured now\n",
                        peak->threads, peak->threads == 1 ? "" : "s", peak->fma_gflops, peak->read_gbs);
  }
  return text;
}

}  // namespace iha
