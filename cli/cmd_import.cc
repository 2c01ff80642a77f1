#include <CLI/CLI.hpp>
#include <atomic>
#include <iostream>

#include "cli/command.h"
#include "common/errors.h"
#include "common/shutdown.h"
#include "common/text.h"
#include "model/checkpoint/gguf/import.h"

namespace iha::cli {
namespace {

struct Flags {
  std::string file;
  std::string out;
  std::string dtype = "f32";
};

int RunGguf(const Flags& flags) {
  const auto dtype = flags.dtype == "bf16" ? checkpoint::DType::kBF16 : checkpoint::DType::kF32;
  std::atomic<bool> stop = false;
  ShutdownSignals signals;
  signals.Watch([&stop] { stop = true; });
  const absl::StatusOr<checkpoint::GgufImport> imported = checkpoint::ImportGguf(flags.file, flags.out, dtype, &stop);
  if (!imported.ok()) return Fail("import gguf", imported.status());
  std::cerr << (imported->already_there ? "already there: " : "wrote ") << TerminalSafe(flags.out) << "\n";
  return kExitOk;
}

}  // namespace

void AddImport(CLI::App& app, Command& command) {
  CLI::App* import = app.add_subcommand("import", "Bring checkpoints of other formats");
  import->require_subcommand(1);
  import->footer("Example:\n  iha-eval import gguf model.Q4_1.gguf --out model");
  const auto flags = std::make_shared<Flags>();
  CLI::App* gguf = import->add_subcommand("gguf", "A GGUF file to a Hugging Face style directory");
  gguf->add_option("file", flags->file, "the .gguf file")->required();
  gguf->add_option("--out", flags->out, "directory to write; left alone if it holds this import already")->required();
  gguf->add_option("--dtype", flags->dtype, "f32: exact, 16-bit tensors as they are; bf16: rounded")
      ->check(CLI::IsMember({"f32", "bf16"}));
  gguf->footer("Example:\n  iha-eval import gguf model.Q4_1.gguf --out model --dtype f32");
  gguf->callback([flags, &command] { command.exit_code = RunGguf(*flags); });
}

}  // namespace iha::cli
