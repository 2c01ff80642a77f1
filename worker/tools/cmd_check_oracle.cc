// check-oracle: checkpoints against the values that a correct engine gives.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/jsonl_tool.h"
#include "model/oracle.h"
#include "worker/tools/tool.h"

namespace iha::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  ModelFlags model;
  std::vector<std::string> folders;
  size_t chunk = 0;
};

std::string NameOfFolder(const std::string& folder) {
  const auto path = std::filesystem::path(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

// NaN and infinity are no JSON numbers.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json Report(const std::string& folder, const model::OracleErrors& errors) {
  // The layer that comes closest to its tolerance, or goes furthest beyond. A NaN is the worst of all.
  double attn_out = 0, attn_out_atol = 0, worst = -1;
  for (size_t layer = 0; layer < errors.attn_out.size(); layer++) {
    const double part = errors.attn_out[layer] <= 0 ? 0 : errors.attn_out[layer] / errors.attn_out_atol[layer];
    if (std::isnan(worst) || part <= worst) continue;
    worst = part;
    attn_out = errors.attn_out[layer];
    attn_out_atol = errors.attn_out_atol[layer];
  }
  return {{"oracle", NameOfFolder(folder)},      {"max_abs_err", Number(errors.logits)},
          {"tolerance", errors.logit_atol},      {"attn_out_max_abs_err", Number(attn_out)},
          {"attn_out_tolerance", attn_out_atol}, {"ok", errors.ok()}};
}

absl::StatusOr<int> Run(const Tool& tool, const Flags& flags) {
  const auto open = ToOpenOptions(flags.model);
  if (!open.ok()) return open.status();
  bool all_ok = true;
  bool bad_input = false;
  for (const std::string& folder : flags.folders) {
    const absl::StatusOr<model::OracleErrors> errors = model::CheckOracle(folder, *open, flags.chunk);
    if (errors.ok()) {
      all_ok = all_ok && errors->ok();
      std::cout << JsonLine(Report(folder, *errors)) << std::flush;
      continue;
    }
    all_ok = false;
    const int code = Fail(tool, "check-oracle", errors.status());
    // No backend or device: no folder would fare better.
    if (code == kExitUnavailable) return code;
    bad_input = code == kExitBadInput || bad_input;
    std::cout << JsonLine({{"oracle", NameOfFolder(folder)},
                           {"max_abs_err", nullptr},
                           {"tolerance", nullptr},
                           {"ok", false},
                           {"error", std::string(errors.status().message())}})
              << std::flush;
  }
  if (bad_input) return kExitBadInput;
  return all_ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

void AddCheckOracle(CLI::App& app, Tool& tool) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* sub = app.add_subcommand("check-oracle", "Compare checkpoints with their expected.safetensors");
  sub->add_option("folders", flags->folders, "checkpoint directories with expected.safetensors")->required();
  sub->add_option("--chunk", flags->chunk, "tokens in a step, 0 = all; changes no result")
      ->check(WholeNumber(0, INT64_MAX))
      ->capture_default_str();
  AddModelFlags(*sub, flags->model);
  sub->add_flag("--json")->description("no effect: prints JSON Lines anyway");
  sub->footer("Example:\n  iha-eval check-oracle oracles/global_mha oracles/local_w7 --chunk 5");
  sub->callback([flags, &tool] {
    const absl::StatusOr<int> code = Run(tool, *flags);
    tool.exit_code = code.ok() ? *code : Fail(tool, "check-oracle", code.status());
  });
}

}  // namespace iha::tools
