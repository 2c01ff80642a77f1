// figure: a stored sweep as a picture.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "common/child_process.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "common/version.h"
#include "coordinator/store/snapshot_reader.h"
#include "coordinator/store/sqlite_store.h"
#include "reports/figure.h"
#include "reports/render_svg.h"

namespace iha::cli {
namespace {

struct Flags {
  std::string db;
  std::string sweep;
  std::string grader;
  std::string kind = "ruler";
  std::string metric;
  std::string models_root;
  std::string out;
};

// `train_tokens` of the checkpoints' config.json, where it is there.
absl::StatusOr<std::map<std::string, int64_t>> TrainTokens(const SweepSpec& spec, const std::string& root) {
  std::map<std::string, int64_t> tokens;
  for (const ModelRef& model : spec.models) {
    const std::string path = (std::filesystem::path(root) / model.name / "config.json").string();
    const absl::StatusOr<nlohmann::json> config = ReadJsonFile(path);
    if (config.status().code() == absl::StatusCode::kNotFound) continue;
    IHA_RETURN_IF_ERROR(config.status());
    const auto field = config->is_object() ? config->find("train_tokens") : config->end();
    if (field == config->end()) continue;
    const std::optional<int64_t> value = JsonInteger(*field);
    if (!value.has_value() || *value < 0) {
      return InvalidArgument("{}: train_tokens is {}; expected a whole number of tokens", path,
                             TerminalSafe(field->dump(), 60));
    }
    tokens[model.name] = *value;
  }
  return tokens;
}

absl::StatusOr<reports::Figure> FigureOf(const reports::Snapshot& snapshot, const Flags& flags) {
  if (flags.kind == "ruler") return reports::RulerFigure(snapshot);
  if (flags.kind == "length") return reports::LengthFigure(snapshot);
  IHA_ASSIGN_OR_RETURN(const auto tokens, TrainTokens(snapshot.spec, flags.models_root));
  return reports::TrainTokensFigure(snapshot, tokens, flags.metric);
}

// Cairo writes the date that it is told; blanks in its place move no byte of the file.
void BlankCreationDate(std::string& pdf) {
  const size_t begin = pdf.find("/CreationDate (");
  if (begin == std::string::npos) return;
  const size_t end = std::min(pdf.find(')', begin), pdf.size() - 1);
  std::fill(pdf.begin() + static_cast<std::ptrdiff_t>(begin), pdf.begin() + static_cast<std::ptrdiff_t>(end) + 1, ' ');
}

// Bytes that hold no date: the same picture gives the same file on one machine (its fonts are drawn).
absl::StatusOr<std::string> Converted(const std::string& svg, const std::string& format) {
  ChildOptions options;
  options.argv = {"rsvg-convert", "--format", format, "--zoom", format == "png" ? "2" : "1"};
  options.env.emplace_back("SOURCE_DATE_EPOCH=0");
  const RunLimits limits{.timeout = absl::Minutes(2), .stdout_bytes = size_t{256} << 20};
  const absl::StatusOr<RunResult> run = RunChild(options, svg, limits);
  if (run.status().code() == absl::StatusCode::kNotFound) {
    return Unavailable("{}: needs the program rsvg-convert (Debian: librsvg2-bin); a .svg file needs nothing", format);
  }
  IHA_RETURN_IF_ERROR(run.status());
  if (run->timed_out || run->out_truncated || !run->exit.ok()) {
    return Unavailable("rsvg-convert: {}: {}", run->timed_out ? "took over two minutes" : run->exit.ToString(),
                       TerminalSafe(run->err, 300));
  }
  std::string picture = run->out;
  if (format == "pdf") BlankCreationDate(picture);
  return picture;
}

std::string ExtensionOf(const Flags& flags) {
  return flags.out == "-" ? ".svg" : std::filesystem::path(flags.out).extension().string();
}

absl::Status CheckOut(const Flags& flags) {
  const std::string extension = ExtensionOf(flags);
  if (extension == ".svg" || extension == ".png" || extension == ".pdf") return absl::OkStatus();
  return InvalidArgument("--out {}: expected a name that ends in .svg, .png or .pdf, or - for SVG on stdout",
                         flags.out);
}

absl::Status Draw(const Flags& flags) {
  const std::string extension = ExtensionOf(flags);
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  IHA_ASSIGN_OR_RETURN(const SweepId id, coordinator::FindSweepByPrefix(*store, flags.sweep));
  IHA_ASSIGN_OR_RETURN(const reports::Snapshot snapshot, coordinator::ReadSnapshot(*store, id, kVersion, flags.grader));
  const absl::StatusOr<reports::Figure> figure = FigureOf(snapshot, flags);
  if (!figure.ok()) return Annotate(figure.status(), fmt::format("--kind {}", flags.kind));
  std::string picture = reports::RenderSvg(*figure);
  if (extension != ".svg") {
    IHA_ASSIGN_OR_RETURN(picture, Converted(picture, extension.substr(1)));
  }
  if (flags.out != "-") return WriteFileAtomic(flags.out, picture);
  std::cout << picture << std::flush;
  return absl::OkStatus();
}

int Run(const CLI::App& sub, const Flags& flags) {
  const bool of_tokens = flags.kind == "tokens";
  for (const char* flag : {"--models-root", "--metric"}) {
    if (!of_tokens && sub.count(flag) > 0) {
      return FailUsage("figure", InvalidArgument("{}: only with --kind tokens", flag));
    }
  }
  if (of_tokens && flags.models_root.empty()) {
    return FailUsage("figure", InvalidArgument("--kind tokens: give --models-root, the folder of the checkpoints; "
                                               "train_tokens is read from each config.json"));
  }
  if (const absl::Status status = CheckOut(flags); !status.ok()) return FailUsage("figure", status);
  const absl::Status status = Draw(flags);
  return status.ok() ? kExitOk : Fail("figure", status);
}

}  // namespace

void AddFigure(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* sub = app.add_subcommand("figure", "A stored sweep as a figure");
  sub->add_option("--db", flags->db, "database file")->required();
  sub->add_option("--sweep", flags->sweep, "sweep id, or a prefix that is unique")->required();
  sub->add_option(
         "--kind", flags->kind,
         "ruler: multi-key retrieval by length, and overall, as bars; length: RULER against the length; tokens: "
         "each column against the tokens trained on")
      ->check(CLI::IsMember({"ruler", "length", "tokens"}));
  sub->add_option("--out", flags->out, "FILE.svg, .png or .pdf; - = SVG on stdout")->required();
  sub->add_option("--models-root", flags->models_root, "tokens: folder of the checkpoints");
  sub->add_option("--metric", flags->metric, "tokens: one column, by its header in the generic table");
  sub->add_option("--grader", flags->grader, "by the rows that regrade stored under this version");
  sub->footer("Example:\n  iha-eval figure --db sweeps.db --sweep 3f2a --kind ruler --out ruler.svg");
  sub->callback([sub, flags, &command] { command.exit_code = Run(*sub, *flags); });
}

}  // namespace iha::cli
