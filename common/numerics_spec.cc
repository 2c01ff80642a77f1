#include "common/numerics_spec.h"

#include <fmt/format.h>

#include <charconv>

namespace iha {
namespace {

// Version of the exact numeric rules (docs/contracts/numerics.md). A change of any bit that they give changes it.
constexpr int kNumericsVersion = 2;
// Version of how the torch backend calls LibTorch.
constexpr int kTorchBackendVersion = 1;

}  // namespace

std::string TorchBackendName(int sm) { return sm == 0 ? "torch" : fmt::format("torch-cuda-sm_{}", sm); }

bool IsTorchCudaName(std::string_view backend) {
  constexpr std::string_view kPrefix = "torch-cuda-sm_";
  int sm = 0;
  if (!backend.starts_with(kPrefix)) return false;
  const std::string_view digits = backend.substr(kPrefix.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), sm);
  return error == std::errc() && sm > 0 && backend == TorchBackendName(sm);
}

std::string NumericsSpec::Id() const {
  const std::string version =
      torch() ? fmt::format("{}-torch{}", kTorchBackendVersion, kTorchVersion) : std::to_string(kNumericsVersion);
  return fmt::format("{}/{}/weights={}/act={}/kv={}", backend, version, weights_dtype, activation_dtype, kv_dtype);
}

}  // namespace iha
