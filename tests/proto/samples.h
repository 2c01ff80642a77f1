// samples.h: one value of each domain type with every field away from its default, for round trips and fuzz seeds.
#pragma once

#include <string>

#include "common/coordinator_api.h"
#include "common/eval_types.h"

namespace iha::testing {

inline Digest Filled(uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

inline SweepEntry SampleEntry() {
  SweepEntry entry;
  entry.benchmark = {.name = "gsm8k", .options = {{"fewshot", "8"}, {"prompt", "chat \xC3\xA9"}}};
  entry.sampling = {.temperature = 0.1 + 0.2,
                    .top_p = 0.95,
                    .top_k = 20,
                    .samples = 16,
                    .seed = 0xFFFFFFFFFFFFFFFFull,
                    .max_new_tokens = 512};
  entry.limit = 10;
  entry.metrics = {"gsm8k.robust", "maj@5?metric=gsm8k.robust"};
  entry.stop_settled_votes = true;
  return entry;
}

inline SweepSpec SampleSweep() {
  SweepSpec spec;
  spec.models = {{.name = "team/iha", .weights_digest = Filled(0xAB).Hex()}, {.name = "base", .weights_digest = ""}};
  spec.entries = {SampleEntry(), SampleEntry()};
  spec.entries[1].limit.reset();
  spec.entries[1].benchmark.options.clear();
  spec.numerics.backend = "torch";
  spec.run_tag = "again";
  spec.max_attempts = 4;
  spec.shard_tokens = 4096;
  spec.item_order = 0xFFFFFFFFFFFFFFFFull;
  return spec;
}

inline JobSpec SampleJob() {
  JobSpec job;
  job.sweep = IdOf(SampleSweep());
  job.model_index = 1;
  job.entry_index = 2;
  job.model = SampleSweep().models[0];
  job.entry = SampleEntry();
  job.benchmark_version = "gsm8k/3";
  job.grader_version = "grade/2";
  job.items = 1319;
  job.numerics_id = NumericsSpec().Id();
  job.data_digest = Filled(3);
  job.prompt_digest = Filled(4);
  return job;
}

// The text is what a model may write: a NUL, an escape sequence, bytes that are not UTF-8.
inline Generation SampleGeneration(uint8_t key = 7) {
  Generation generation;
  generation.key = {Filled(key)};
  generation.tokens = {0, 1, 2147483647};
  generation.text = std::string("a\0\x1b[2J\xFF", 7);
  generation.finish = FinishReason::kStop;
  generation.prompt_tokens = 37;
  return generation;
}

inline ItemResult SampleItem() {
  ItemResult item;
  item.index = 12;
  item.item_id = "gsm8k/12";
  item.samples.resize(2);
  for (SampleResult& sample : item.samples) {
    sample.generation = {Filled(7)};
    sample.grades.resize(1);
    SampleGrade& grade = sample.grades[0];
    grade.metric = "gsm8k.robust";
    grade.extracted =
        "\xFF"
        "18";
    grade.valid = true;
    grade.unscored = Unscored::kGraderError;
    grade.score = {1, 3};
    grade.reason = "numbers equal";
    grade.group = 1;
  }
  item.values.resize(1);
  ItemValue& value = item.values[0];
  value.metric = "maj@5?metric=gsm8k.robust";
  value.unscored = Unscored::kUndefined;
  value.score = {2, 5};
  value.winner = "18";
  value.tie = {1, 2};
  value.invalid = 3;
  return item;
}

// Every field has a value of its own.
inline JobTelemetry SampleTelemetry(int64_t sequence = 3) {
  JobTelemetry telemetry{.incarnation = 77, .sequence = sequence, .engine = {}};
  EngineTelemetry& t = telemetry.engine;
  int64_t next = 100 * sequence;
  for (int64_t* count : {&t.prompt_tokens, &t.reused_tokens, &t.prefill_tokens, &t.decode_tokens, &t.generated_tokens,
                         &t.steps, &t.step_sequences, &t.preemptions, &t.prefix_hit_blocks, &t.prefix_lookup_blocks,
                         &t.kv_blocks, &t.kv_blocks_peak}) {
    *count = ++next;
  }
  for (absl::Duration* time : {&t.prefill_time, &t.decode_time, &t.schedule_time, &t.sample_time}) {
    *time = absl::Nanoseconds(++next);
  }
  t.operations = {{.name = "qkv", .calls = ++next, .time = absl::Nanoseconds(5), .flops = 1.5e12, .bytes = 0.25},
                  {.name = "mlp", .calls = ++next, .time = absl::Nanoseconds(6), .flops = 2e12, .bytes = 3}};
  return telemetry;
}

inline RequestId SampleRequestId() { return {"w1:17.a-b_c"}; }
inline WorkerId SampleWorker() { return {"gpu-node.3:0"}; }

inline LeaseGrant SampleGrant() {
  LeaseGrant grant;
  grant.shard = ShardId{5};
  grant.fence = {.incarnation = 2, .epoch = 9};
  grant.ttl = absl::Seconds(30);
  grant.job = SampleJob();
  grant.job_id = IdOf(grant.job);
  grant.range = {.begin = 10, .end = 20};
  grant.missing = {10, 13, 19};
  grant.weights = Filled(1);
  grant.tokenizer = Filled(2);
  return grant;
}

}  // namespace iha::testing
