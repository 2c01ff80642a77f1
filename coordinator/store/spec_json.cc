#include "coordinator/store/spec_json.h"

#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"

namespace iha::coordinator {
namespace {

using nlohmann::json;

json Encode(const SamplingParams& p) {
  return {{"temperature", p.temperature}, {"top_p", p.top_p}, {"top_k", p.top_k},
          {"samples", p.samples},         {"seed", p.seed},   {"max_new_tokens", p.max_new_tokens}};
}
json Encode(const ModelRef& m) { return {{"name", m.name}, {"weights_digest", m.weights_digest}}; }
json Encode(const SweepEntry& e) {
  json object({{"benchmark", e.benchmark.name},
               {"options", e.benchmark.options},
               {"sampling", Encode(e.sampling)},
               {"limit", e.limit.has_value() ? json(*e.limit) : json(nullptr)},
               {"metrics", e.metrics}});
  if (e.stop_settled_votes) object["stop_settled_votes"] = true;
  return object;
}

// Strings may hold any bytes; invalid UTF-8 is replaced rather than thrown on (the ids were made from the raw bytes).
std::string Dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// Reads fields of one object; the first missing or mistyped one is remembered.
class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {}

  template <class T>
  void Get(const char* key, T* out) {
    const auto it = object_.find(key);
    if (it == object_.end() || !Fits<T>(*it)) {
      if (bad_.empty()) bad_ = key;
      return;
    }
    *out = it->template get<T>();
  }
  const json& Sub(const char* key) {
    static const json kNone = json::object();
    const auto it = object_.find(key);
    if (it != object_.end()) return *it;
    if (bad_.empty()) bad_ = key;
    return kNone;
  }
  absl::Status status() const {
    return bad_.empty() ? absl::OkStatus()
                        : DataLoss("stored spec: field {} is missing or of the wrong type; restore a backup", bad_);
  }

 private:
  template <class T>
  static bool Fits(const json& v) {
    if constexpr (std::is_same_v<T, std::string>) return v.is_string();
    if constexpr (std::is_same_v<T, double>) return v.is_number();
    if constexpr (std::is_same_v<T, bool>) return v.is_boolean();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return JsonInteger<T>(v).has_value();
    if constexpr (std::is_same_v<T, std::vector<std::string>>) return v.is_array() && AllStrings(v);
    if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) return v.is_object() && AllStrings(v);
    return false;
  }
  static bool AllStrings(const json& v) {
    return std::all_of(v.begin(), v.end(), [](const json& e) { return e.is_string(); });
  }
  const json& object_;
  std::string bad_;
};

absl::Status Decode(const json& j, SamplingParams* p) {
  Reader r(j);
  r.Get("temperature", &p->temperature);
  r.Get("top_p", &p->top_p);
  r.Get("top_k", &p->top_k);
  r.Get("samples", &p->samples);
  r.Get("seed", &p->seed);
  r.Get("max_new_tokens", &p->max_new_tokens);
  return r.status();
}

absl::Status Decode(const json& j, ModelRef* m) {
  Reader r(j);
  r.Get("name", &m->name);
  r.Get("weights_digest", &m->weights_digest);
  return r.status();
}

absl::Status Decode(const json& j, SweepEntry* e) {
  Reader r(j);
  r.Get("benchmark", &e->benchmark.name);
  r.Get("options", &e->benchmark.options);
  r.Get("metrics", &e->metrics);
  if (j.contains("stop_settled_votes")) r.Get("stop_settled_votes", &e->stop_settled_votes);
  if (const json& limit = r.Sub("limit"); !limit.is_null()) r.Get("limit", &e->limit.emplace());
  const json& sampling = r.Sub("sampling");
  IHA_RETURN_IF_ERROR(r.status());
  return Decode(sampling, &e->sampling);
}

template <class T>
absl::Status DecodeList(const json& array, std::vector<T>* out) {
  for (const json& element : array) {
    IHA_RETURN_IF_ERROR(Decode(element, &out->emplace_back()));
  }
  return absl::OkStatus();
}

absl::StatusOr<json> ParseObject(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  if (!value.is_object()) return DataLoss("stored spec: not a JSON object; restore a backup");
  return value;
}

template <class T>
json EncodeList(const std::vector<T>& list) {
  json array = json::array();
  for (const T& element : list) array.push_back(Encode(element));
  return array;
}

}  // namespace

std::string ToJson(const SweepSpec& spec) {
  json object({{"models", EncodeList(spec.models)},
               {"entries", EncodeList(spec.entries)},
               {"numerics",
                {{"backend", spec.numerics.backend},
                 {"weights_dtype", spec.numerics.weights_dtype},
                 {"activation_dtype", spec.numerics.activation_dtype},
                 {"kv_dtype", spec.numerics.kv_dtype}}},
               {"run_tag", spec.run_tag},
               {"max_attempts", spec.max_attempts},
               {"shard_tokens", spec.shard_tokens}});
  if (spec.item_order.has_value()) object["item_order"] = *spec.item_order;
  return Dump(object);
}

absl::StatusOr<SweepSpec> ParseSweepSpec(const std::string& text) {
  IHA_ASSIGN_OR_RETURN(const json object, ParseObject(text));
  SweepSpec spec;
  Reader r(object);
  r.Get("run_tag", &spec.run_tag);
  r.Get("max_attempts", &spec.max_attempts);
  r.Get("shard_tokens", &spec.shard_tokens);
  if (object.contains("item_order")) r.Get("item_order", &spec.item_order.emplace());
  IHA_RETURN_IF_ERROR(DecodeList(r.Sub("models"), &spec.models));
  IHA_RETURN_IF_ERROR(DecodeList(r.Sub("entries"), &spec.entries));
  Reader numerics(r.Sub("numerics"));
  numerics.Get("backend", &spec.numerics.backend);
  numerics.Get("weights_dtype", &spec.numerics.weights_dtype);
  numerics.Get("activation_dtype", &spec.numerics.activation_dtype);
  numerics.Get("kv_dtype", &spec.numerics.kv_dtype);
  IHA_RETURN_IF_ERROR(r.status());
  IHA_RETURN_IF_ERROR(numerics.status());
  return spec;
}

std::string ToJson(const JobSpec& spec) {
  return Dump({{"sweep", spec.sweep.Hex()},
               {"model_index", spec.model_index},
               {"entry_index", spec.entry_index},
               {"model", Encode(spec.model)},
               {"entry", Encode(spec.entry)},
               {"benchmark_version", spec.benchmark_version},
               {"grader_version", spec.grader_version},
               {"items", spec.items},
               {"numerics_id", spec.numerics_id},
               {"data_digest", spec.data_digest.Hex()},
               {"prompt_digest", spec.prompt_digest.Hex()}});
}

absl::StatusOr<JobSpec> ParseJobSpec(const std::string& text) {
  IHA_ASSIGN_OR_RETURN(const json object, ParseObject(text));
  JobSpec spec;
  std::string sweep, data, prompt;
  Reader r(object);
  r.Get("sweep", &sweep);
  r.Get("model_index", &spec.model_index);
  r.Get("entry_index", &spec.entry_index);
  r.Get("benchmark_version", &spec.benchmark_version);
  r.Get("grader_version", &spec.grader_version);
  r.Get("items", &spec.items);
  r.Get("numerics_id", &spec.numerics_id);
  r.Get("data_digest", &data);
  r.Get("prompt_digest", &prompt);
  IHA_RETURN_IF_ERROR(Decode(r.Sub("model"), &spec.model));
  IHA_RETURN_IF_ERROR(Decode(r.Sub("entry"), &spec.entry));
  IHA_RETURN_IF_ERROR(r.status());
  IHA_ASSIGN_OR_RETURN(spec.sweep.digest, ParseDigest(sweep));
  IHA_ASSIGN_OR_RETURN(spec.data_digest, ParseDigest(data));
  IHA_ASSIGN_OR_RETURN(spec.prompt_digest, ParseDigest(prompt));
  return spec;
}

std::string ToJson(const std::vector<std::string>& strings) { return Dump(json(strings)); }

absl::StatusOr<std::vector<std::string>> ParseStrings(const std::string& text) {
  const json value = json::parse(text, nullptr, false);
  std::vector<std::string> strings;
  if (!value.is_array()) return DataLoss("stored list: not a JSON array; restore a backup");
  for (const json& element : value) {
    if (!element.is_string()) return DataLoss("stored list: holds something else than strings; restore a backup");
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

}  // namespace iha::coordinator
