// torch-backend, cuda-backend, cuda-fast-backend: what LibTorch and our kernels are called on a device, as numerics ids
// have it; iha-eval run asks.
#include <CLI/CLI.hpp>
#include <iostream>

#include "common/flag_checks.h"
#include "worker/tools/tool.h"

namespace iha::tools {
namespace {

using BackendOn = absl::StatusOr<std::string> (*)(const std::string& device);

void Add(CLI::App& app, Tool& tool, const std::string& command, const std::string& what, const std::string& devices,
         const std::string& first, BackendOn backend_on) {
  const auto device = std::make_shared<std::string>(first);
  CLI::App* sub = app.add_subcommand(command, "Print the backend's name of " + what + " on a device");
  sub->add_option("--device", *device, devices)->check(DeviceName())->capture_default_str();
  sub->footer("Example:\n  iha-tool " + command + " --device cuda");
  sub->callback([device, command, backend_on, &tool] {
    const absl::StatusOr<std::string> backend = backend_on(*device);
    if (!backend.ok()) {
      tool.exit_code = Fail(tool, command, backend.status());
      return;
    }
    std::cout << *backend << "\n";
  });
}

}  // namespace

void AddTorchBackend(CLI::App& app, Tool& tool) {
  Add(app, tool, "torch-backend", "torch numerics", "cpu, cuda or cuda:N", "cpu", model::TorchBackendOn);
}

void AddCudaBackend(CLI::App& app, Tool& tool) {
  Add(app, tool, "cuda-backend", "exact numerics", "cuda or cuda:N", "cuda", model::CudaBackendOn);
  Add(app, tool, "cuda-fast-backend", "fast numerics", "cuda or cuda:N", "cuda", model::CudaFastBackendOn);
}

}  // namespace iha::tools
