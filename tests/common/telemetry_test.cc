// Telemetry of an engine: sums, differences, and the table from fixed numbers.
#include "common/telemetry.h"

#include <gtest/gtest.h>

namespace iha {
namespace {

EngineTelemetry Sample() {
  return {.prompt_tokens = 24000,
          .reused_tokens = 21000,
          .prefill_tokens = 3000,
          .decode_tokens = 4000,
          .generated_tokens = 4032,
          .steps = 500,
          .step_sequences = 7100,
          .preemptions = 3,
          .prefix_hit_blocks = 310,
          .prefix_lookup_blocks = 352,
          .kv_blocks = 512,
          .kv_blocks_peak = 211,
          .prefill_time = absl::Seconds(6),
          .decode_time = absl::Seconds(4),
          .schedule_time = absl::Milliseconds(12),
          .sample_time = absl::Milliseconds(250),
          .operations = {{.name = "norm", .calls = 30500, .time = absl::Milliseconds(250)},
                         {.name = "attention", .calls = 15000, .time = absl::Seconds(2), .flops = 8e10, .bytes = 6e9},
                         {.name = "mlp", .calls = 15000, .time = absl::Seconds(5), .flops = 9e11, .bytes = 5e10},
                         {.name = "head", .calls = 500, .time = absl::Milliseconds(2500), .flops = 3e11, .bytes = 25e9},
                         {.name = "combine", .calls = 0, .time = {}}}};
}

TEST(Telemetry, TableWithAPeak) {
  const MachinePeak peak{.threads = 2, .fma_gflops = 200, .read_gbs = 40};
  EXPECT_EQ(OperationTable(Sample(), peak),
            "operation              calls    seconds   share   GFLOP/s     GB/s   of fma  of read\n"
            "norm                   30500      0.250    2.5%\n"
            "attention              15000      2.000   20.0%      40.0      3.0    20.0%     7.5%\n"
            "mlp                    15000      5.000   50.0%     180.0     10.0    90.0%    25.0%\n"
            "head                     500      2.500   25.0%     120.0     10.0    60.0%    25.0%\n"
            "rest of the model        500      0.250    2.5%\n"
            "model                    500     10.000  100.0%\n"
            "scheduling               500      0.012    0.1%\n"
            "sampling, text           500      0.250    2.5%\n");
  EXPECT_EQ(TelemetrySummary(Sample(), peak),
            "tokens: 24000 of prompts, 21000 of them taken over instead of computed; 4032 generated\n"
            "prefill: 3000 positions in 6.00 s (500.0 a second)\n"
            "decode: 4000 positions in 4.00 s (1000.0 a second)\n"
            "batch: 500 steps, 14.2 sequences a step, 3 preemptions\n"
            "KV cache: 211 of 512 blocks in use at most; prefix cache: 310 of 352 blocks of prompts found\n"
            "machine, 2 threads: 200.0 GFLOP/s of fp32 fma, 40.0 GB/s of reading, measured now\n");
}

TEST(Telemetry, TableWithoutAPeakAndOfNothing) {
  const std::string table = OperationTable(Sample(), std::nullopt);
  EXPECT_EQ(table.substr(0, table.find('\n')), "operation              calls    seconds   share   GFLOP/s     GB/s");
  // A backend that notes nothing: no division by zero, no NaN.
  EngineTelemetry blind;
  blind.steps = 1;
  EXPECT_EQ(OperationTable(blind, std::nullopt),
            "operation              calls    seconds   share   GFLOP/s     GB/s\n"
            "rest of the model          1      0.000    0.0%\n"
            "model                      1      0.000    0.0%\n"
            "scheduling                 1      0.000    0.0%\n"
            "sampling, text             1      0.000    0.0%\n");
  EXPECT_EQ(TelemetrySummary(blind, std::nullopt),
            "tokens: 0 of prompts, 0 of them taken over instead of computed; 0 generated\n"
            "prefill: 0 positions in 0.00 s (0.0 a second)\n"
            "decode: 0 positions in 0.00 s (0.0 a second)\n"
            "batch: 1 steps, 0.0 sequences a step, 0 preemptions\n"
            "KV cache: 0 of 0 blocks in use at most; prefix cache: 0 of 0 blocks of prompts found\n"
            "operations: none were timed; our engines time them where --profile asks, LibTorch's does not\n");
}

TEST(Telemetry, WhereNothingWasComputedOneLineSaysSo) {
  EXPECT_EQ(OperationTable({}, std::nullopt), "");
  EXPECT_EQ(TelemetrySummary({}, MachinePeak{.threads = 2, .fma_gflops = 1, .read_gbs = 1}),
            "profile: nothing was generated: all answers were there already, or nothing was asked\n");
}

TEST(Telemetry, SumsAndDifferencesUndoEachOther) {
  EngineTelemetry sum = Sample();
  EngineTelemetry more = Sample();
  more.kv_blocks_peak = 400;
  more.operations.push_back({.name = "qkv", .calls = 2, .time = absl::Seconds(1), .flops = 4, .bytes = 8});
  Add(more, sum);
  EXPECT_EQ(sum.prompt_tokens, 48000);
  EXPECT_EQ(sum.sample_time, absl::Milliseconds(500));
  EXPECT_EQ(sum.kv_blocks, 512) << "of blocks the larger number, not the sum";
  EXPECT_EQ(sum.kv_blocks_peak, 400);
  ASSERT_EQ(sum.operations.size(), 6u);
  EXPECT_EQ(sum.operations[2].flops, 18e11);
  EXPECT_EQ(sum.operations[5], more.operations[5]);
  EngineTelemetry back = Since(Sample(), sum);
  EXPECT_EQ(back, more);
  EXPECT_EQ(Since({}, Sample()), Sample());
}

TEST(Telemetry, AttentionAndMatmulSeconds) {
  EXPECT_EQ(AttentionTime(Sample()), absl::Seconds(2));
  EXPECT_EQ(MatmulTime(Sample()), absl::Milliseconds(7500));
}

}  // namespace
}  // namespace iha
