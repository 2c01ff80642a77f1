// logits: what a checkpoint says after each of the given tokens.
#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/errors.h"
#include "common/file.h"
#include "common/flag_checks.h"
#include "common/json.h"
#include "common/jsonl_tool.h"
#include "common/shutdown.h"
#include "common/status_macros.h"
#include "model/checkpoint/safetensors.h"
#include "model/checkpoint/temporary_folder.h"
#include "model/sequence_run.h"
#include "worker/tools/tool.h"

namespace iha::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  ModelFlags model;
  std::string folder;
  std::string ids;
  std::string out;
  size_t chunk = 256;  // bounds the memory; no bit depends on it
};

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  if (path != "-") return ReadFile(path);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

absl::StatusOr<std::vector<int32_t>> ReadIds(const std::string& path, const model::ModelInfo& info) {
  const absl::StatusOr<std::string> read = ReadAll(path);
  if (!read.ok()) return Annotate(read.status(), "--ids");
  const std::string& text = *read;
  IHA_RETURN_IF_ERROR(Annotate(CheckJsonDepth(text), "--ids " + path));
  Json value = Json::parse(text, nullptr, false);
  if (value.is_array()) value = Json{{"ids", std::move(value)}};
  if (!value.is_object()) return InvalidArgument("--ids {}: not an array of token ids or {{\"ids\": [...]}}", path);
  std::vector<int32_t> ids;
  IHA_RETURN_IF_ERROR(Annotate(GetTokenIds(value, "ids", ids), "--ids " + path));
  if (ids.empty()) return InvalidArgument("--ids {}: no ids; expected at least one", path);
  for (size_t i = 0; i < ids.size(); i++) {
    if (ids[i] < info.vocab_size) continue;
    return InvalidArgument("--ids {}: id {} at [{}]; expected 0 to {}", path, ids[i], i, info.vocab_size - 1);
  }
  if (static_cast<int64_t>(ids.size()) > info.context_tokens) {
    return InvalidArgument("--ids {}: {} ids; the model's context is {}", path, ids.size(), info.context_tokens);
  }
  return ids;
}

// A file is written whole and renamed; for stdout it lies in a folder of its own meanwhile.
class Output {
 public:
  explicit Output(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<std::string> Path() {
    if (path_ != "-") return path_;
    std::error_code error;
    const std::string parent = std::filesystem::temp_directory_path(error).string();
    if (error) return Unavailable("the folder for temporary files: {}; set TMPDIR", error.message());
    IHA_ASSIGN_OR_RETURN(auto folder, checkpoint::TemporaryFolder::Create(parent + "/iha-tool-logits", 0700));
    folder_.emplace(std::move(folder));
    return folder_->path() + "/logits.safetensors";
  }
  // Once the file is whole.
  absl::Status Finish() {
    if (!folder_.has_value()) return absl::OkStatus();
    std::ifstream file(folder_->path() + "/logits.safetensors", std::ios::binary);
    std::cout << file.rdbuf() << std::flush;
    return std::cout && file ? absl::OkStatus() : Unavailable("stdout: cannot be written");
  }

 private:
  const std::string path_;
  std::optional<checkpoint::TemporaryFolder> folder_;  // for stdout
};

absl::Status Run(const Flags& flags) {
  std::atomic<bool> stop = false;
  ShutdownSignals signals;
  signals.Watch([&stop] { stop = true; });
  Output output(flags.out);
  IHA_ASSIGN_OR_RETURN(const std::string path, output.Path());
  IHA_ASSIGN_OR_RETURN(const model::OpenOptions open, ToOpenOptions(flags.model));
  IHA_ASSIGN_OR_RETURN(const model::OpenedBackend opened, model::OpenBackend(flags.folder, open));
  model::Backend& backend = *opened.backend;
  std::vector<std::vector<int32_t>> sequences(1);
  IHA_ASSIGN_OR_RETURN(sequences[0], ReadIds(flags.ids, backend.info()));
  const std::vector<int64_t> shape = {static_cast<int64_t>(sequences[0].size()), backend.info().vocab_size};
  IHA_ASSIGN_OR_RETURN(auto writer,
                       checkpoint::SafetensorsWriter::Create(
                           path, {{.name = "logits", .dtype = checkpoint::DType::kF32, .shape = shape}},
                           {{"numerics", backend.info().numerics_id}, {"weights", backend.info().weights.Hex()}}));
  writer.StopWhen(&stop);
  IHA_RETURN_IF_ERROR(backend.ReserveCache(model::BlocksFor(backend.info(), sequences)));
  const model::LogitSink sink = [&writer](size_t, std::span<const float> rows) {
    return writer.Append(std::as_bytes(rows));
  };
  IHA_RETURN_IF_ERROR(model::RunSequences(backend, sequences, flags.chunk, sink, nullptr));
  IHA_RETURN_IF_ERROR(writer.Finish());
  return output.Finish();
}

}  // namespace

void AddLogits(CLI::App& app, Tool& tool) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* sub = app.add_subcommand("logits", "Logits after each of the given ids: F32 [N, V], to a safetensors file");
  sub->add_option("--model", flags->folder, "checkpoint directory")->required();
  sub->add_option("--ids", flags->ids, "JSON file, [ids] or {\"ids\": [...]}; - = stdin")->required();
  sub->add_option("--out", flags->out, "safetensors file; - = stdout")->required();
  sub->add_option("--chunk", flags->chunk, "tokens in a step, 0 = all; changes no result")
      ->check(WholeNumber(0, INT64_MAX))
      ->capture_default_str();
  AddModelFlags(*sub, flags->model);
  sub->footer("Example:\n  echo '[19556, 905]' | iha-eval logits --model DIR --ids - --out logits.safetensors");
  sub->callback([flags, &tool] {
    const absl::Status status = Run(*flags);
    if (!status.ok()) tool.exit_code = Fail(tool, "logits", status);
  });
}

}  // namespace iha::tools
