// machine-peak: what this machine's CPU can do at most; iha-eval run --profile asks.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/flag_checks.h"
#include "model/machine_peak.h"
#include "worker/tools/tool.h"

namespace iha::tools {

void AddMachinePeak(CLI::App& app, Tool& tool) {
  const auto threads = std::make_shared<int>(1);
  CLI::App* sub = app.add_subcommand("machine-peak", "Measure fp32 fma and read bandwidth: one JSON object");
  sub->add_option("--threads", *threads, "that work at once")->check(WholeNumber(1, 4096))->capture_default_str();
  sub->footer("Example:\n  iha-tool machine-peak --threads 2");
  sub->callback([threads, &tool] {
    const absl::StatusOr<MachinePeak> peak = model::MeasureMachinePeak(*threads);
    if (!peak.ok()) {
      tool.exit_code = Fail(tool, "machine-peak", peak.status());
      return;
    }
    std::cout << nlohmann::ordered_json{{"threads", peak->threads},
                                        {"fma_gflops", peak->fma_gflops},
                                        {"read_gbs", peak->read_gbs}}
                     .dump()
              << "\n";
  });
}

}  // namespace iha::tools
