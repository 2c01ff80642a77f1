// qa_data.h: the documents and questions of qa_1 (SQuAD) and qa_2 (HotpotQA), as RULER reads them.
//
// Immutable; thread: any. Errors of Load: those of ReadDataFile; InvalidArgument: a file of another shape (names the
// field). Source: read_squad and read_hotpotqa of scripts/data/synthetic/qa.py at c3f5e3b.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/ruler/tasks.h"

namespace iha::benchmarks::ruler {

struct QaQuestion {
  std::string query;
  std::vector<std::string> outputs;  // SQuAD: every listed answer, repeated ones too
  std::vector<int32_t> own;          // documents that it is about
  std::vector<int32_t> more;         // SQuAD: the other documents of its article
};

struct QaData {
  static absl::StatusOr<QaData> Load(const std::string& data_root, QaSource source);

  std::vector<std::string> documents;  // sorted, distinct
  std::vector<QaQuestion> questions;   // in file order
};

}  // namespace iha::benchmarks::ruler
