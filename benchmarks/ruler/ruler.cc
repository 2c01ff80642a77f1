#include "benchmarks/ruler/ruler.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "benchmarks/manifest.h"
#include "benchmarks/options.h"
#include "benchmarks/ruler/data_files.h"
#include "benchmarks/ruler/generate.h"
#include "benchmarks/ruler/grade.h"
#include "benchmarks/scoring/ruler_means.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks::ruler {
namespace {

constexpr char kAutoTemplate[] = "auto";
constexpr int64_t kMaxSeed = (int64_t{1} << 32) - 1;  // that NumPy takes
constexpr int64_t kMaxRows = 100000;

// What a spec's options say.
struct Settings {
  const Task* task = nullptr;
  int64_t length = 0;
  Mode mode = Mode::kOfficial;
  Sentences sentences = Sentences::kPunkt;
  uint64_t seed = 0;
  std::string chat;  // a name of MakeChatTexts, or kAutoTemplate
};

// The spec alone, without any rows.
class RulerPlan : public Benchmark {
 public:
  RulerPlan(const RulerPlan&) = default;
  RulerPlan(BenchmarkInfo info, BenchmarkRef ref, int64_t size, Settings settings, std::string data_root)
      : info_(std::move(info)),
        ref_(std::move(ref)),
        size_(size),
        settings_(std::move(settings)),
        data_root_(std::move(data_root)) {}

  const BenchmarkInfo& info() const override { return info_; }
  const BenchmarkRef& ref() const override { return ref_; }
  int64_t size() const override { return size_; }
  std::string ItemId(int64_t index) const override {
    return fmt::format("{}@{}/{}", settings_.task->name, settings_.length, index);
  }
  Prompt Render(int64_t) const override { return {}; }
  std::string Gold(int64_t) const override { return ""; }
  Digest data_digest() const override { return DigestOfDataFiles(info_.data_files); }

  std::vector<std::vector<SampleGrade>> Grade(int64_t, const std::vector<std::string>& texts,
                                              const std::vector<MetricInfo>& metrics) const override {
    SampleGrade grade;
    grade.metric = kMetric;
    grade.unscored = Unscored::kGraderUnavailable;
    grade.reason = "grader unavailable: the references follow from the checkpoint's tokenizer";
    const std::vector<SampleGrade> of_sample(metrics.size(), grade);
    return std::vector<std::vector<SampleGrade>>(texts.size(), of_sample);
  }

  bool CanBeGrade(const std::string& text, const SampleGrade& grade) const override {
    return IsGradeOf(*settings_.task, text, grade);
  }

  absl::StatusOr<std::unique_ptr<ItemSource>> ForCheckpoint(const CheckpointTexts& checkpoint) const override;

  const Settings& settings() const { return settings_; }

 private:
  const BenchmarkInfo info_;
  const BenchmarkRef ref_;
  const int64_t size_;
  const Settings settings_;
  const std::string data_root_;
};

// With some of the rows of one checkpoint.
class RulerItems final : public RulerPlan {
 public:
  // `first`: the number of rows.rows[0].
  RulerItems(const RulerPlan& plan, RulerRows rows, int64_t first, bool bare)
      : RulerPlan(plan), rows_(std::move(rows)), first_(first), bare_(bare) {}

  Prompt Render(int64_t index) const override {
    if (Missing(index) != Unscored::kScored) return {};
    const RulerRow& row = At(index);
    return {.text = row.input + row.answer_prefix,
            .messages = {},
            .template_date = "",
            .stops = {},
            .choices = {},
            .bare = bare_};
  }
  std::string Gold(int64_t index) const override {
    return Missing(index) == Unscored::kScored ? fmt::format("{}", fmt::join(At(index).outputs, ", ")) : "";
  }
  Unscored Missing(int64_t index) const override {
    if (!rows_.end.has_value() || index < rows_.end->row) return Unscored::kScored;
    return rows_.end->kind == EndKind::kDataExhausted ? Unscored::kDataExhausted : Unscored::kGeneratorDeadEnd;
  }

  std::vector<std::vector<SampleGrade>> Grade(int64_t index, const std::vector<std::string>& texts,
                                              const std::vector<MetricInfo>& metrics) const override {
    std::vector<std::vector<SampleGrade>> grades;
    for (const std::string& text : texts) {
      auto& of_sample = grades.emplace_back();
      if (!metrics.empty()) of_sample.push_back(GradeOf(*settings().task, At(index).outputs, text));
    }
    return grades;
  }

 private:
  const RulerRow& At(int64_t index) const { return rows_.rows.at(static_cast<size_t>(index - first_)); }

  const RulerRows rows_;
  const int64_t first_;
  const bool bare_;
};

class RulerSource final : public ItemSource {
 public:
  RulerSource(const RulerPlan& plan, std::unique_ptr<Generator> generator, bool bare)
      : plan_(plan), generator_(std::move(generator)), bare_(bare) {}

  absl::StatusOr<std::unique_ptr<const Benchmark>> Items(ItemRange range) override {
    IHA_ASSIGN_OR_RETURN(RulerRows rows, generator_->Rows(range.begin, range.size()));
    return std::make_unique<const RulerItems>(plan_, std::move(rows), range.begin, bare_);
  }

 private:
  const RulerPlan plan_;
  const std::unique_ptr<Generator> generator_;
  const bool bare_;
};

using scoring::kGeneratedHaystack;
using scoring::kRulerHaystackOption;
// Other values of that option. It is resolved where a benchmark is opened, so that every table says what was searched.
constexpr char kAutoHaystack[] = "auto";
constexpr char kEssayHaystack[] = "essays";

// `files` with those of `more` that it lacks.
std::vector<std::string> Joined(std::vector<std::string> files, const std::vector<std::string>& more) {
  for (const std::string& file : more) {
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
  }
  return files;
}

// The option's value for this data root: "" for a task without essays. NotFound: official rows need them.
absl::StatusOr<std::string> HaystackFor(const BenchmarkRef& ref, const Settings& settings,
                                        const std::string& data_root) {
  IHA_ASSIGN_OR_RETURN(const std::string asked, ChoiceOption(ref, kRulerHaystackOption,
                                                             {kAutoHaystack, kEssayHaystack, kGeneratedHaystack, ""}));
  if (!settings.task->needs_essays()) return std::string();
  const absl::Status essays = ReadDataFile(data_root, kEssays).status();
  const bool may_generate = settings.mode == Mode::kSeeded && asked != kEssayHaystack && absl::IsNotFound(essays);
  if (may_generate) return std::string(kGeneratedHaystack);
  if (!essays.ok()) return Annotate(essays, ref.name);
  if (asked != kGeneratedHaystack) return std::string(kEssayHaystack);
  return InvalidArgument("{}: option haystack: generated, but the data root has the essays (mode {}); leave it out",
                         ref.name, ref.options.at("mode"));
}

absl::StatusOr<ChatTexts> ChatFor(const std::string& name, const tokenizer::Tokenizer& tokenizer) {
  if (name != kAutoTemplate) return MakeChatTexts(name, &tokenizer);
  return MakeChatTexts(tokenizer.chat_templates().text.empty() ? "base" : "model", &tokenizer);
}

absl::StatusOr<Settings> SettingsOf(const BenchmarkRef& ref) {
  const std::optional<scoring::RulerCell> cell = scoring::ParseRulerCell(ref.name);
  if (!cell.has_value()) {
    return InvalidArgument("{}: stands for several cells; each entry of a sweep is one, as ruler:vt@4096",
                           TerminalSafe(ref.name, 200));
  }
  Settings settings;
  IHA_ASSIGN_OR_RETURN(settings.task, RequireTask(cell->task));
  settings.length = cell->length;
  // Whatever the tokenizer; the exact minimum is the workers' to tell, who have it.
  if (settings.length <= settings.task->tokens_to_generate) {
    return InvalidArgument(
        "{}: length {} is too short: {} tokens of it are generated, behind the task's words; give a greater length",
        ref.name, settings.length, settings.task->tokens_to_generate);
  }
  IHA_ASSIGN_OR_RETURN(const std::string mode, ChoiceOption(ref, "mode", {"official", "seeded"}));
  settings.mode = mode == "official" ? Mode::kOfficial : Mode::kSeeded;
  IHA_ASSIGN_OR_RETURN(const std::string sentences, ChoiceOption(ref, "sentences", {"punkt", "simple"}));
  settings.sentences = sentences == "punkt" ? Sentences::kPunkt : Sentences::kSimple;
  IHA_ASSIGN_OR_RETURN(const int64_t seed, IntegerOption(ref, "data_seed", 0, kMaxSeed));
  settings.seed = static_cast<uint64_t>(seed);
  IHA_ASSIGN_OR_RETURN(
      settings.chat,
      ChoiceOption(ref, "template", {kAutoTemplate, "base", "Phi3", "meta-llama3", "vicuna-chat", "model"}));
  return settings;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ItemSource>> RulerPlan::ForCheckpoint(const CheckpointTexts& checkpoint) const {
  absl::StatusOr<ChatTexts> chat = ChatFor(settings_.chat, *checkpoint.tokenizer);
  if (!chat.ok()) return Annotate(chat.status(), ref_.name);
  const bool bare = SpecialTokensAdded(*chat, checkpoint.tokenizer.get()) == 0;
  absl::StatusOr<std::unique_ptr<Generator>> generator =
      Generator::Open({.task = std::string(settings_.task->name),
                       .length = settings_.length,
                       .seed = settings_.seed,
                       .mode = settings_.mode,
                       .sentences = settings_.sentences,
                       .chat = *std::move(chat),
                       .tokenizer = checkpoint.tokenizer,
                       .data_root = data_root_,
                       .samples = checkpoint.items,  // a row follows from those before it: made at once, then read
                       .cache_dir = checkpoint.cache_dir,
                       .threads = checkpoint.threads});
  if (!generator.ok()) return Annotate(generator.status(), ref_.name);
  const bool generated = ref_.options.at(kRulerHaystackOption) == kGeneratedHaystack;
  if (generated == (*generator)->provenance().empty()) {
    return FailedPrecondition("{}: planned with {}, this data root {} the essays; use the coordinator's data root",
                              ref_.name, generated ? "a generated haystack" : "essays", generated ? "has" : "lacks");
  }
  return std::make_unique<RulerSource>(*this, *std::move(generator), bare);
}

absl::StatusOr<BenchmarkInfo> RulerInfo(const std::string& name) {
  IHA_ASSIGN_OR_RETURN(const std::vector<std::string> cells, CellNames(name));
  const scoring::RulerCell cell = *scoring::ParseRulerCell(cells.front());
  const Task& task = *FindTask(cell.task);
  BenchmarkInfo info;
  info.name = name;
  info.version = fmt::format("ruler/{}", kGeneratorVersion);
  info.grader_version = "ruler/2";
  info.summary = "RULER: retrieval, tracking, counting and questions in texts of a chosen length";
  info.protocol =
      "ruler:TASK,...@LENGTH,... (all 13 tasks, 4096 tokens); rows of NVIDIA/RULER c3f5e3b for the checkpoint's "
      "tokenizer, the answer prefix behind the assistant's header, greedy, no stops, each task's own limit of new "
      "tokens";
  info.options = {
      {kAllowOverContextOption, "no", "yes: lengths beyond the model's context are run, and marked"},
      {"data_seed", "42", "of the rows"},
      {kRulerHaystackOption, kAutoHaystack,
       "essay tasks: essays; generated: where the data root lacks them (seeded only); auto: whichever it is"},
      {"mode", "official", "official: NVIDIA's rows; seeded: each row on its own, unique keys, a tight fill"},
      {"rows", "500", "items of a task"},
      {"sentences", "punkt", "how essays are cut: punkt (NLTK's); simple: behind . ! ? and a blank"},
      {"template", kAutoTemplate,
       "base, Phi3, meta-llama3, vicuna-chat (NVIDIA's); model: the checkpoint's own; auto: "
       "model where it has one, else base"},
  };
  info.metrics = {{kMetric, "string_match_all, of qa tasks string_match_part, as NVIDIA's evaluate.py", false}};
  info.default_metrics = {kMetric};
  info.default_sampling.max_new_tokens = static_cast<int32_t>(task.tokens_to_generate);
  info.item_tokens = cell.length;
  for (const std::string& of_cell : cells) {
    const Task& one = *FindTask(scoring::ParseRulerCell(of_cell)->task);
    info.data_files = Joined(std::move(info.data_files), DataFilesOf(one, Sentences::kPunkt, /*essays=*/true));
  }
  return info;
}

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenRuler(const BenchmarkRef& ref, const std::string& data_root) {
  IHA_ASSIGN_OR_RETURN(BenchmarkInfo info, RulerInfo(ref.name));
  IHA_ASSIGN_OR_RETURN(BenchmarkRef full, WithDefaults(info, ref));
  IHA_ASSIGN_OR_RETURN(Settings settings, SettingsOf(full));
  IHA_RETURN_IF_ERROR(ChoiceOption(full, kAllowOverContextOption, {"no", "yes"}).status());
  IHA_ASSIGN_OR_RETURN(const int64_t rows, IntegerOption(full, "rows", 1, kMaxRows));
  IHA_ASSIGN_OR_RETURN(const std::string haystack, HaystackFor(full, settings, data_root));
  full.options[kRulerHaystackOption] = haystack;
  info.data_files = DataFilesOf(*settings.task, settings.sentences, haystack == kEssayHaystack);
  for (const std::string& file : info.data_files) {
    if (const absl::Status read = ReadDataFile(data_root, file).status(); !read.ok()) return Annotate(read, ref.name);
  }
  return std::make_unique<const RulerPlan>(std::move(info), std::move(full), rows, std::move(settings), data_root);
}

}  // namespace iha::benchmarks::ruler
