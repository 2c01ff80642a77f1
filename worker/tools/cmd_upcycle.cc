// upcycle: a checkpoint with ordinary attention to one with IHA, equal in function.
#include <CLI/CLI.hpp>
#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/shutdown.h"
#include "common/text.h"
#include "model/checkpoint/upcycle.h"
#include "worker/tools/tool.h"

namespace iha::tools {
namespace {

using checkpoint::AlphaLayout;
using checkpoint::CollapseKind;

struct Flags {
  std::string model;
  std::string out;
  std::string kind;
  std::string layers = "all";
  checkpoint::UpcycleOptions options;
  bool json = false;
};

// "0-3,5" or "all". CLI11 has no type for it.
std::string ParseLayers(const std::string& text, std::optional<std::vector<int64_t>>* layers) {
  const std::string problem = fmt::format("found {}; expected all, or layer numbers as 0-3,5", text);
  if (text == "all") return "";
  std::vector<int64_t> result;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const size_t dash = item.find('-');
    int64_t first = 0, last = 0;
    if (!CLI::detail::lexical_cast(item.substr(0, dash), first)) return problem;
    last = first;
    if (dash != std::string::npos && !CLI::detail::lexical_cast(item.substr(dash + 1), last)) return problem;
    if (first < 0 || last < first || last >= 4096) return problem;
    for (int64_t layer = first; layer <= last; ++layer) result.push_back(layer);
  }
  if (result.empty() || text.back() == ',') return problem;
  *layers = std::move(result);
  return "";
}

int Run(const Tool& tool, const Flags& flags) {
  std::atomic<bool> stop = false;
  checkpoint::UpcycleOptions options = flags.options;
  options.stop = &stop;
  ShutdownSignals signals;
  signals.Watch([&stop] { stop = true; });
  const absl::StatusOr<checkpoint::UpcycleResult> result = checkpoint::Upcycle(flags.model, flags.out, options);
  if (!result.ok()) return Fail(tool, "upcycle", result.status());
  std::cerr << fmt::format("wrote {}: {} layers of kind iha, P={}, {} parameters\n", TerminalSafe(flags.out),
                           result->layers, flags.options.pseudo_heads, result->parameters);
  if (flags.json) {
    const nlohmann::ordered_json json = {{"out", flags.out},
                                         {"iha_layers", result->layers},
                                         {"parameters", result->parameters},
                                         {"source_digest", result->source.Hex()},
                                         {"digest", result->digest.Hex()}};
    std::cout << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  }
  return kExitOk;
}

void AddVariantFlags(CLI::App& app, Flags& flags) {
  checkpoint::UpcycleOptions& options = flags.options;
  app.add_option("--kind", flags.kind, "kind of attention to make")->check(CLI::IsMember({"iha"}))->required();
  app.add_option("--pseudo-heads", options.pseudo_heads, "P")->check(WholeNumber(1, 4096))->required();
  app.add_option("--layers", flags.layers, "which layers, as 0-3,5; others stay as they are")
      ->capture_default_str()
      ->check([&options](const std::string& text) { return ParseLayers(text, &options.layers); });
  app.add_option("--alpha-layout", options.alpha_layout, "order of the axes of alpha")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, AlphaLayout>{{"source_target_pseudo", AlphaLayout::kSourceTargetPseudo},
                                             {"target_pseudo_source", AlphaLayout::kTargetPseudoSource}}))
      ->default_str("source_target_pseudo");
  app.add_option("--collapse", options.collapse, "form of the collapse")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, CollapseKind>{{"per_head", CollapseKind::kPerHead}, {"global", CollapseKind::kGlobal}}))
      ->default_str("per_head");
}

}  // namespace

void AddUpcycle(CLI::App& app, Tool& tool) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* sub = app.add_subcommand("upcycle", "Make an IHA checkpoint that computes the same function");
  sub->add_option("--model", flags->model, "checkpoint directory")->required();
  AddVariantFlags(*sub, *flags);
  sub->add_flag("--expand-kv", flags->options.expand_kv,
                "repeat key and value heads until there are as many as query heads (IHA needs that)");
  sub->add_option("--noise", flags->options.noise, "for experiments: add S * z to every entry of the mixers")
      ->check(RealNumber(0, 1e6))
      ->capture_default_str();
  sub->add_option("--seed", flags->options.seed, "of the noise")
      ->check(WholeNumber(0, UINT64_MAX))
      ->capture_default_str();
  sub->add_option("--out", flags->out, "directory to write; must not exist")->required();
  sub->add_flag("--json", flags->json, "one JSON object with the digests");
  sub->footer("Example:\n  iha-eval upcycle --model DIR --kind iha --pseudo-heads 2 --expand-kv --out DIR-iha-p2");
  sub->callback([flags, &tool] { tool.exit_code = Run(tool, *flags); });
}

}  // namespace iha::tools
