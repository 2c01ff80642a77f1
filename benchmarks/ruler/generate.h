// generate.h: rows of RULER, as NVIDIA's scripts make them (`official`) or each on its own (`seeded`).
//
// official: the bytes of NVIDIA/RULER c3f5e3b for the same seed, tokenizer, template and length. Row i depends on the
// rows before it (one random stream), so rows are made from 0 on, once, and kept in a file of `cache_dir`; a range is
// read from it, and a longer range made anew begins with the same rows. seeded: row i is a pure function of (seed,
// task, length, i), with unique keys and a tight fill; ranges are made alone, on `threads` threads.
//
// Always: tokens of input + answer_prefix, chat template included and counted with `tokenizer` without the special
// tokens that it adds, plus tokens_to_generate <= length. Every count is of tokens unless it says otherwise.
// Blocking (files, and seconds of work at long lengths). A Generator may be used from any thread, one call at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/ruler/tasks.h"
#include "benchmarks/ruler/templates.h"
#include "common/digest.h"
#include "model/tokenizer/tokenizer.h"

namespace iha::benchmarks::ruler {

class Texts;  // texts.h

enum class Mode { kOfficial, kSeeded };

// Changes when a row may change: part of RowsDigest.
inline constexpr int kGeneratorVersion = 1;

struct RulerOptions {
  std::string task;    // a name of tasks.h
  int64_t length = 0;  // tokens of prompt and generation together
  uint64_t seed = 42;  // official vt, niah, fwe, qa: below 2^32, as NumPy demands
  Mode mode = Mode::kOfficial;
  Sentences sentences = Sentences::kPunkt;
  ChatTexts chat = {};                                              // templates.h: MakeChatTexts
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer = nullptr;  // null: words between white space are the tokens
  std::string data_root;
  std::shared_ptr<Texts> texts = nullptr;  // of `data_root`, to be shared by several generators; null: its own
  // official: as many rows are made at least when the first is asked for, so that ranges of one file need no second
  // run.
  int64_t samples = 0;
  std::string cache_dir = "";  // where official rows are kept; "" = nowhere. Made if need be.
  int threads = 1;             // seeded only
};

struct RulerRow {
  int64_t number = 0;  // from 0: the row's identity
  int64_t index = 0;   // NVIDIA's field: of official niah rows a text offset, else `number`
  std::string input;
  std::vector<std::string> outputs;  // references
  int64_t length = 0;                // tokens of input + answer_prefix, plus tokens_to_generate
  int64_t length_w_model_temp = 0;
  std::string answer_prefix;           // follows `input`: behind the assistant's header, what the model goes on from
  int64_t token_position_answer = -1;  // niah only: tokens of `input` before the first reference

  bool operator==(const RulerRow&) const = default;
};

// One line without its end, as NVIDIA's scripts write it (ASCII, \uXXXX).
std::string ToJsonLine(const RulerRow& row);

// Why a task has no row `row` and none after it.
enum class EndKind { kGeneratorDeadEnd, kDataExhausted };
struct RowsEnd {
  EndKind kind = EndKind::kGeneratorDeadEnd;
  int64_t row = 0;
  std::string cause;  // one line: "1000 attempts with 9 documents gave no row: ..."

  bool operator==(const RowsEnd&) const = default;
};
// "generator_dead_end", "data_exhausted"
std::string_view EndName(EndKind kind);

struct RulerRows {
  std::vector<RulerRow> rows;   // the asked range, up to the end if that comes first
  std::optional<RowsEnd> end;   // set if it lies before the range's end; then rows from end->row on do not exist
  std::string provenance = "";  // "" or what a cell must say: "generated haystack (no essays)"
};

class Generator {
 public:
  // Checks the task's files. NotFound / DataLoss: a data file is missing or changed. InvalidArgument: an unknown task,
  // a seed that NumPy refuses, a length at which not even the template without a text fits (the minimum is named),
  // essays missing in official mode.
  static absl::StatusOr<std::unique_ptr<Generator>> Open(const RulerOptions& options);
  virtual ~Generator() = default;

  // Rows first .. first + count - 1. A task's own end is no error. Errors: those of files (cache_dir is not writable),
  // Internal.
  virtual absl::StatusOr<RulerRows> Rows(int64_t first, int64_t count) = 0;
  // The same from row 0, each row handed over as it is made and not kept: memory stays that of one row.
  virtual absl::StatusOr<std::optional<RowsEnd>> Each(int64_t count,
                                                      const std::function<absl::Status(const RulerRow&)>& take) = 0;
  // Identity of the rows, whatever their number: all options but cache_dir and threads, texts and tokenizer by digest.
  virtual Digest RowsDigest() const = 0;
  virtual const Task& task() const = 0;
  virtual const std::string& provenance() const = 0;
};

}  // namespace iha::benchmarks::ruler
