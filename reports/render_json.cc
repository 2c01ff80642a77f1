#include <nlohmann/json.hpp>

#include "reports/render.h"
#include "reports/render_ruler.h"

namespace iha::reports {
namespace {

// Insertion order is kept, so that the file reads in a sensible order and its bytes depend on the table only.
using Json = nlohmann::ordered_json;

Json SamplingJson(const SamplingParams& s) {
  return {{"temperature", s.temperature}, {"top_p", s.top_p}, {"top_k", s.top_k},
          {"samples", s.samples},         {"seed", s.seed},   {"max_new_tokens", s.max_new_tokens}};
}

Json CellJson(const TableCell& cell, const Column& column) {
  const Cell& c = cell.cell;
  Json json;
  json["metric"] = c.metric;
  json["scored"] = c.scored;
  json["planned"] = c.planned;
  json["complete"] = c.complete();
  json["unscored"] = Json::object();
  for (const auto& [reason, count] : c.unscored) json["unscored"][NameOf(reason)] = count;
  if (c.value.has_value()) {
    json["value"] = c.value->ToDouble();
    json["value_exact"] = c.value->ToString();
    json["percent"] = Percent(*c.value, column.decimals);
    if (c.interval.has_value()) {
      json["interval"] = {{"low", c.interval->low},
                          {"high", c.interval->high},
                          {"level", 0.95},
                          {"method", NameOf(c.interval->method)}};
    }
  } else {
    json["value"] = nullptr;
  }
  if (cell.delta.has_value()) {
    json["delta"] = cell.delta->ToDouble();
    json["delta_points"] = SignedPercent(*cell.delta, column.decimals);
  }
  if (cell.rank.has_value()) json["rank"] = cell.rank->ToDouble();
  json["best"] = cell.best;
  json["samples"] = c.samples;
  json["invalid"] = c.invalid;
  json["truncated"] = c.truncated;
  json["empty"] = c.empty;
  json["over_context"] = c.over_context;
  json["tie_rate"] = c.tie_rate.ToDouble();
  return json;
}

Json EntryJson(const JobSpec& job) {
  Json options = Json::object();
  for (const auto& [key, value] : job.entry.benchmark.options) options[key] = value;
  Json json = {{"benchmark", job.entry.benchmark.name},
               {"options", options},
               {"benchmark_version", job.benchmark_version},
               {"grader_version", job.grader_version},
               {"items", job.items},
               {"sampling", SamplingJson(job.entry.sampling)},
               {"metrics", job.entry.metrics},
               {"data_digest", job.data_digest.Hex()},
               {"prompt_digest", job.prompt_digest.Hex()}};
  if (job.entry.stop_settled_votes) json["stop_settled_votes"] = true;
  return json;
}

// [a][b]: null where a row has no rank.
Json AboveJson(const Table& table) {
  Json above = Json::array();
  for (size_t a = 0; a < table.rows.size(); a++) {
    Json& shares = above.emplace_back(Json::array());
    for (size_t b = 0; b < table.rows.size(); b++) {
      const bool ranked = table.rows[a].average_rank.has_value() && table.rows[b].average_rank.has_value();
      shares.push_back(ranked ? Json(table.rank_spread->above[a][b]) : Json(nullptr));
    }
  }
  return above;
}

std::string BoundDigest(const Digest& digest) { return digest.empty() ? "" : digest.Hex(); }

}  // namespace

Json SuspectsJson(const std::vector<Suspect>& suspects) {
  Json json = Json::array();
  for (const Suspect& suspect : suspects) {
    json.push_back({{"model", suspect.model},
                    {"benchmark", suspect.benchmark},
                    {"entry", suspect.entry},
                    {"index", suspect.index},
                    {"item_id", suspect.item_id},
                    {"sample", suspect.sample}});
  }
  return json;
}

std::string RenderJson(const Table& table) {
  const Snapshot& p = table.provenance;
  Json json;
  json["schema"] = "iha-eval/table/1";
  json["sweep"] = p.jobs.empty() ? Json(nullptr) : Json(p.sweep.Hex());
  json["layout"] = table.layout;
  json["baseline"] = table.baseline.empty() ? Json(nullptr) : Json(table.baseline);
  json["columns"] = Json::array();
  for (const Column& column : table.columns) {
    json["columns"].push_back({{"header", column.header},
                               {"entry", column.entry == kNoEntry ? Json(nullptr) : Json(column.entry)},
                               {"metric", column.metric},
                               {"decimals", column.decimals}});
  }
  json["rows"] = Json::array();
  for (const TableRow& row : table.rows) {
    Json out;
    out["model"] = row.model;
    if (!row.imported.empty()) out["imported"] = row.imported;
    out["weights_digest"] = BoundDigest(row.weights);
    out["tokenizer_digest"] = BoundDigest(row.tokenizer);
    out["cells"] = Json::array();
    for (size_t c = 0; c < table.columns.size(); c++) out["cells"].push_back(CellJson(row.cells[c], table.columns[c]));
    if (row.average_rank.has_value()) {
      out["average_rank"] = row.average_rank->ToDouble();
      out["average_rank_printed"] = row.average_rank->ToFixed(1);
      const size_t m = json["rows"].size();
      if (table.rank_spread.has_value()) {
        out["average_rank_interval"] = {{"low", table.rank_spread->low[m]}, {"high", table.rank_spread->high[m]}};
      }
    }
    json["rows"].push_back(std::move(out));
  }
  if (table.about_the_list) json["interval_target"] = "benchmark";
  if (table.rank_spread.has_value()) {
    const RankSpread& spread = *table.rank_spread;
    json["rank_spread"] = {{"level", spread.level},
                           {"draws", spread.draws},
                           {"seed", spread.seed},
                           {"same_order", spread.same_order},
                           {"above", AboveJson(table)}};
  }
  if (!table.ruler.empty()) json["ruler"] = RulerJson(table);
  json["notes"] = table.notes;
  if (!table.suspects.empty()) json["suspects"] = SuspectsJson(table.suspects);
  Json provenance;
  provenance["iha_eval_version"] = p.iha_eval_version;
  provenance["numerics_id"] = p.jobs.empty() ? "" : p.spec.numerics.Id();
  provenance["run_tag"] = p.spec.run_tag;
  provenance["entries"] = Json::array();
  for (size_t e = 0; e < p.spec.entries.size(); e++) provenance["entries"].push_back(EntryJson(p.jobs[e].spec));
  json["provenance"] = std::move(provenance);
  // Replacement of invalid UTF-8 instead of an exception: names come from outside.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace iha::reports
