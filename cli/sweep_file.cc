#include "cli/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "benchmarks/benchmark.h"
#include "benchmarks/options.h"
#include "common/errors.h"
#include "common/json.h"
#include "common/nearest.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

// A field of the file, and the option of a benchmark that it becomes.
constexpr auto& kTemplateDate = benchmarks::kTemplateDateOption;

bool IsInt64(const Json& json) { return JsonInteger(json).has_value(); }

// Reads fields of one object.
class Fields {
 public:
  Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}

  // Call first: a misspelt field is said before the one that is missing for it.
  absl::Status CheckObject(std::span<const std::string> known) const {
    if (!object_.is_object()) return InvalidArgument("{}: found {}; expected an object", path_, object_.type_name());
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        return Annotate(UnknownName("field", key, known), path_);
    }
    return absl::OkStatus();
  }

  absl::Status Read(const char* key, std::string& value) {
    return ReadAs(key, "a string", value, [](const Json& j) { return j.is_string(); });
  }
  absl::Status Read(const char* key, bool& value) {
    return ReadAs(key, "true or false", value, [](const Json& j) { return j.is_boolean(); });
  }
  absl::Status Read(const char* key, double& value) {
    return ReadAs(key, "a number", value, [](const Json& j) { return j.is_number(); });
  }
  absl::Status Read(const char* key, uint64_t& value) {
    return ReadAs(key, "a whole number from 0", value, [](const Json& j) { return j.is_number_unsigned(); });
  }
  absl::Status Read(const char* key, int64_t& value) { return ReadAs(key, "a whole number", value, IsInt64); }
  absl::Status Read(const char* key, int32_t& value) {
    int64_t wide = value;
    IHA_RETURN_IF_ERROR(Read(key, wide));
    if (wide < INT32_MIN || wide > INT32_MAX) return InvalidArgument("{}: {} is out of range", PathOf(key), wide);
    value = static_cast<int32_t>(wide);
    return absl::OkStatus();
  }
  absl::Status Read(const char* key, std::optional<int64_t>& value) {
    const Json* json = Find(key);
    if (json == nullptr || json->is_null()) return absl::OkStatus();
    if (!IsInt64(*json)) return Wrong(key, *json, "a whole number or null");
    value = json->get<int64_t>();
    return absl::OkStatus();
  }
  absl::Status Read(const char* key, std::vector<std::string>& value) {
    const Json* json = Find(key);
    if (json == nullptr) return absl::OkStatus();
    if (!json->is_array()) return Wrong(key, *json, "an array of strings");
    value.clear();
    for (const Json& element : *json) {
      if (!element.is_string()) return Wrong(key, element, "strings only");
      value.push_back(element.get<std::string>());
    }
    return absl::OkStatus();
  }
  const Json* Find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() ? nullptr : &*at;
  }

 private:
  std::string PathOf(const char* key) const { return path_ == "sweep" ? key : fmt::format("{}.{}", path_, key); }
  absl::Status Wrong(const char* key, const Json& found, const char* expected) const {
    return InvalidArgument("{}: found {}; expected {}", PathOf(key), TerminalSafe(found.dump(), 80), expected);
  }
  template <class T, class Check>
  absl::Status ReadAs(const char* key, const char* expected, T& value, Check check) {
    const Json* json = Find(key);
    if (json == nullptr) return absl::OkStatus();
    if (!check(*json)) return Wrong(key, *json, expected);
    value = json->get<T>();
    return absl::OkStatus();
  }

  const Json& object_;
  std::string path_;
};

absl::Status ReadModel(const Json& json, const std::string& path, ModelRef& model) {
  if (json.is_string()) {
    model.name = json.get<std::string>();
  } else {
    Fields fields(json, path);
    IHA_RETURN_IF_ERROR(fields.CheckObject(Names{"name", "weights_digest"}));
    IHA_RETURN_IF_ERROR(fields.Read("name", model.name));
    IHA_RETURN_IF_ERROR(fields.Read("weights_digest", model.weights_digest));
  }
  if (model.name.empty()) return InvalidArgument("{}: the model's name is empty", path);
  return absl::OkStatus();
}

// What the file says for all its benchmarks.
struct Defaults {
  std::string template_date;  // "" = the benchmark's own
};

// The benchmark's own sampling, which the file's fields then override, and the options that the whole sweep sets.
void FillDefaults(const Defaults& defaults, SweepEntry& entry) {
  const absl::StatusOr<benchmarks::BenchmarkInfo> info = benchmarks::FindBenchmark(entry.benchmark.name);
  if (!info.ok()) return;  // said when the sweep is planned
  entry.sampling = info->default_sampling;
  if (defaults.template_date.empty()) return;
  for (const benchmarks::OptionInfo& option : info->options) {
    if (option.name == kTemplateDate) entry.benchmark.options.emplace(option.name, defaults.template_date);
  }
}

// An entry for each cell that the text stands for.
absl::Status ReadSpecText(const std::string& text, const std::string& path, const Defaults& defaults,
                          std::vector<SweepEntry>& entries) {
  const absl::StatusOr<BenchmarkRef> ref = benchmarks::ParseBenchmarkRef(text);
  if (!ref.ok()) return Annotate(ref.status(), path);
  const absl::StatusOr<std::vector<BenchmarkRef>> cells = benchmarks::ExpandBenchmark(*ref);
  if (!cells.ok()) return Annotate(cells.status(), path);
  for (const BenchmarkRef& cell : *cells) {
    SweepEntry& entry = entries.emplace_back();
    entry.benchmark = cell;
    FillDefaults(defaults, entry);
    IHA_RETURN_IF_ERROR(Annotate(benchmarks::TakeSampling(entry.benchmark, entry.sampling), path));
  }
  return absl::OkStatus();
}

absl::Status ReadEntryFields(Fields& fields, SweepEntry& entry) {
  SamplingParams& s = entry.sampling;
  IHA_RETURN_IF_ERROR(fields.Read("samples", s.samples));
  IHA_RETURN_IF_ERROR(fields.Read("temperature", s.temperature));
  IHA_RETURN_IF_ERROR(fields.Read("top_p", s.top_p));
  IHA_RETURN_IF_ERROR(fields.Read("top_k", s.top_k));
  IHA_RETURN_IF_ERROR(fields.Read("seed", s.seed));
  IHA_RETURN_IF_ERROR(fields.Read("max_new_tokens", s.max_new_tokens));
  IHA_RETURN_IF_ERROR(fields.Read("limit", entry.limit));
  IHA_RETURN_IF_ERROR(fields.Read("metrics", entry.metrics));
  return fields.Read("stop_settled_votes", entry.stop_settled_votes);
}

absl::StatusOr<std::vector<SweepEntry>> ReadEntry(const Json& json, const std::string& path, const Defaults& defaults) {
  std::vector<SweepEntry> entries;
  if (json.is_string()) {
    IHA_RETURN_IF_ERROR(ReadSpecText(json.get<std::string>(), path, defaults, entries));
    return entries;
  }
  Fields fields(json, path);
  IHA_RETURN_IF_ERROR(fields.CheckObject(Names{"spec", "samples", "temperature", "top_p", "top_k", "seed",
                                               "max_new_tokens", "limit", "metrics", "stop_settled_votes"}));
  std::string spec;
  IHA_RETURN_IF_ERROR(fields.Read("spec", spec));
  IHA_RETURN_IF_ERROR(ReadSpecText(spec, path + ".spec", defaults, entries));
  for (SweepEntry& entry : entries) IHA_RETURN_IF_ERROR(ReadEntryFields(fields, entry));
  return entries;
}

absl::Status ReadNumerics(const Json& json, NumericsSpec& numerics) {
  Fields fields(json, "numerics");
  IHA_RETURN_IF_ERROR(fields.CheckObject(Names{"backend", "weights_dtype", "activation_dtype", "kv_dtype"}));
  IHA_RETURN_IF_ERROR(fields.Read("backend", numerics.backend));
  IHA_RETURN_IF_ERROR(fields.Read("weights_dtype", numerics.weights_dtype));
  IHA_RETURN_IF_ERROR(fields.Read("activation_dtype", numerics.activation_dtype));
  return fields.Read("kv_dtype", numerics.kv_dtype);
}

absl::StatusOr<Defaults> ReadDefaults(Fields& fields) {
  Defaults defaults;
  IHA_RETURN_IF_ERROR(fields.Read(kTemplateDate, defaults.template_date));
  if (fields.Find(kTemplateDate) == nullptr || benchmarks::IsDay(defaults.template_date)) return defaults;
  return InvalidArgument("{}: found \"{}\"; expected a day as YYYY-MM-DD", kTemplateDate,
                         TerminalSafe(defaults.template_date, 40));
}

absl::Status ReadSpec(const Json& json, SweepSpec& spec) {
  Fields fields(json, "sweep");
  IHA_RETURN_IF_ERROR(fields.CheckObject(Names{"version", "models", "benchmarks", kTemplateDate, "numerics", "run_tag",
                                               "max_attempts", "shard_tokens", "item_order"}));
  if (fields.Find("version") == nullptr) return InvalidArgument("version: missing; expected 1");
  int64_t version = 0;
  IHA_RETURN_IF_ERROR(fields.Read("version", version));
  if (version != 1) return InvalidArgument("version: found {}; expected 1", version);
  const Json* models = fields.Find("models");
  if (models == nullptr || !models->is_array() || models->empty()) {
    return InvalidArgument("models: expected a non-empty array of model names");
  }
  for (const Json& model : *models) {
    const std::string path = fmt::format("models[{}]", spec.models.size());
    IHA_RETURN_IF_ERROR(ReadModel(model, path, spec.models.emplace_back()));
  }
  const Json* entries = fields.Find("benchmarks");
  if (entries == nullptr || !entries->is_array() || entries->empty()) {
    return InvalidArgument("benchmarks: expected a non-empty array of benchmark entries");
  }
  IHA_ASSIGN_OR_RETURN(const Defaults defaults, ReadDefaults(fields));
  for (size_t e = 0; e < entries->size(); e++) {
    IHA_ASSIGN_OR_RETURN(const std::vector<SweepEntry> cells,
                         ReadEntry((*entries)[e], fmt::format("benchmarks[{}]", e), defaults));
    spec.entries.insert(spec.entries.end(), cells.begin(), cells.end());
  }
  if (const Json* numerics = fields.Find("numerics"); numerics != nullptr) {
    IHA_RETURN_IF_ERROR(ReadNumerics(*numerics, spec.numerics));
  }
  IHA_RETURN_IF_ERROR(fields.Read("run_tag", spec.run_tag));
  IHA_RETURN_IF_ERROR(fields.Read("max_attempts", spec.max_attempts));
  IHA_RETURN_IF_ERROR(fields.Read("shard_tokens", spec.shard_tokens));
  const Json* order = fields.Find("item_order");
  if (order == nullptr || order->is_null()) return absl::OkStatus();
  return fields.Read("item_order", spec.item_order.emplace());
}

}  // namespace

absl::StatusOr<SweepSpec> ParseSweep(std::string_view json, const std::string& where) {
  IHA_ASSIGN_OR_RETURN(const Json parsed, ParseCommentedJson(json, where));
  SweepSpec spec;
  const absl::Status status = ReadSpec(parsed, spec);
  if (!status.ok()) return Annotate(status, where);
  return spec;
}

std::string SweepToJson(const SweepSpec& spec) {
  Json json;
  json["version"] = 1;
  for (const ModelRef& model : spec.models) {
    if (model.weights_digest.empty()) {
      json["models"].push_back(model.name);
    } else {
      json["models"].push_back({{"name", model.name}, {"weights_digest", model.weights_digest}});
    }
  }
  for (const SweepEntry& entry : spec.entries) {
    const SamplingParams& s = entry.sampling;
    Json out = {{"spec", benchmarks::ToString(entry.benchmark)},
                {"samples", s.samples},
                {"temperature", s.temperature},
                {"top_p", s.top_p},
                {"top_k", s.top_k},
                {"seed", s.seed},
                {"max_new_tokens", s.max_new_tokens}};
    out["limit"] = entry.limit.has_value() ? Json(*entry.limit) : Json(nullptr);
    out["metrics"] = entry.metrics;
    if (entry.stop_settled_votes) out["stop_settled_votes"] = true;
    json["benchmarks"].push_back(std::move(out));
  }
  json["numerics"] = {{"backend", spec.numerics.backend},
                      {"weights_dtype", spec.numerics.weights_dtype},
                      {"activation_dtype", spec.numerics.activation_dtype},
                      {"kv_dtype", spec.numerics.kv_dtype}};
  json["run_tag"] = spec.run_tag;
  json["max_attempts"] = spec.max_attempts;
  json["shard_tokens"] = spec.shard_tokens;
  if (spec.item_order.has_value()) json["item_order"] = *spec.item_order;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace iha::cli
