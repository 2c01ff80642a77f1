// rows_cache.h: official rows of one digest in a folder: DIGEST.jsonl (the rows) and DIGEST.json (their sizes, their
// digests, where the task ends).
//
// Both files are replaced as one step each, rows first. Whatever does not fit together or is damaged counts as absent:
// the rows are made again. Two processes that make the same rows at once write equal bytes; of two that make different
// numbers of them, either file's rows begin with the other's. Blocking; thread: any. Errors: those of common/file.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/ruler/generate.h"
#include "common/digest.h"

namespace iha::benchmarks::ruler {

class RowsCache {
 public:
  // `folder` is made by Store if need be.
  RowsCache(std::string folder, const Digest& digest);

  // Rows first .. first + count - 1, up to the task's end. nullopt: the files do not have them, or are damaged.
  absl::StatusOr<std::optional<RulerRows>> Read(int64_t first, int64_t count) const;
  // All rows from 0 on, one line each, and the end if they stop there.
  absl::Status Store(const std::vector<std::string>& lines, const std::optional<RowsEnd>& end) const;

 private:
  struct Index {
    std::vector<int64_t> sizes;  // of lines, without their ends
    std::vector<std::string> digests;
    std::optional<RowsEnd> end;
  };
  std::optional<Index> ReadIndex() const;

  const std::string folder_;
  const std::string stem_;  // path without extension
};

// A row from its line; nullopt: not a line of ToJsonLine.
std::optional<RulerRow> ParseRow(std::string_view line, int64_t number);

}  // namespace iha::benchmarks::ruler
