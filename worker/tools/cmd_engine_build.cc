// engine-build: which vector instructions the kernels use here, and what they were built with; iha-eval run asks.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "model/engine_build.h"
#include "worker/tools/tool.h"

namespace iha::tools {

void AddEngineBuild(CLI::App& app, Tool&) {
  CLI::App* sub =
      app.add_subcommand("engine-build", "Print the kernels' vector instructions and build: one JSON object");
  sub->footer("Example:\n  iha-tool engine-build");
  sub->callback([] {
    const EngineBuild build = model::ThisEngineBuild();
    std::cout << nlohmann::ordered_json{{"simd", build.simd}, {"build", build.build}}.dump() << "\n";
  });
}

}  // namespace iha::tools
