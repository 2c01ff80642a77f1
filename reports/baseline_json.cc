#include "reports/baseline_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::reports {
namespace {

using Json = nlohmann::ordered_json;
constexpr char kSchema[] = "iha-eval/baseline/1";

std::string Fraction(const Score& score) {
  return score.den == 1 ? std::to_string(score.num) : fmt::format("{}/{}", score.num, score.den);
}

std::string HexOrEmpty(const Digest& digest) { return digest.empty() ? "" : digest.Hex(); }

Json MetricJson(const GateMetric& metric) {
  return {{"name", metric.name},
          {"within_variance", metric.within_variance.has_value() ? Json(*metric.within_variance) : Json(nullptr)},
          {"margin", metric.margin->value},
          {"margin_rule", metric.margin->rule}};
}

Json ItemJson(const GateItem& item) {
  Json json = {{"index", item.index}, {"id", item.id}, {"outputs", item.outputs.Hex()}, {"values", Json::array()}};
  for (const auto& value : item.values) {
    json["values"].push_back(value.has_value() ? Json(Fraction(*value)) : Json(nullptr));
  }
  return json;
}

Json EntryJson(const GateEntry& entry) {
  Json options = Json::object();
  for (const auto& [name, value] : entry.benchmark.options) options[name] = value;
  const SamplingParams& s = entry.sampling;
  Json json = {{"benchmark", entry.benchmark.name},
               {"options", options},
               {"sampling",
                {{"temperature", s.temperature},
                 {"top_p", s.top_p},
                 {"top_k", s.top_k},
                 {"samples", s.samples},
                 {"seed", s.seed},
                 {"max_new_tokens", s.max_new_tokens}}},
               {"benchmark_version", entry.benchmark_version},
               {"grader_version", entry.grader_version},
               {"data_digest", entry.data_digest.Hex()},
               {"prompt_digest", entry.prompt_digest.Hex()},
               {"planned", entry.planned},
               {"metrics", Json::array()},
               {"items", Json::array()}};
  for (const GateMetric& metric : entry.metrics) json["metrics"].push_back(MetricJson(metric));
  for (const GateItem& item : entry.items) json["items"].push_back(ItemJson(item));
  return json;
}

// One object of the file: fields are taken by name, and every one must have been asked for.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  absl::Status Fields(std::initializer_list<const char*> names) const {
    if (!json_.is_object()) return Wrong("", "an object");
    for (const char* name : names) {
      if (!json_.contains(name))
        return InvalidArgument("{}: field \"{}\": missing; export the baseline again", where_, name);
    }
    for (const auto& [key, value] : json_.items()) {
      if (std::find(names.begin(), names.end(), key) == names.end()) {
        return InvalidArgument("{}: field \"{}\": unknown; export the baseline again with this version", where_,
                               TerminalSafe(key, 80));
      }
    }
    return absl::OkStatus();
  }
  const Json& at(const char* name) const { return json_.at(name); }
  Reader In(const char* name) const { return {json_.at(name), fmt::format("{}: {}", where_, name)}; }
  bool HasText(const char* name) const {
    return json_.is_object() && json_.contains(name) && json_.at(name).is_string();
  }
  absl::Status Text(const char* name, std::string& out) const {
    if (!at(name).is_string()) return Wrong(name, "a string");
    out = at(name).get<std::string>();
    return absl::OkStatus();
  }
  absl::Status Number(const char* name, double low, double high, double& out) const {
    if (!at(name).is_number()) return Wrong(name, "a number");
    out = at(name).get<double>();
    if (out < low || out > high) return Wrong(name, fmt::format("a number in [{}, {}]", low, high));
    return absl::OkStatus();
  }
  template <class Integer>
  absl::Status Whole(const char* name, int64_t low, int64_t high, Integer& out) const {
    const auto value = JsonInteger(at(name));
    if (!value.has_value() || *value < low || *value > high) {
      return Wrong(name, fmt::format("a whole number in [{}, {}]", low, high));
    }
    out = static_cast<Integer>(*value);
    return absl::OkStatus();
  }
  absl::Status Hash(const char* name, bool may_be_empty, Digest& out) const {
    std::string text;
    IHA_RETURN_IF_ERROR(Text(name, text));
    if (may_be_empty && text.empty()) return absl::OkStatus();
    const auto digest = ParseDigest(text);
    if (!digest.ok()) return Wrong(name, "64 hex characters");
    out = *digest;
    return absl::OkStatus();
  }
  absl::Status List(const char* name) const { return at(name).is_array() ? absl::OkStatus() : Wrong(name, "an array"); }
  absl::Status Wrong(const char* name, const std::string& expected) const {
    const std::string found =
        TerminalSafe((*name == '\0' ? json_ : at(name)).dump(-1, ' ', false, Json::error_handler_t::replace), 80);
    const std::string field = *name == '\0' ? "" : fmt::format("field \"{}\": ", name);
    return InvalidArgument("{}: {}found {}, expected {}", where_, field, found, expected);
  }
  const std::string& where() const { return where_; }

 private:
  const Json& json_;
  std::string where_;
};

// "2/3" or "1": in [0, 1].
std::optional<Score> ParseFraction(const std::string& text) {
  Score score;
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, score.num);
  if (error == std::errc() && at != end && *at == '/') {
    const auto rest = std::from_chars(at + 1, end, score.den);
    at = rest.ptr;
    error = rest.ec;
  }
  if (error != std::errc() || at != end || score.den < 1 || score.num < 0 || score.num > score.den) return std::nullopt;
  return score;
}

absl::Status ReadItem(const Reader& in, size_t metrics, GateItem& item) {
  IHA_RETURN_IF_ERROR(in.Fields({"index", "id", "outputs", "values"}));
  IHA_RETURN_IF_ERROR(in.Whole("index", 0, INT64_MAX, item.index));
  IHA_RETURN_IF_ERROR(in.Text("id", item.id));
  IHA_RETURN_IF_ERROR(in.Hash("outputs", false, item.outputs));
  IHA_RETURN_IF_ERROR(in.List("values"));
  if (in.at("values").size() != metrics) return in.Wrong("values", fmt::format("{} values", metrics));
  for (const Json& value : in.at("values")) {
    if (value.is_null()) {
      item.values.emplace_back();
      continue;
    }
    const auto score = value.is_string() ? ParseFraction(value.get<std::string>()) : std::nullopt;
    if (!score.has_value()) return in.Wrong("values", "fractions in [0, 1] as text, or null");
    item.values.push_back(score);
  }
  return absl::OkStatus();
}

absl::Status ReadMetric(const Reader& in, GateMetric& metric) {
  IHA_RETURN_IF_ERROR(in.Fields({"name", "within_variance", "margin", "margin_rule"}));
  IHA_RETURN_IF_ERROR(in.Text("name", metric.name));
  if (!in.at("within_variance").is_null()) {
    IHA_RETURN_IF_ERROR(in.Number("within_variance", 0, 1, metric.within_variance.emplace()));
  }
  Margin& margin = metric.margin.emplace();
  IHA_RETURN_IF_ERROR(in.Number("margin", 1e-9, 1, margin.value));
  return in.Text("margin_rule", margin.rule);
}

absl::Status ReadSampling(const Reader& in, SamplingParams& s) {
  IHA_RETURN_IF_ERROR(in.Fields({"temperature", "top_p", "top_k", "samples", "seed", "max_new_tokens"}));
  IHA_RETURN_IF_ERROR(in.Number("temperature", 0, 1e6, s.temperature));
  IHA_RETURN_IF_ERROR(in.Number("top_p", 0, 1, s.top_p));
  IHA_RETURN_IF_ERROR(in.Whole("top_k", 0, INT32_MAX, s.top_k));
  IHA_RETURN_IF_ERROR(in.Whole("samples", 1, INT32_MAX, s.samples));
  IHA_RETURN_IF_ERROR(in.Whole("max_new_tokens", 0, INT32_MAX, s.max_new_tokens));
  if (!in.at("seed").is_number_unsigned()) return in.Wrong("seed", "a whole number");
  s.seed = in.at("seed").get<uint64_t>();
  return absl::OkStatus();
}

absl::Status ReadEntry(const Reader& in, GateEntry& entry) {
  IHA_RETURN_IF_ERROR(in.Fields({"benchmark", "options", "sampling", "benchmark_version", "grader_version",
                                 "data_digest", "prompt_digest", "planned", "metrics", "items"}));
  IHA_RETURN_IF_ERROR(in.Text("benchmark", entry.benchmark.name));
  if (!in.at("options").is_object()) return in.Wrong("options", "an object");
  for (const auto& [name, value] : in.at("options").items()) {
    if (!value.is_string()) return in.Wrong("options", "texts");
    entry.benchmark.options[name] = value.get<std::string>();
  }
  IHA_RETURN_IF_ERROR(ReadSampling(in.In("sampling"), entry.sampling));
  IHA_RETURN_IF_ERROR(in.Text("benchmark_version", entry.benchmark_version));
  IHA_RETURN_IF_ERROR(in.Text("grader_version", entry.grader_version));
  IHA_RETURN_IF_ERROR(in.Hash("data_digest", false, entry.data_digest));
  IHA_RETURN_IF_ERROR(in.Hash("prompt_digest", false, entry.prompt_digest));
  IHA_RETURN_IF_ERROR(in.Whole("planned", 1, INT64_MAX, entry.planned));
  IHA_RETURN_IF_ERROR(in.List("metrics"));
  for (const Json& metric : in.at("metrics")) {
    IHA_RETURN_IF_ERROR(ReadMetric({metric, in.where() + ": metrics"}, entry.metrics.emplace_back()));
  }
  IHA_RETURN_IF_ERROR(in.List("items"));
  for (const Json& json : in.at("items")) {
    GateItem item;
    IHA_RETURN_IF_ERROR(ReadItem({json, in.where() + ": items"}, entry.metrics.size(), item));
    if (item.index != static_cast<int64_t>(entry.items.size())) return in.Wrong("items", "all items in order");
    entry.items.push_back(std::move(item));
  }
  if (static_cast<int64_t>(entry.items.size()) != entry.planned) {
    return in.Wrong("planned", fmt::format("{}, the number of items", entry.items.size()));
  }
  return absl::OkStatus();
}

// Before its fields: another kind of file has none of them.
absl::Status CheckSchema(const Reader& in) {
  if (!in.HasText("schema")) return in.Wrong("", fmt::format("an object of schema \"{}\"", kSchema));
  std::string schema;
  IHA_RETURN_IF_ERROR(in.Text("schema", schema));
  return schema == kSchema ? absl::OkStatus() : in.Wrong("schema", fmt::format("\"{}\"", kSchema));
}

absl::Status ReadRun(const Reader& in, Baseline& baseline) {
  IHA_RETURN_IF_ERROR(CheckSchema(in));
  IHA_RETURN_IF_ERROR(in.Fields({"schema", "iha_eval_version", "sweep", "model", "weights_digest", "tokenizer_digest",
                                 "numerics_id", "margin_rule", "entries"}));
  GateRun& run = baseline.run;
  IHA_RETURN_IF_ERROR(in.Text("iha_eval_version", run.iha_eval_version));
  IHA_RETURN_IF_ERROR(in.Text("sweep", run.sweep));
  IHA_RETURN_IF_ERROR(in.Text("model", run.model));
  IHA_RETURN_IF_ERROR(in.Hash("weights_digest", true, run.weights));
  IHA_RETURN_IF_ERROR(in.Hash("tokenizer_digest", true, run.tokenizer));
  IHA_RETURN_IF_ERROR(in.Text("numerics_id", run.numerics_id));
  const Reader rule = in.In("margin_rule");
  IHA_RETURN_IF_ERROR(rule.Fields({"alpha", "power", "discordance"}));
  IHA_RETURN_IF_ERROR(rule.Number("alpha", 1e-6, 0.5, baseline.rule.alpha));
  IHA_RETURN_IF_ERROR(rule.Number("power", 0.5, 1, baseline.rule.power));
  IHA_RETURN_IF_ERROR(rule.Number("discordance", 0, 1, baseline.rule.discordance));
  baseline.run.margin_rule = baseline.rule;
  IHA_RETURN_IF_ERROR(in.List("entries"));
  for (const Json& entry : in.at("entries")) {
    const std::string where = fmt::format("{}: entries[{}]", in.where(), run.entries.size());
    IHA_RETURN_IF_ERROR(ReadEntry({entry, where}, run.entries.emplace_back()));
  }
  return absl::OkStatus();
}

}  // namespace

std::string RenderBaseline(const GateRun& run, const MarginRule& rule) {
  Json json;
  json["schema"] = kSchema;
  json["iha_eval_version"] = run.iha_eval_version;
  json["sweep"] = run.sweep;
  json["model"] = run.model;
  json["weights_digest"] = HexOrEmpty(run.weights);
  json["tokenizer_digest"] = HexOrEmpty(run.tokenizer);
  json["numerics_id"] = run.numerics_id;
  json["margin_rule"] = {{"alpha", rule.alpha}, {"power", rule.power}, {"discordance", rule.discordance}};
  json["entries"] = Json::array();
  for (const GateEntry& entry : run.entries) json["entries"].push_back(EntryJson(entry));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Baseline> ParseBaseline(std::string_view text, std::string_view where) {
  IHA_ASSIGN_OR_RETURN(const Json json, ParseUniqueJson<Json>(text, where));
  Baseline baseline;
  IHA_RETURN_IF_ERROR(ReadRun({json, std::string(where)}, baseline));
  return baseline;
}

}  // namespace iha::reports
