#include "reports/entry_names.h"

#include <fmt/format.h>

#include <set>

#include "reports/ruler_summary.h"

namespace iha::reports {
namespace {

struct Label {
  std::string text;
  const NamedEntry* entry = nullptr;
};

// "maj@5?metric=gsm8k.robust" reads better as "gsm8k.robust maj@5".
std::string ReadableMetric(const std::string& metric) {
  const std::string_view marker = "?metric=";
  const size_t at = metric.find(marker);
  if (at == std::string::npos || metric.find('&', at) != std::string::npos) return metric;
  return fmt::format("{} {}", metric.substr(at + marker.size()), metric.substr(0, at));
}

std::string MetricName(const std::string& benchmark, const std::string& metric) {
  if (metric == kRulerMetric) return benchmark;
  const std::string readable = ReadableMetric(metric);
  return readable.starts_with(benchmark + ".") ? readable : fmt::format("{} {}", benchmark, readable);
}

std::string ValueOf(const NamedEntry& entry, const std::string& key) {
  const auto at = entry.settings.find(key);
  return at == entry.settings.end() ? "none" : at->second;
}

// The settings in which the entries of these labels differ.
std::set<std::string> Differing(const std::vector<Label*>& labels) {
  std::set<std::string> keys, differing;
  for (const Label* label : labels) {
    for (const auto& [key, value] : label->entry->settings) keys.insert(key);
  }
  for (const std::string& key : keys) {
    std::set<std::string> values;
    for (const Label* label : labels) values.insert(ValueOf(*label->entry, key));
    if (values.size() > 1) differing.insert(key);
  }
  return differing;
}

std::string SettingsText(const NamedEntry& entry, const std::set<std::string>& keys) {
  std::string text;
  const bool sampling = keys.contains("temperature") || keys.contains("samples");
  if (sampling) text += fmt::format(" T={} k={}", ValueOf(entry, "temperature"), ValueOf(entry, "samples"));
  for (const std::string& key : keys) {
    if (key != "temperature" && key != "samples") text += fmt::format(" {}={}", key, ValueOf(entry, key));
  }
  return text;
}

std::vector<std::string> Unique(std::vector<Label> labels) {
  std::map<std::string, std::vector<Label*>> alike;
  for (Label& label : labels) alike[label.text].push_back(&label);
  for (const auto& [text, same] : alike) {
    if (same.size() < 2) continue;
    const std::set<std::string> keys = Differing(same);
    for (Label* label : same) label->text += SettingsText(*label->entry, keys);
  }
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const Label& label : labels) {
    std::string name = label.text;
    for (int n = 2; !taken.insert(name).second; n++) name = fmt::format("{} #{}", label.text, n);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

NamedEntry Named(const BenchmarkRef& benchmark, const SamplingParams& sampling,
                 const std::pair<std::string, std::string>& items, std::vector<std::string> metrics) {
  NamedEntry named{.benchmark = benchmark.name, .settings = {}, .metrics = std::move(metrics)};
  named.settings.insert(benchmark.options.begin(), benchmark.options.end());
  named.settings["temperature"] = fmt::format("{}", sampling.temperature);
  named.settings["samples"] = fmt::format("{}", sampling.samples);
  named.settings["top_p"] = fmt::format("{}", sampling.top_p);
  named.settings["top_k"] = fmt::format("{}", sampling.top_k);
  named.settings["seed"] = fmt::format("{}", sampling.seed);
  named.settings["max_new_tokens"] = fmt::format("{}", sampling.max_new_tokens);
  named.settings.insert(items);
  return named;
}

std::vector<NamedEntry> Named(const std::vector<SweepEntry>& entries) {
  std::vector<NamedEntry> named;
  for (const SweepEntry& entry : entries) {
    const std::string limit = entry.limit.has_value() ? fmt::format("{}", *entry.limit) : "none";
    named.push_back(Named(entry.benchmark, entry.sampling, {"limit", limit}, entry.metrics));
    if (entry.stop_settled_votes) named.back().settings["stop_settled_votes"] = "yes";
  }
  return named;
}

std::vector<std::string> EntryNames(const std::vector<NamedEntry>& entries) {
  std::vector<Label> labels;
  for (const NamedEntry& entry : entries) labels.push_back({entry.benchmark, &entry});
  return Unique(std::move(labels));
}

std::vector<std::vector<std::string>> MetricNames(const std::vector<NamedEntry>& entries) {
  std::vector<Label> labels;
  for (const NamedEntry& entry : entries) {
    for (const std::string& metric : entry.metrics) labels.push_back({MetricName(entry.benchmark, metric), &entry});
  }
  const std::vector<std::string> unique = Unique(std::move(labels));
  std::vector<std::vector<std::string>> names;
  size_t next = 0;
  for (const NamedEntry& entry : entries) {
    auto& own = names.emplace_back();
    while (own.size() < entry.metrics.size()) own.push_back(unique[next++]);
  }
  return names;
}

}  // namespace iha::reports
