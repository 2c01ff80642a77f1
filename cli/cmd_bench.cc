#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "benchmarks/benchmark.h"
#include "benchmarks/manifest.h"
#include "cli/command.h"
#include "common/errors.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;
using benchmarks::BenchmarkInfo;

struct Flags {
  std::string name;
  std::string from;
  bool json = false;
};

Json InfoJson(const BenchmarkInfo& info) {
  Json json = {{"name", info.name},
               {"version", info.version},
               {"grader_version", info.grader_version},
               {"summary", info.summary},
               {"protocol", info.protocol}};
  json["options"] = Json::array();
  for (const auto& option : info.options) {
    json["options"].push_back(
        {{"name", option.name}, {"default", option.default_value}, {"description", option.description}});
  }
  json["metrics"] = Json::array();
  for (const auto& metric : info.metrics) {
    json["metrics"].push_back({{"name", metric.name}, {"description", metric.description}});
  }
  json["default_metrics"] = info.default_metrics;
  json["default_max_new_tokens"] = info.default_sampling.max_new_tokens;
  json["data_files"] = Json::array();
  for (const std::string& path : info.data_files) {
    const benchmarks::DataFile* file = benchmarks::FindDataFile(path);
    Json entry = {{"path", path}};
    if (file != nullptr) {
      entry["bytes"] = file->bytes;
      entry["sha256"] = file->sha256;
      entry["source"] = file->source;
    }
    json["data_files"].push_back(std::move(entry));
  }
  return json;
}

// Two columns, indented.
void PrintColumns(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t width = 0;
  for (const auto& [name, text] : rows) width = std::max(width, name.size());
  for (const auto& [name, text] : rows) std::cout << fmt::format("  {:<{}}  {}\n", name, width, text);
}

void PrintInfo(const BenchmarkInfo& info) {
  std::cout << info.name << " (" << info.version << ", grader " << info.grader_version << ")\n  " << info.summary
            << "\n\nprotocol\n  " << info.protocol << "\n\noptions\n";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& option : info.options) {
    // A blank as it is typed in a spec.
    const std::string value = option.default_value == " " ? "%20" : option.default_value;
    rows.emplace_back(fmt::format("?{}={}", option.name, value), option.description);
  }
  PrintColumns(rows);
  const SamplingParams& s = info.default_sampling;
  std::cout << "\nsampling\n  "
            << (info.likelihood ? "none: nothing is drawn"
                                : fmt::format("samples={} temperature={} top_p={} top_k={} seed={} max_new_tokens={}",
                                              s.samples, s.temperature, s.top_p, s.top_k, s.seed, s.max_new_tokens))
            << "\n\nmetrics\n";
  rows.clear();
  for (const auto& metric : info.metrics) rows.emplace_back(metric.name, metric.description);
  PrintColumns(rows);
  std::cout << fmt::format("  by default: {}{}\n", fmt::join(info.default_metrics, ", "),
                           info.likelihood  ? ""
                           : info.runs_code ? ": pass@1, and pass@k for k > 1 samples"
                                            : "; for k > 1 samples also maj@k of the first");
  std::cout << "\ndata\n";
  if (info.data_files.empty()) {
    const bool from_file = info.item_tokens == 0 && info.name.find(':') != std::string::npos;
    std::cout << (info.item_tokens > 0 ? "  none\n" : from_file ? "  FILE\n" : "  bundled\n");
  }
  for (const std::string& path : info.data_files) {
    const benchmarks::DataFile* file = benchmarks::FindDataFile(path);
    std::cout << "  " << path;
    if (file != nullptr) std::cout << "  " << file->bytes << " bytes  sha256 " << file->sha256;
    std::cout << "\n";
  }
}

int List(const Flags& flags) {
  const std::vector<BenchmarkInfo> all = benchmarks::ListBenchmarks();
  size_t width = 0;
  for (const BenchmarkInfo& info : all) width = std::max(width, info.name.size());
  for (const BenchmarkInfo& info : all) {
    if (flags.json) {
      std::cout << InfoJson(info).dump() << "\n";
    } else {
      std::cout << fmt::format("{:<{}}  {}\n", info.name, width, info.summary);
    }
  }
  return kExitOk;
}

int Show(const Flags& flags) {
  if (const size_t mark = flags.name.find('?'); mark != std::string::npos) {
    return FailUsage("bench show",
                     InvalidArgument("\"{}\": shows a benchmark with all its options; give its name alone, {}",
                                     flags.name, flags.name.substr(0, mark)));
  }
  const absl::StatusOr<BenchmarkInfo> info = benchmarks::FindBenchmark(flags.name);
  if (!info.ok()) return FailUsage("bench show", info.status());
  if (flags.json) {
    std::cout << InfoJson(*info).dump(2) << "\n";
  } else {
    PrintInfo(*info);
  }
  return kExitOk;
}

int ImportFiles(const Flags& flags, const std::string& data_root) {
  const auto files = benchmarks::ImportData(flags.from, data_root);
  if (!files.ok()) return Fail("data import", files.status());
  for (const benchmarks::ImportedFile& file : *files) {
    if (flags.json) {
      std::cout << Json{{"path", file.path}, {"bytes", file.bytes}, {"already_present", file.already_present}}.dump()
                << "\n";
    } else {
      std::cout << (file.already_present ? "present  " : "imported ") << data_root << "/" << file.path << " ("
                << file.bytes << " bytes)\n";
    }
  }
  return kExitOk;
}

}  // namespace

void AddBench(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* bench = app.add_subcommand("bench", "Benchmarks: protocols, options, metrics, data");
  bench->require_subcommand(1);
  bench->footer("Example:\n  iha-eval bench show gsm8k");
  CLI::App* list = bench->add_subcommand("list", "All benchmarks, one a line");
  list->add_flag("--json", flags->json, "JSON Lines");
  list->footer("Example:\n  iha-eval bench list");
  list->callback([flags, &command] { command.exit_code = List(*flags); });
  CLI::App* show = bench->add_subcommand("show", "One benchmark: protocol, defaults, metrics, digests");
  show->add_option("name", flags->name, "benchmark")->required();
  show->add_flag("--json", flags->json, "one JSON object");
  show->footer("Example:\n  iha-eval bench show gsm8k");
  show->callback([flags, &command] { command.exit_code = Show(*flags); });

  CLI::App* data = app.add_subcommand("data", "Benchmark data files");
  data->require_subcommand(1);
  data->footer("Example:\n  iha-eval data import --from grade-school-math/grade_school_math/data");
  CLI::App* import = data->add_subcommand("import", "Copy published originals into the data root, digests checked");
  import->add_option("--from", flags->from, "file, or folder in the publisher's layout")->required();
  import->add_option("--data-root", command.data_root, "where to; default IHA_EVAL_DATA or ~/.local/share/iha-eval");
  import->add_flag("--json", flags->json, "JSON Lines");
  import->footer("Example:\n  iha-eval data import --from grade-school-math/grade_school_math/data");
  import->callback([flags, &command] { command.exit_code = ImportFiles(*flags, command.data_root);
});
}  // namespace iha::cli

}  // namespace iha::cli
