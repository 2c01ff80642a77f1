#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/flop_audit.h"
#include "model/checkpoint/inspect.h"

namespace iha::cli {
namespace {

struct Flags {
  std::string directory;
  std::string against;
  std::vector<int64_t> lengths;
  double tolerance = 5;  // percent
  bool json = false;
};

int RunInspect(const Flags& flags) {
  const auto opened = checkpoint::Checkpoint::Open(flags.directory);
  if (!opened.ok()) return Fail("inspect", opened.status());
  std::vector<int64_t> lengths = flags.lengths;
  if (lengths.empty()) {
    // What the model cannot be given says nothing about it.
    for (const int64_t length : {1024, 4096}) lengths.push_back(std::min(length, opened->config().context_tokens));
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
  const checkpoint::Inspection inspection = checkpoint::Inspect(*opened, lengths);
  std::cout << (flags.json ? checkpoint::InspectionJson(inspection) + "\n" : checkpoint::InspectionText(inspection));
  return kExitOk;
}

// Weights are not read: the audit is of what the architectures cost.
absl::StatusOr<checkpoint::FlopAudit> Audit(const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const auto ours, checkpoint::Checkpoint::Open(flags.directory));
  IHA_ASSIGN_OR_RETURN(const auto theirs, checkpoint::Checkpoint::Open(flags.against));
  std::vector<int64_t> lengths = flags.lengths;
  // A schedule's windows are made for one length: the context that both have.
  if (lengths.empty()) lengths = {std::min(ours.config().context_tokens, theirs.config().context_tokens)};
  checkpoint::FlopAudit audit = checkpoint::AuditFlops(ours.config(), theirs.config(), lengths);
  audit.directory = flags.directory;
  audit.against = flags.against;
  audit.tolerance = flags.tolerance;
  return audit;
}

int RunAgainst(const Flags& flags) {
  const auto audit = Audit(flags);
  if (!audit.ok()) return Fail("inspect", audit.status());
  std::cout << (flags.json ? checkpoint::AuditJson(*audit) + "\n" : checkpoint::AuditText(*audit));
  return audit->matched() ? kExitOk : kExitCheckFailed;
}

}  // namespace

void AddInspect(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* inspect = app.add_subcommand("inspect", "Validate a checkpoint and say what it is and what it costs");
  inspect->add_option("directory", flags->directory, "checkpoint directory")->required();
  inspect
      ->add_option("--lengths", flags->lengths,
                   "prompt lengths that FLOP per token are given at; else 1024,4096 (the context if shorter), with "
                   "--against the context")
      ->delimiter(',')
      ->check(WholeNumber(1, uint64_t{1} << 32));
  inspect->add_option("--against", flags->against, "audit that this checkpoint costs the same FLOP; exit 5 if not");
  inspect->add_option("--tolerance", flags->tolerance, "percent that --against allows")->check(RealNumber(0, 1e9));
  inspect->add_flag("--json", flags->json, "one JSON object");
  inspect->footer(
      "Example:\n  iha-eval inspect iha-checkpoint --lengths 1024,4096\n"
      "  iha-eval inspect iha-checkpoint --against global-checkpoint");
  inspect->callback(
      [flags, &command] { command.exit_code = flags->against.empty() ? RunInspect(*flags) : RunAgainst(*flags); });
}

}  // namespace iha::cli
