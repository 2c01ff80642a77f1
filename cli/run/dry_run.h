// dry_run.h: what `run --dry-run` prints: jobs, items, prompt tokens and an estimate of all tokens.
//
// Prompts are rendered and tokenised as a worker does it, each once however many samples are drawn from it; the
// estimate adds every generation at its limit. Of a model that is not on this machine the prompts are not counted, and
// the estimate takes a token for three bytes. Blocking (a second for a thousand prompts). Thread: main.
// Errors: the planner's, the tokenizer's, those of PromptEncoder (a chat without a template).
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/run/run_flags.h"
#include "common/eval_types.h"

namespace iha::cli {

// `folders`: model name -> directory; others are looked for below flags.models_root.
absl::StatusOr<std::string> DescribePlan(const Command& command, const RunFlags& flags, const SweepSpec& spec,
                                         const std::map<std::string, std::string>& folders);

}  // namespace iha::cli
