#include "cli/run/outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/choices_json.h"
#include "cli/run/shown_samples.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "common/version.h"
#include "coordinator/store/snapshot_reader.h"
#include "reports/render.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json ScoreJson(const Score& score) {
  if (score.den == 1) return score.num;
  return static_cast<double>(score.num) / static_cast<double>(score.den);
}

Json GradesJson(const std::vector<SampleGrade>& grades) {
  Json json = Json::object();
  for (const SampleGrade& grade : grades) {
    Json& out = json[grade.metric];
    out["extracted"] = grade.valid ? Json(grade.extracted) : Json(nullptr);
    if (grade.unscored == Unscored::kScored) {
      out["score"] = ScoreJson(grade.score);
    } else {
      out["unscored"] = NameOf(grade.unscored);
    }
    out["group"] = grade.group >= 0 ? Json(grade.group) : Json(nullptr);
    out["reason"] = grade.reason;
  }
  return json;
}

void AppendSamples(const coordinator::SampleRow& row, std::string& out) {
  Json base;
  base["model"] = row.job.spec.model.name;
  base["benchmark"] = row.job.spec.entry.benchmark.name;
  base["entry"] = row.job.spec.entry_index;
  base["index"] = row.item.index;
  base["item_id"] = row.item.item_id;
  if (row.item.unscored != Unscored::kScored) {
    base["unscored"] = NameOf(row.item.unscored);
    out += Line(base);
    return;
  }
  const bool drawn = row.job.spec.entry.sampling.draws();
  for (size_t s = 0; s < row.item.samples.size(); s++) {
    const Generation& generation = row.generations[s];
    Json json = base;
    json["sample"] = s;
    json["generation"] = generation.key.Hex();
    const auto choices = drawn ? std::nullopt : ChoicesJson(generation.text, {});
    if (choices.has_value()) {
      json["choices"] = *choices;
    } else {
      json["text"] = generation.text;
      json["finish_reason"] = NameOf(generation.finish);
    }
    json["prompt_tokens"] = generation.prompt_tokens;
    json["tokens"] = generation.tokens.size();
    json["grades"] = GradesJson(row.item.samples[s].grades);
    out += Line(json);
  }
}

std::string RunJson(const RunRecord& record, const reports::Table& table) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  Json json;
  json["schema"] = "iha-eval/run/1";
  json["sweep"] = table.provenance.sweep.Hex();
  json["iha_eval_version"] = kVersion;
  json["started"] = absl::FormatTime(absl::RFC3339_sec, record.started, absl::UTCTimeZone());
  json["ended"] = absl::FormatTime(absl::RFC3339_sec, record.ended, absl::UTCTimeZone());
  json["seconds"] = absl::ToDoubleSeconds(record.ended - record.started);
  json["host"] = host;
  json["workers"] = record.workers;
  json["worker_restarts"] = record.worker_restarts;
  json["threads_per_worker"] = record.threads;
  json["engine"] = record.engine.has_value() ? ToJson(*record.engine) : Json(nullptr);
  json["db"] = record.db;
  json["command"] = record.command;
  json["suspects"] = reports::SuspectsJson(table.suspects);
  json["telemetry"] = ToJson(record.telemetry);
  json["machine_peak"] = record.machine_peak.has_value() ? ToJson(*record.machine_peak) : Json(nullptr);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::StatusOr<std::string> SamplesJsonl(coordinator::Store& store, const SweepId& sweep) {
  std::string out;
  IHA_RETURN_IF_ERROR(coordinator::ReadSamples(store, sweep, [&](const coordinator::SampleRow& row) {
    AppendSamples(row, out);
    return absl::OkStatus();
  }));
  return out;
}

absl::StatusOr<reports::Table> WriteOutputs(coordinator::Store& store, const SweepId& sweep,
                                            const reports::TableOptions& options, const std::string& folder,
                                            const RunRecord& record) {
  IHA_RETURN_IF_ERROR(MakeFolders(folder));
  IHA_ASSIGN_OR_RETURN(const reports::Snapshot snapshot, coordinator::ReadSnapshot(store, sweep, kVersion));
  IHA_ASSIGN_OR_RETURN(reports::Table table, reports::BuildTable(snapshot, options));
  IHA_ASSIGN_OR_RETURN(const std::string samples, SamplesJsonl(store, sweep));
  IHA_ASSIGN_OR_RETURN(const auto shown, ShownSamples(store, sweep, kShownSamples));
  const std::pair<const char*, std::string> files[] = {{"table.md", reports::RenderMarkdown(table)},
                                                       {"table.csv", reports::RenderCsv(table)},
                                                       {"table.json", reports::RenderJson(table)},
                                                       {"table.html", reports::RenderHtml(table, shown)},
                                                       {"samples.jsonl", samples},
                                                       {"run.json", RunJson(record, table)}};
  for (const auto& [name, text] : files) {
    IHA_RETURN_IF_ERROR(WriteFileAtomic(fmt::format("{}/{}", folder, name), text));
  }
  return table;
}

}  // namespace iha::cli
