// torch-backend: what LibTorch is called on a device, as numerics ids have it; iha-eval run asks.
#include <CLI/CLI.hpp>
#include <iostream>

#include "worker/tools/tool.h"

namespace iha::tools {

void AddTorchBackend(CLI::App& app, Tool& tool) {
  const auto device = std::make_shared<std::string>("cpu");
  CLI::App* sub = app.add_subcommand("torch-backend", "Print the backend's name of torch numerics on a device");
  sub->add_option("--device", *device, "cpu, cuda or cuda:N")->capture_default_str();
  sub->footer("Example:\n  iha-tool torch-backend --device cuda");
  sub->callback([device, &tool] {
    const absl::StatusOr<std::string> backend = model::TorchBackendOn(*device);
    if (!backend.ok()) {
      tool.exit_code = Fail(tool, "torch-backend", backend.status());
      return;
    }
    std::cout << *backend << "\n";
  });
}

}  // namespace iha::tools
