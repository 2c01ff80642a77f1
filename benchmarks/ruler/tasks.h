// tasks.h: the 13 tasks of RULER as one table: names, parameters, budgets, metrics. Pure; thread: any.
//
// The parameters are the same at every length. Source: NVIDIA/RULER c3f5e3b, scripts/synthetic.yaml and
// scripts/data/synthetic/constants.py.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace iha::benchmarks::ruler {

enum class Family { kNiah, kVt, kCwe, kFwe, kQa };
// What the needles of a niah task lie in: sentences of essays, lines of one fixed text, lines of other needles.
enum class HaystackKind { kEssay, kNoise, kNeedle };
// How essays are cut into sentences: NLTK's Punkt, or behind ". ", "! " and "? ".
enum class Sentences { kPunkt, kSimple };
enum class QaSource { kSquad, kHotpot };
// string_match_all: the mean over references of "is part of the prediction"; string_match_part: the best of them.
enum class Match { kAll, kPart };

struct NiahParameters {
  HaystackKind haystack = HaystackKind::kEssay;
  bool uuid_keys = false;    // else adjective-noun
  bool uuid_values = false;  // else numbers of seven digits
  int keys = 1;              // raised to at least `queries` already
  int values = 1;            // of each key
  int queries = 1;
};

struct Task {
  std::string_view name;
  Family family = Family::kNiah;
  int64_t tokens_to_generate = 0;
  Match match = Match::kAll;
  NiahParameters niah = {};        // kNiah only
  QaSource qa = QaSource::kSquad;  // kQa only
  bool needs_essays() const { return family == Family::kNiah && niah.haystack == HaystackKind::kEssay; }
};

// All 13, in the order of synthetic.yaml, which is also the order of tables.
std::span<const Task> Tasks();
// nullptr: no such task.
const Task* FindTask(std::string_view name);
// InvalidArgument: no such task (names the nearest, lists all).
absl::StatusOr<const Task*> RequireTask(const std::string& name);

}  // namespace iha::benchmarks::ruler
