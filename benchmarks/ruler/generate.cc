#include "benchmarks/ruler/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <utility>

#include "benchmarks/manifest.h"
#include "benchmarks/python_random.h"
#include "benchmarks/ruler/data_files.h"
#include "benchmarks/ruler/rows_cache.h"
#include "benchmarks/ruler/task_rows.h"
#include "benchmarks/ruler/texts.h"
#include "common/canonical.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

absl::StatusOr<std::unique_ptr<RowStream>> OpenStream(const TaskContext& context, Texts& texts, Sentences sentences) {
  switch (context.task->family) {
    case Family::kNiah:
      return NiahStream(context, texts, sentences);
    case Family::kVt:
      return VtStream(context);
    case Family::kCwe:
      return CweStream(context, texts);
    case Family::kFwe:
      return FweStream(context);
    case Family::kQa:
      return QaStream(context, texts);
  }
  return Internal("RULER: task family {}", static_cast<int>(context.task->family));
}

Digest DigestOf(const RulerOptions& options, const Task& task, const std::string& provenance) {
  std::vector<std::string> files = DataFilesOf(task, options.sentences, /*essays=*/provenance.empty());
  if (task.family == Family::kCwe) files.emplace_back(kEnglishWords);
  CanonicalWriter writer("iha.ruler.rows", kGeneratorVersion);
  writer.String(options.task).Int(options.length).Uint(options.seed).Bool(options.mode == Mode::kSeeded);
  writer.Bool(options.sentences == Sentences::kSimple).String(options.chat.before).String(options.chat.after);
  writer.Bool(options.chat.own_special_tokens);
  writer.Bool(options.tokenizer != nullptr);
  if (options.tokenizer != nullptr) writer.Bytes(options.tokenizer->digest());
  writer.Bytes(DigestOfDataFiles(files)).String(provenance);
  return writer.Hash();
}

absl::StatusOr<std::unique_ptr<SeededRows>> OpenSeeded(const TaskContext& context, Texts& texts,
                                                       std::shared_ptr<const Haystack> essays) {
  switch (context.task->family) {
    case Family::kNiah:
      return NiahSeeded(context, texts, std::move(essays));
    case Family::kVt:
      return VtSeeded(context);
    case Family::kCwe:
      return CweSeeded(context, texts);
    case Family::kFwe:
      return FweSeeded(context);
    case Family::kQa:
      return QaSeeded(context, texts);
  }
  return Internal("RULER: task family {}", static_cast<int>(context.task->family));
}

RulerRow FinishRow(const Task& task, Sample sample, int64_t number) {
  RulerRow row;
  row.number = number;
  row.index = sample.answer_at >= 0 ? sample.answer_at : number;
  row.outputs = std::move(sample.outputs);
  row.length = sample.tokens + task.tokens_to_generate;
  row.length_w_model_temp = row.length;
  const size_t at = AnswerPrefixAt(task, sample.text);
  row.answer_prefix = sample.text.substr(at);
  row.input = std::move(sample.text);
  row.input.resize(at);
  row.token_position_answer = sample.answer_token;
  return row;
}

class GeneratorBase : public Generator {
 public:
  GeneratorBase(const RulerOptions& options, const TaskContext& context, std::shared_ptr<Texts> texts)
      : options_(options), context_(context), texts_(std::move(texts)) {}

  Digest RowsDigest() const override { return DigestOf(options_, *context_.task, provenance_); }
  const Task& task() const override { return *context_.task; }
  const std::string& provenance() const override { return provenance_; }

 protected:
  const RulerOptions options_;
  const TaskContext context_;
  const std::shared_ptr<Texts> texts_;
  std::string provenance_;
};

using TakeRow = std::function<absl::Status(const RulerRow&)>;

class OfficialGenerator : public GeneratorBase {
 public:
  using GeneratorBase::GeneratorBase;

  absl::StatusOr<RulerRows> Rows(int64_t first, int64_t count) override {
    if (options_.cache_dir.empty()) {
      RulerRows rows;
      IHA_ASSIGN_OR_RETURN(rows.end, Generate(first + count, [&](const RulerRow& row) {
                             if (row.number >= first) rows.rows.push_back(row);
                             return absl::OkStatus();
                           }));
      return rows;
    }
    const RowsCache cache(options_.cache_dir, RowsDigest());
    IHA_ASSIGN_OR_RETURN(std::optional<RulerRows> known, cache.Read(first, count));
    if (known.has_value()) return *std::move(known);
    std::vector<std::string> lines;
    IHA_ASSIGN_OR_RETURN(const std::optional<RowsEnd> end,
                         Generate(std::max(first + count, options_.samples), [&](const RulerRow& row) {
                           lines.push_back(ToJsonLine(row));
                           return absl::OkStatus();
                         }));
    IHA_RETURN_IF_ERROR(cache.Store(lines, end));
    RulerRows rows;
    const auto made = static_cast<int64_t>(lines.size());
    for (int64_t row = first; row < std::min(first + count, made); ++row) {
      std::optional<RulerRow> parsed = ParseRow(lines[static_cast<size_t>(row)], row);
      if (!parsed.has_value()) return Internal("RULER: row {} of {} cannot be read back", row, options_.task);
      rows.rows.push_back(*std::move(parsed));
    }
    if (first + count > made) rows.end = end;
    return rows;
  }

  absl::StatusOr<std::optional<RowsEnd>> Each(int64_t count, const TakeRow& take) override {
    if (options_.cache_dir.empty()) return Generate(count, take);
    for (int64_t row = 0; row < count; ++row) {
      // The first call makes them all.
      IHA_ASSIGN_OR_RETURN(const RulerRows one, row == 0 ? FirstOf(count) : Rows(row, 1));
      if (one.rows.empty()) return one.end;
      IHA_RETURN_IF_ERROR(take(one.rows[0]));
    }
    return std::nullopt;
  }

 private:
  // Row 0, with `count` rows in the cache.
  absl::StatusOr<RulerRows> FirstOf(int64_t count) {
    const RowsCache cache(options_.cache_dir, RowsDigest());
    IHA_ASSIGN_OR_RETURN(const std::optional<RulerRows> last, cache.Read(count - 1, 1));
    if (!last.has_value()) {
      IHA_RETURN_IF_ERROR(Rows(count - 1, 1).status());
    }
    return Rows(0, 1);
  }

  // The stream from its start: rows 0 .. count - 1.
  absl::StatusOr<std::optional<RowsEnd>> Generate(int64_t count, const TakeRow& take) {
    IHA_ASSIGN_OR_RETURN(const std::unique_ptr<RowStream> stream, OpenStream(context_, *texts_, options_.sentences));
    for (int64_t number = 0; number < count; ++number) {
      IHA_ASSIGN_OR_RETURN(RowOrEnd next, stream->Next());
      if (auto* end = std::get_if<RowsEnd>(&next)) return std::move(*end);
      IHA_RETURN_IF_ERROR(take(FinishRow(*context_.task, std::get<Sample>(std::move(next)), number)));
    }
    return std::nullopt;
  }
};

class SeededGenerator : public GeneratorBase {
 public:
  SeededGenerator(const RulerOptions& options, const TaskContext& context, std::shared_ptr<Texts> texts,
                  std::unique_ptr<SeededRows> rows, std::string provenance)
      : GeneratorBase(options, context, std::move(texts)), rows_(std::move(rows)) {
    provenance_ = std::move(provenance);
  }

  absl::StatusOr<RulerRows> Rows(int64_t first, int64_t count) override {
    std::vector<absl::StatusOr<RulerRow>> made(static_cast<size_t>(count), absl::UnknownError("not made"));
    std::atomic<int64_t> next{0};
    const auto work = [&] {
      TokenCounter counter = context_.counter;
      for (int64_t i = next++; i < count; i = next++) made[static_cast<size_t>(i)] = MakeRow(first + i, counter);
    };
    std::vector<std::thread> others;
    for (int64_t t = 1; t < std::min<int64_t>(options_.threads, count); ++t) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();

    RulerRows rows;
    rows.provenance = provenance_;
    for (absl::StatusOr<RulerRow>& row : made) {
      if (row.ok()) {
        rows.rows.push_back(*std::move(row));
        continue;
      }
      const bool exhausted = absl::IsOutOfRange(row.status());
      if (!exhausted && !absl::IsInvalidArgument(row.status())) return row.status();
      rows.end = RowsEnd{.kind = exhausted ? EndKind::kDataExhausted : EndKind::kGeneratorDeadEnd,
                         .row = first + static_cast<int64_t>(rows.rows.size()),
                         .cause = std::string(row.status().message())};
      break;
    }
    return rows;
  }

  absl::StatusOr<std::optional<RowsEnd>> Each(int64_t count, const TakeRow& take) override {
    // As many rows in memory as threads make at once.
    const int64_t batch = std::max(options_.threads, 1);
    for (int64_t row = 0; row < count; row += batch) {
      IHA_ASSIGN_OR_RETURN(const RulerRows some, Rows(row, std::min(batch, count - row)));
      for (const RulerRow& one : some.rows) IHA_RETURN_IF_ERROR(take(one));
      if (some.end.has_value()) return some.end;
    }
    return std::nullopt;
  }

 private:
  absl::StatusOr<RulerRow> MakeRow(int64_t number, TokenCounter& counter) const {
    CanonicalWriter key("iha.ruler.row", kGeneratorVersion);
    key.Uint(options_.seed).String(options_.task).Int(options_.length).Int(number);
    IHA_ASSIGN_OR_RETURN(Sample sample, rows_->Row(number, PythonRandom(key.Hash().Prefix64()), counter));
    sample.answer_at = -1;
    return FinishRow(*context_.task, std::move(sample), number);
  }

  const std::unique_ptr<SeededRows> rows_;
};

// A haystack where the essays are missing: sentences of wonderwords' words, always the same.
Haystack GeneratedHaystack(const WordLists& words, int64_t count) {
  PythonRandom random(0);
  std::string text;
  for (int64_t written = 0; written < count;) {
    const auto length = static_cast<int64_t>(6 + random.RandBelow(15));
    for (int64_t i = 0; i < length; ++i) {
      std::string word = words.words[random.RandBelow(static_cast<uint32_t>(words.words.size()))];
      if (i == 0 && word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
      text += word + (i + 1 < length ? " " : ". ");
    }
    written += length;
  }
  return Haystack(text, nullptr);
}

absl::StatusOr<std::unique_ptr<Generator>> OpenSeededGenerator(const RulerOptions& options, TaskContext context,
                                                               std::shared_ptr<Texts> texts) {
  context.reserved = SpecialTokensAdded(options.chat, options.tokenizer.get());
  std::string provenance;
  std::shared_ptr<const Haystack> essays;
  if (context.task->needs_essays()) {
    absl::StatusOr<std::shared_ptr<const Haystack>> read = texts->Essays(options.sentences);
    if (read.ok()) {
      essays = *std::move(read);
    } else if (absl::IsNotFound(read.status()) && !options.data_root.empty()) {
      IHA_ASSIGN_OR_RETURN(const std::shared_ptr<const WordLists> words, texts->Words());
      essays = std::make_shared<const Haystack>(GeneratedHaystack(*words, options.length));
      provenance = "generated haystack: the data root has no essays";
    } else {
      return read.status();
    }
  }
  IHA_ASSIGN_OR_RETURN(std::unique_ptr<SeededRows> rows, OpenSeeded(context, *texts, std::move(essays)));
  return std::make_unique<SeededGenerator>(options, context, std::move(texts), std::move(rows), std::move(provenance));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> Generator::Open(const RulerOptions& options) {
  IHA_ASSIGN_OR_RETURN(const Task* task, RequireTask(options.task));
  const bool official = options.mode == Mode::kOfficial;
  if (official && task->family != Family::kCwe && options.seed > std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument("RULER {}: seed {}: NumPy, from which NVIDIA's script draws, takes seeds below 2^32",
                           options.task, options.seed);
  }
  TaskContext context = {.task = task,
                         .length = options.length,
                         .seed = options.seed,
                         .parts = MakePromptParts(*task, options.chat, /*keep_chat=*/!official),
                         .counter = TokenCounter(options.tokenizer)};
  const int64_t least = context.counter.Whole(context.parts.head + context.parts.tail) + task->tokens_to_generate;
  if (options.length < least) {
    return InvalidArgument(
        "RULER {}: length {} is too short: with nothing to read between its words it takes {} tokens, {} to generate "
        "included; give a greater length",
        options.task, options.length, least, task->tokens_to_generate);
  }
  const auto texts = options.texts != nullptr ? options.texts : std::make_shared<Texts>(options.data_root);
  if (!official) return OpenSeededGenerator(options, std::move(context), texts);
  // Missing files are told now; they are parsed when a row is asked for that no cache has.
  IHA_RETURN_IF_ERROR(texts->CheckFiles(DataFilesOf(*task, options.sentences, /*essays=*/true)));
  return std::make_unique<OfficialGenerator>(options, context, texts);
}

}  // namespace iha::benchmarks::ruler
