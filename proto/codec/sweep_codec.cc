// Sweeps, entries, jobs.
#include <algorithm>
#include <limits>
#include <set>

#include "proto/codec/parts.h"

namespace iha::codec {
namespace {

constexpr double kMaxTemperature = 1000.0;

void Write(const SamplingParams& in, wire::SamplingParams* out) {
  out->set_temperature(in.temperature);
  out->set_top_p(in.top_p);
  out->set_top_k(in.top_k);
  out->set_samples(in.samples);
  out->set_seed(in.seed);
  out->set_max_new_tokens(in.max_new_tokens);
}

void Write(const SweepEntry& in, wire::SweepEntry* out) {
  out->mutable_benchmark()->set_name(in.benchmark.name);
  for (const auto& [key, value] : in.benchmark.options) {
    wire::BenchmarkOption* option = out->mutable_benchmark()->add_options();
    option->set_key(key);
    option->set_value(value);
  }
  Write(in.sampling, out->mutable_sampling());
  if (in.limit.has_value()) out->set_limit(*in.limit);
  for (const std::string& metric : in.metrics) out->add_metrics(metric);
  out->set_stop_settled_votes(in.stop_settled_votes);
}

void Write(const ModelRef& in, wire::ModelRef* out) {
  out->set_name(in.name);
  out->set_weights_digest(in.weights_digest);
}

BenchmarkRef Read(const wire::BenchmarkRef& in, const Check& at) {
  BenchmarkRef out;
  out.name = at.Name("name", in.name());
  if (!at.Count("options", in.options_size(), kMaxListed)) return out;
  for (int i = 0; i < in.options_size(); i++) {
    const Check option = at.Sub("options", i);
    const std::string key = option.Name("key", in.options(i).key());
    if (!out.options.empty() && key <= out.options.rbegin()->first) option.Fail("key", key, "keys in increasing order");
    out.options.emplace(key, option.Text("value", in.options(i).value(), kMaxOptionBytes));
  }
  return out;
}

NumericsSpec Read(const wire::NumericsSpec& in, const Check& at) {
  NumericsSpec out;
  out.backend = at.Name("backend", in.backend());
  out.weights_dtype = at.Name("weights_dtype", in.weights_dtype());
  out.activation_dtype = at.Name("activation_dtype", in.activation_dtype());
  out.kv_dtype = at.Name("kv_dtype", in.kv_dtype());
  return out;
}

}  // namespace

std::string ReadModelName(const char* field, const std::string& value, const Check& at) {
  std::string name = at.Name(field, value);
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string component = name.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") {
      at.Fail(field, name, "a relative path without \".\" or \"..\"");
      break;
    }
    begin = end + 1;
  }
  return name;
}

SamplingParams Read(const wire::SamplingParams& in, const Check& at) {
  SamplingParams out;
  out.temperature = at.Real("temperature", in.temperature(), 0.0, kMaxTemperature);
  out.top_p = at.Real("top_p", in.top_p(), 0.0, 1.0);
  if (in.top_p() == 0.0) at.Fail("top_p", "0", "a number in (0, 1]");
  out.top_k = at.Int32("top_k", in.top_k(), 0, std::numeric_limits<int32_t>::max());
  out.samples = at.Int32("samples", in.samples(), 1, kMaxSamples);
  out.seed = in.seed();
  out.max_new_tokens = at.Int32("max_new_tokens", in.max_new_tokens(), 0, kMaxTokens);
  return out;
}

SweepEntry Read(const wire::SweepEntry& in, const Check& at) {
  SweepEntry out;
  at.Has("benchmark", in.has_benchmark());
  at.Has("sampling", in.has_sampling());
  out.benchmark = Read(in.benchmark(), at.Sub("benchmark"));
  out.sampling = Read(in.sampling(), at.Sub("sampling"));
  if (in.has_limit()) out.limit = at.Int("limit", in.limit(), 1, kMaxItems);
  out.metrics = ReadNames("metrics", in.metrics(), at);
  out.stop_settled_votes = in.stop_settled_votes();
  return out;
}

ModelRef Read(const wire::ModelRef& in, const Check& at) {
  ModelRef out;
  out.name = ReadModelName("name", in.name(), at);
  out.weights_digest = in.weights_digest();
  if (!out.weights_digest.empty()) {
    const absl::StatusOr<Digest> digest = ParseDigest(out.weights_digest);
    if (!digest.ok() || digest->Hex() != out.weights_digest) {
      at.Fail("weights_digest", out.weights_digest, "64 lower-case hex characters");
    }
  }
  return out;
}

SweepSpec Read(const wire::SweepSpec& in, const Check& at) {
  SweepSpec out;
  if (!at.Count("models", in.models_size(), kMaxListed) || !at.Count("entries", in.entries_size(), kMaxListed)) {
    return out;
  }
  if (in.models_size() == 0) at.Fail("models", "nothing", "at least one model");
  if (in.entries_size() == 0) at.Fail("entries", "nothing", "at least one entry");
  std::set<std::string> names;
  for (int i = 0; i < in.models_size(); i++) {
    const Check model = at.Sub("models", i);
    out.models.push_back(Read(in.models(i), model));
    if (!names.insert(in.models(i).name()).second) model.Fail("name", in.models(i).name(), "a name not used above");
  }
  for (int i = 0; i < in.entries_size(); i++) out.entries.push_back(Read(in.entries(i), at.Sub("entries", i)));
  at.Has("numerics", in.has_numerics());
  out.numerics = Read(in.numerics(), at.Sub("numerics"));
  out.run_tag = at.Line("run_tag", in.run_tag(), kMaxNameBytes);
  out.max_attempts = at.Int32("max_attempts", in.max_attempts(), 1, 1000);
  out.shard_tokens = at.Int("shard_tokens", in.shard_tokens(), 1, kMaxCount);
  if (in.has_item_order()) out.item_order = in.item_order();
  return out;
}

JobSpec Read(const wire::JobSpec& in, const Check& at) {
  JobSpec out;
  out.sweep = {at.Hash("sweep", in.sweep())};
  out.model_index = at.Int32("model_index", in.model_index(), 0, kMaxListed);
  out.entry_index = at.Int32("entry_index", in.entry_index(), 0, kMaxListed);
  at.Has("model", in.has_model());
  at.Has("entry", in.has_entry());
  out.model = Read(in.model(), at.Sub("model"));
  out.entry = Read(in.entry(), at.Sub("entry"));
  out.benchmark_version = at.Name("benchmark_version", in.benchmark_version());
  out.grader_version = at.Name("grader_version", in.grader_version());
  out.items = at.Int("items", in.items(), 0, kMaxItems);
  out.numerics_id = at.Name("numerics_id", in.numerics_id());
  out.data_digest = at.Hash("data_digest", in.data_digest());
  out.prompt_digest = at.Hash("prompt_digest", in.prompt_digest());
  return out;
}

void ToWire(const SweepSpec& in, wire::SweepSpec* out) {
  out->Clear();
  for (const ModelRef& model : in.models) Write(model, out->add_models());
  for (const SweepEntry& entry : in.entries) Write(entry, out->add_entries());
  wire::NumericsSpec* numerics = out->mutable_numerics();
  numerics->set_backend(in.numerics.backend);
  numerics->set_weights_dtype(in.numerics.weights_dtype);
  numerics->set_activation_dtype(in.numerics.activation_dtype);
  numerics->set_kv_dtype(in.numerics.kv_dtype);
  out->set_run_tag(in.run_tag);
  out->set_max_attempts(in.max_attempts);
  out->set_shard_tokens(in.shard_tokens);
  if (in.item_order.has_value()) out->set_item_order(*in.item_order);
}

absl::StatusOr<SweepSpec> FromWire(const wire::SweepSpec& in) { return ReadMessage("SweepSpec", in); }

void ToWire(const JobSpec& in, wire::JobSpec* out) {
  out->Clear();
  out->set_sweep(RawBytes(in.sweep.digest));
  out->set_model_index(in.model_index);
  out->set_entry_index(in.entry_index);
  Write(in.model, out->mutable_model());
  Write(in.entry, out->mutable_entry());
  out->set_benchmark_version(in.benchmark_version);
  out->set_grader_version(in.grader_version);
  out->set_items(in.items);
  out->set_numerics_id(in.numerics_id);
  out->set_data_digest(RawBytes(in.data_digest));
  out->set_prompt_digest(RawBytes(in.prompt_digest));
}

absl::StatusOr<JobSpec> FromWire(const wire::JobSpec& in) { return ReadMessage("JobSpec", in); }

}  // namespace iha::codec
