// export lm-eval: a stored sweep as results_*.json and samples_*.jsonl, in the shape of lm-evaluation-harness 0.4.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "benchmarks/benchmark.h"
#include "cli/command.h"
#include "cli/store_commands.h"
#include "common/digest.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "common/version.h"
#include "coordinator/store/snapshot_reader.h"
#include "coordinator/store/sqlite_store.h"
#include "reports/aggregate.h"
#include "reports/gate_run.h"
#include "reports/lm_eval.h"
#include "reports/table.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string db;
  std::string sweep;
  std::string out;
  bool prompts = true;
};

// How that tool would write one of our metrics.
struct WrittenName {
  std::string metric;
  std::string filter;
};

WrittenName NameThere(const std::string& benchmark, const std::string& metric) {
  for (const reports::LmEvalName& name : reports::LmEvalNames()) {
    if (benchmark == name.benchmark && metric == name.name) return {name.metric, name.filter};
  }
  return {metric, "none"};
}

// One name for each entry; that of a benchmark's second entry says which it is.
std::vector<std::string> TaskNames(const SweepSpec& spec) {
  std::vector<std::string> names;
  for (size_t e = 0; e < spec.entries.size(); e++) {
    std::string name = spec.entries[e].benchmark.name;
    for (const reports::LmEvalName& known : reports::LmEvalNames()) {
      if (name == known.benchmark) {
        name = known.task;
        break;
      }
    }
    const bool taken = std::find(names.begin(), names.end(), name) != names.end();
    names.push_back(taken ? fmt::format("{}.entry{}", name, e) : name);
  }
  return names;
}

// As that tool makes folders of model names; what is too long for a file's name is cut, and told apart by its digest.
std::string Sanitized(const std::string& name) {
  std::string out;
  bool inside = false;
  for (const char c : name) {
    const bool bad = std::string_view("\"<>:/|\\?*[]").find(c) != std::string_view::npos;
    if (!bad) out += c;
    if (bad && !inside) out += "__";
    inside = bad;
  }
  constexpr size_t kLongest = 200;  // bytes; a file's name has more around it
  if (out.size() <= kLongest) return out;
  size_t end = kLongest - 20;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) end--;
  return fmt::format("{}__{}", out.substr(0, end), Sha256Of(name).Hex().substr(0, 16));
}

// The documents whose mean is the value of a metric.
std::vector<double> ValuesOf(const reports::JobRows& job, size_t metric) {
  std::vector<double> values;
  for (const reports::ItemRow& item : job.items) {
    const auto score = reports::Contributed(item.unscored, item.values[metric]);
    if (score.has_value()) values.push_back(scoring::Rational(*score).ToDouble());
  }
  return values;
}

// sd / sqrt(n) with Bessel's correction, as that tool's mean_stderr; "N/A" where it says so.
Json StandardError(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (values.size() < 2) return "N/A";
  const auto n = static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return std::sqrt(squares / (n - 1) / n);
}

int Shots(const SweepEntry& entry) {
  const auto shots = entry.benchmark.options.find("fewshot");
  return shots == entry.benchmark.options.end() ? 0 : std::atoi(shots->second.c_str());
}

Json GenerationJson(const SamplingParams& sampling) {
  Json json = {{"do_sample", sampling.temperature > 0}, {"temperature", sampling.temperature}};
  if (sampling.temperature > 0) {
    json["top_p"] = sampling.top_p;
    json["top_k"] = sampling.top_k;
  }
  json["max_gen_toks"] = sampling.max_new_tokens;
  return json;
}

// The task as that tool describes it, as far as it has words for what was run.
Json ConfigJson(const JobSpec& job, const std::string& task) {
  const SweepEntry& entry = job.entry;
  Json config = {{"task", task},
                 {"output_type", entry.sampling.draws() ? "generate_until" : "multiple_choice"},
                 {"num_fewshot", Shots(entry)},
                 {"repeats", entry.sampling.samples},
                 {"metric_list", Json::array()}};
  if (entry.sampling.draws()) config["generation_kwargs"] = GenerationJson(entry.sampling);
  config["metadata"] = {{"version", job.benchmark_version}};
  config[reports::kIhaEval] = {{"entry", reports::Describe(entry)},
                               {"benchmark", entry.benchmark.name},
                               {"planned", job.items},
                               {"metrics", Json::object()}};
  return config;
}

void AddResults(const reports::JobRows& job, const std::string& task, Json& file) {
  const SweepEntry& entry = job.spec.entry;
  Json& results = file["results"][task];
  results = {{"name", task}, {"alias", task}, {"sample_len", 0}};
  Json& config = file["configs"][task] = ConfigJson(job.spec, task);
  file["higher_is_better"][task] = Json::object();
  const std::vector<reports::Cell> cells = reports::CellsOf(job);
  size_t most = 0;  // that tool's sample_len: of all metrics
  for (size_t i = 0; i < cells.size(); i++) {
    if (!cells[i].value.has_value()) continue;
    const WrittenName name = NameThere(entry.benchmark.name, cells[i].metric);
    const std::string key = fmt::format("{},{}", name.metric, name.filter);
    const std::vector<double> values = ValuesOf(job, i);
    most = std::max(most, values.size());
    results[key] = cells[i].value->ToDouble();
    results[fmt::format("{}_stderr,{}", name.metric, name.filter)] = StandardError(values);
    file["higher_is_better"][task][name.metric] = true;
    config["metric_list"].push_back({{"metric", name.metric}, {"aggregation", "mean"}, {"higher_is_better", true}});
    config[reports::kIhaEval]["metrics"][key] = {
        {"metric", cells[i].metric}, {"value", cells[i].value->ToString()}, {"items", values.size()}};
  }
  results["sample_len"] = most;
  file["group_subtasks"][task] = Json::array();
  file["versions"][task] = job.spec.benchmark_version;
  file["n-shot"][task] = Shots(entry);
  file["n-samples"][task] = {{"original", job.spec.items}, {"effective", most}};
  file["task_hashes"][task] = job.spec.prompt_digest.Hex();
}

std::string ResultsJson(const reports::Snapshot& snapshot, size_t model, const std::vector<std::string>& tasks) {
  const size_t entries = snapshot.spec.entries.size();
  const reports::JobRows& first = snapshot.jobs[model * entries];
  Json file;
  for (const char* part :
       {"results", "group_subtasks", "configs", "versions", "n-shot", "higher_is_better", "n-samples"}) {
    file[part] = Json::object();
  }
  for (size_t e = 0; e < entries; e++) AddResults(snapshot.jobs[model * entries + e], tasks[e], file);
  const std::string& name = snapshot.spec.models[model].name;
  file["config"] = {{"model", "iha-eval"},
                    {"model_args", fmt::format("pretrained={}", name)},
                    {"weights_digest", first.weights.empty() ? "" : first.weights.Hex()},
                    {"numerics_id", snapshot.spec.numerics.Id()}};
  file["model_source"] = "iha-eval";
  file["model_name"] = name;
  file["model_name_sanitized"] = Sanitized(name);
  file["iha_eval_version"] = snapshot.iha_eval_version;
  file["sweep"] = snapshot.sweep.Hex();
  return file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The prompts of one entry; null: they are not asked for, or follow from the checkpoint's tokenizer.
using OpenEntry = std::unique_ptr<const benchmarks::Benchmark>;

absl::StatusOr<std::vector<OpenEntry>> OpenEntries(const reports::Snapshot& snapshot, const std::string& data_root) {
  std::vector<OpenEntry> open;
  for (size_t e = 0; e < snapshot.spec.entries.size(); e++) {
    const JobSpec& job = snapshot.jobs[e].spec;
    IHA_ASSIGN_OR_RETURN(OpenEntry benchmark, benchmarks::OpenBenchmark(job.entry.benchmark, data_root));
    if (benchmarks::PromptDigest(*benchmark, job.items) != job.prompt_digest) {
      return FailedPrecondition(
          "prompts of {}: this version and data give others than the stored sweep's; use those of the run, or "
          "--no-prompts",
          job.entry.benchmark.name);
    }
    if (benchmark->info().item_tokens > 0) benchmark.reset();
    open.push_back(std::move(benchmark));
  }
  return open;
}

Json PromptJson(const benchmarks::Prompt& prompt) {
  if (prompt.messages.empty()) return prompt.text;
  Json messages = Json::array();
  for (const benchmarks::Message& m : prompt.messages) {
    messages.push_back({{"role", m.role}, {"content", m.content}});
  }
  return messages.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A line of samples_*.jsonl without its grade.
Json ItemJson(const coordinator::SampleRow& row, const benchmarks::Benchmark* benchmark) {
  Json line = {{"doc_id", row.item.index}, {"doc", {{"id", row.item.item_id}}}};
  line["doc_hash"] = Sha256Of(line["doc"].dump(-1, ' ', false, Json::error_handler_t::replace)).Hex();
  line["target"] = nullptr;
  line["arguments"] = Json::object();
  if (benchmark != nullptr) {
    const benchmarks::Prompt prompt = benchmark->Render(row.item.index);
    const Json text = PromptJson(prompt);
    const std::string gold = benchmark->Gold(row.item.index);
    line["target"] = gold;
    Json generation = {{"until", prompt.stops}};
    generation.update(GenerationJson(row.job.spec.entry.sampling));
    line["arguments"]["gen_args_0"] = {{"arg_0", text}, {"arg_1", std::move(generation)}};
    line["prompt_hash"] = Sha256Of(text.get<std::string>()).Hex();
    line["target_hash"] = Sha256Of(gold).Hex();
  }
  Json texts = Json::array();
  for (const Generation& generation : row.generations) texts.push_back(generation.text);
  line["resps"] = Json::array({std::move(texts)});
  return line;
}

Json ExtractedOf(const ItemResult& item, const ItemValue& value) {
  Json out = Json::array();
  for (const SampleResult& sample : item.samples) {
    for (const SampleGrade& grade : sample.grades) {
      if (grade.metric == value.metric) out.push_back(grade.extracted);
    }
  }
  if (out.empty()) out.push_back(value.winner);
  return out;
}

void AppendLines(const coordinator::SampleRow& row, const benchmarks::Benchmark* benchmark, std::string& out) {
  const Json base = ItemJson(row, benchmark);
  const SweepEntry& entry = row.job.spec.entry;
  for (const ItemValue& value : row.item.values) {
    const std::optional<Score> score = reports::Contributed(row.item.unscored, value);
    if (!score.has_value()) continue;
    const WrittenName name = NameThere(entry.benchmark.name, value.metric);
    Json line = base;
    line["filtered_resps"] = ExtractedOf(row.item, value);
    line["filter"] = name.filter;
    line["metrics"] = Json::array({name.metric});
    line[name.metric] = scoring::Rational(*score).ToDouble();
    line[reports::kIhaEval] = {{"entry", reports::Describe(entry)},
                               {"benchmark", entry.benchmark.name},
                               {"metric", value.metric},
                               {"score", scoring::Rational(*score).ToString()},
                               {"planned", row.job.spec.items}};
    const Unscored reason = row.item.unscored == Unscored::kScored ? value.unscored : row.item.unscored;
    if (reason != Unscored::kScored) line[reports::kIhaEval]["unscored"] = NameOf(reason);
    out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
}

struct Target {
  std::string folder;
  std::string results;
};

absl::StatusOr<std::vector<Target>> Targets(const reports::Snapshot& snapshot, const std::string& out,
                                            const std::vector<std::string>& tasks) {
  std::vector<Target> targets;
  std::set<std::string> taken;
  for (size_t m = 0; m < snapshot.spec.models.size(); m++) {
    const std::string folder = fmt::format("{}/{}", out, Sanitized(snapshot.spec.models[m].name));
    if (!taken.insert(folder).second) {
      return InvalidArgument("{}: two models would be written there; export them from sweeps of their own", folder);
    }
    targets.push_back({folder, ResultsJson(snapshot, m, tasks)});
  }
  return targets;
}

absl::Status Export(const Flags& flags, const std::string& data_root) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, coordinator::FindSweepByPrefix(*store, flags.sweep));
  IHA_ASSIGN_OR_RETURN(const reports::Snapshot snapshot, coordinator::ReadSnapshot(*store, sweep, kVersion));
  IHA_RETURN_IF_ERROR(reports::CheckUnstopped(snapshot.spec.item_order, "the sweep", "export one without"));
  const std::vector<std::string> tasks = TaskNames(snapshot.spec);
  std::vector<OpenEntry> open(tasks.size());
  if (flags.prompts) {
    IHA_ASSIGN_OR_RETURN(open, OpenEntries(snapshot, data_root));
  }
  IHA_ASSIGN_OR_RETURN(const std::vector<Target> targets, Targets(snapshot, flags.out, tasks));
  std::vector<std::string> samples(snapshot.jobs.size());
  IHA_RETURN_IF_ERROR(coordinator::ReadSamples(*store, sweep, [&](const coordinator::SampleRow& row) {
    const auto entry = static_cast<size_t>(row.job.spec.entry_index);
    const size_t job = static_cast<size_t>(row.job.spec.model_index) * tasks.size() + entry;
    AppendLines(row, open[entry].get(), samples[job]);
    return absl::OkStatus();
  }));
  const std::string id = sweep.Hex().substr(0, 16);
  for (size_t m = 0; m < targets.size(); m++) {
    IHA_RETURN_IF_ERROR(MakeFolders(targets[m].folder));
    for (size_t e = 0; e < tasks.size(); e++) {
      const std::string path = fmt::format("{}/samples_{}_{}.jsonl", targets[m].folder, Sanitized(tasks[e]), id);
      IHA_RETURN_IF_ERROR(WriteFileAtomic(path, samples[m * tasks.size() + e]));
    }
    IHA_RETURN_IF_ERROR(WriteFileAtomic(fmt::format("{}/results_{}.json", targets[m].folder, id), targets[m].results));
    std::cerr << "wrote " << TerminalSafe(targets[m].folder) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddExportLmEval(CLI::App& group, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* sub = group.add_subcommand(
      "lm-eval",
      "A folder for each model with results_*.json and samples_*.jsonl as lm-evaluation-harness writes them");
  sub->add_option("--db", flags->db, "database file")->required();
  sub->add_option("--sweep", flags->sweep, "sweep id, or a prefix that is unique")->required();
  sub->add_option("--out", flags->out, "folder to write into")->required();
  sub->add_option("--data-root", command.data_root, "benchmark data, for the prompts");
  sub->add_flag("!--no-prompts", flags->prompts, "leave prompts and reference answers out: needs no data");
  sub->footer("Example:\n  iha-eval export lm-eval --db sweeps.db --sweep 3f2a --out lm-eval-results");
  sub->callback([flags, &command] {
    const absl::Status status = Export(*flags, command.data_root);
    command.exit_code = status.ok() ? kExitOk : Fail("export lm-eval", status);
  });
}

}  // namespace iha::cli
