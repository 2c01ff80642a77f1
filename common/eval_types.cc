#include "common/eval_types.h"

#include "common/canonical.h"

namespace iha {
namespace {

void Write(CanonicalWriter& w, const SamplingParams& p) {
  w.Double(p.temperature).Double(p.top_p).Int(p.top_k).Int(p.samples).Uint(p.seed).Int(p.max_new_tokens);
}

void Write(CanonicalWriter& w, const SweepEntry& e) {
  w.String(e.benchmark.name).List(e.benchmark.options.size());
  for (const auto& [key, value] : e.benchmark.options) w.String(key).String(value);
  Write(w, e.sampling);
  w.Bool(e.limit.has_value()).Int(e.limit.value_or(0)).List(e.metrics.size());
  for (const std::string& metric : e.metrics) w.String(metric);
  if (e.stop_settled_votes) w.Bool(true);  // without it ids are those from before there was one
}

void Write(CanonicalWriter& w, const ModelRef& m) { w.String(m.name).String(m.weights_digest); }

void Write(CanonicalWriter& w, const Score& s) { w.Int(s.num).Int(s.den); }

}  // namespace

SweepId IdOf(const SweepSpec& spec) {
  CanonicalWriter w("iha.sweep", 1);
  w.List(spec.models.size());
  for (const ModelRef& model : spec.models) Write(w, model);
  w.List(spec.entries.size());
  for (const SweepEntry& entry : spec.entries) Write(w, entry);
  w.String(spec.numerics.Id()).String(spec.run_tag).Int(spec.max_attempts).Int(spec.shard_tokens);
  if (spec.item_order.has_value()) w.Uint(*spec.item_order);  // without it ids are those from before there was one
  return {w.Hash()};
}

JobId IdOf(const JobSpec& job) {
  CanonicalWriter w("iha.job", 1);
  w.Bytes(job.sweep.digest).Int(job.model_index).Int(job.entry_index);
  Write(w, job.model);
  Write(w, job.entry);
  w.String(job.benchmark_version).String(job.grader_version).Int(job.items).String(job.numerics_id);
  w.Bytes(job.data_digest).Bytes(job.prompt_digest);
  return {w.Hash()};
}

const char* NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kUnspecified:
      return "unspecified";
    case FinishReason::kEos:
      return "eos";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
  }
  return "unspecified";
}

Digest Generation::Checksum() const {
  CanonicalWriter w("iha.generation", 1);
  w.Bytes(key.digest).Tokens(tokens).String(text).Int(static_cast<int64_t>(finish)).Int(prompt_tokens);
  return w.Hash();
}

GenKey KeyOf(const GenKeyInputs& in) {
  CanonicalWriter w("iha.genkey", 1);
  w.Bytes(in.weights).Bytes(in.tokenizer).String(in.numerics_id).Tokens(in.prompt);
  SamplingParams sampling = in.sampling;
  sampling.samples = 0;  // sample i is the same whatever k is
  Write(w, sampling);
  w.List(in.stops.size());
  for (const std::string& stop : in.stops) w.String(stop);
  w.Tokens(in.eos).Int(in.sample_index);
  return {w.Hash()};
}

GenKey ScoreKeyOf(const ScoreKeyInputs& in) {
  CanonicalWriter w("iha.scorekey", 1);
  w.Bytes(in.weights).Bytes(in.tokenizer).String(in.numerics_id).List(in.choices.size());
  for (const Continuation& choice : in.choices) w.Tokens(choice.context).Tokens(choice.tokens);
  return {w.Hash()};
}

uint64_t StreamKeyOf(uint64_t seed, int32_t sample_index, const std::vector<int32_t>& prompt) {
  CanonicalWriter w("iha.stream", 1);
  w.Uint(seed).Int(sample_index).Tokens(prompt);
  return w.Hash().Prefix64();
}

const char* NameOf(Unscored reason) {
  switch (reason) {
    case Unscored::kScored:
      return "scored";
    case Unscored::kPending:
      return "pending";
    case Unscored::kPromptTooLong:
      return "prompt_too_long";
    case Unscored::kQuarantined:
      return "quarantined";
    case Unscored::kCancelled:
      return "cancelled";
    case Unscored::kGraderError:
      return "grader_error";
    case Unscored::kGraderUnavailable:
      return "grader_unavailable";
    case Unscored::kUndefined:
      return "undefined";
    case Unscored::kGeneratorDeadEnd:
      return "generator_dead_end";
    case Unscored::kDataExhausted:
      return "data_exhausted";
  }
  return "undefined";
}

Digest ItemResult::Hash() const {
  CanonicalWriter w("iha.item_result", 1);
  w.Int(index).String(item_id).Int(static_cast<int64_t>(unscored)).List(samples.size());
  for (const SampleResult& sample : samples) {
    w.Bytes(sample.generation.digest).List(sample.grades.size());
    for (const SampleGrade& g : sample.grades) {
      w.String(g.metric).String(g.extracted).Bool(g.valid).Int(static_cast<int64_t>(g.unscored));
      Write(w, g.score);
      w.String(g.reason);
      if (g.group >= 0) w.Int(g.group);  // rows from before groups keep their digests
    }
  }
  w.List(values.size());
  for (const ItemValue& v : values) {
    w.String(v.metric).Int(static_cast<int64_t>(v.unscored));
    Write(w, v.score);
    w.String(v.winner);
    Write(w, v.tie);
    w.Int(v.invalid);
  }
  return w.Hash();
}

}  // namespace iha
