// snapshot.h: one sweep as plain rows, read in one transaction: the only input of tables, figures and gates.
//
// Holds nothing that differs between equal runs (no time, host, worker). Immutable value; thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/eval_types.h"

namespace iha::reports {

// One item's values; `values` follows JobRows::spec.entry.metrics. Items that are not committed are absent.
struct ItemRow {
  int64_t index = 0;
  std::string item_id;
  Unscored unscored = Unscored::kScored;
  std::vector<ItemValue> values;
  int32_t samples = 0;
  int32_t truncated = 0;      // samples that ended by max_new_tokens
  int32_t prompt_tokens = 0;  // as run, of its longest prompt
  int32_t empty = 0;  // samples whose text (behind its thinking, where that is stripped) is empty or white space
  Digest hash;        // ItemResult::Hash()
  std::vector<int32_t> suspects = {};  // samples whose program passed by the official rule, unconfirmed; increasing
};

struct JobRows {
  JobSpec spec;
  JobId id;
  bool cancelled = false;
  bool sequential = false;  // its sweep has an item_order: a mean of a part, or of settled votes, is no result
  Digest weights;           // bound digests; empty until a worker offered the model
  Digest tokenizer;
  int64_t context_tokens = 0;  // that the model was made for; 0 until a worker offered it
  std::vector<ItemRow> items;  // increasing index
};

struct Snapshot {
  SweepId sweep;
  SweepSpec spec;
  std::vector<JobRows> jobs;  // model-major: jobs[m * entries + e]
  std::string iha_eval_version;
};

}  // namespace iha::reports
