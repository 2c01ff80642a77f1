// two_models.h: a small snapshot for tests of reports.
#pragma once

#include <string>
#include <vector>

#include "common/digest.h"
#include "reports/snapshot.h"

namespace iha::reports {

inline Digest DigestOf(const std::string& text) { return Sha256Of(text); }

// Two models x one entry with two metrics over four items; values[model][item] is the first metric's score.
inline Snapshot TwoModels(const std::vector<std::vector<int>>& values) {
  Snapshot snapshot;
  snapshot.iha_eval_version = "0.0.0";
  SweepEntry entry{.benchmark = {.name = "gsm8k", .options = {{"fewshot", "5"}}},
                   .sampling = {.samples = 1},
                   .limit = 4,
                   .metrics = {"gsm8k.strict_match", "maj@1?metric=gsm8k.robust"}};
  snapshot.spec.entries = {entry};
  for (size_t m = 0; m < values.size(); m++) {
    snapshot.spec.models.push_back({.name = "model|" + std::to_string(m), .weights_digest = ""});
    JobRows& job = snapshot.jobs.emplace_back();
    job.spec.entry = entry;
    job.spec.items = 4;
    job.weights = DigestOf("w" + std::to_string(m));
    job.tokenizer = DigestOf("t");
    for (size_t i = 0; i < values[m].size(); i++) {
      ItemRow row{.index = static_cast<int64_t>(i),
                  .item_id = std::to_string(i),
                  .unscored = Unscored::kScored,
                  .values = {},
                  .samples = 1,
                  .truncated = 0,
                  .empty = 0,
                  .hash = DigestOf(std::to_string(i))};
      for (const std::string& metric : entry.metrics) {
        row.values.push_back({.metric = metric,
                              .unscored = Unscored::kScored,
                              .score = {values[m][i], 1},
                              .winner = "",
                              .tie = {0, 1},
                              .invalid = 0});
      }
      job.items.push_back(row);
    }
  }
  return snapshot;
}

}  // namespace iha::reports
