#include "common/numerics_spec.h"

#include <fmt/format.h>

#include <charconv>

namespace iha {
namespace {

// Version of the exact numeric rules (docs/contracts/numerics.md). A change of any bit that they give changes it.
constexpr int kNumericsVersion = 2;
// Version of how the torch backend calls LibTorch.
constexpr int kTorchBackendVersion = 1;
// Version of which sums cuda-fast leaves to whom, and how it splits.
constexpr int kFastVersion = 1;

// Whether it is `prefix` and the number of an architecture as fmt writes it.
bool NamesArchitecture(std::string_view backend, std::string_view prefix) {
  int sm = 0;
  if (!backend.starts_with(prefix)) return false;
  const std::string_view digits = backend.substr(prefix.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), sm);
  return error == std::errc() && sm > 0 && digits == std::to_string(sm);
}

}  // namespace

std::string TorchBackendName(int sm) { return sm == 0 ? "torch" : fmt::format("torch-cuda-sm_{}", sm); }

bool IsTorchCudaName(std::string_view backend) { return NamesArchitecture(backend, "torch-cuda-sm_"); }

std::string CudaExactName(int sm) { return fmt::format("cuda-exact-sm_{}", sm); }

bool IsCudaExactName(std::string_view backend) { return NamesArchitecture(backend, "cuda-exact-sm_"); }

std::string CudaFastName(int sm) { return fmt::format("cuda-fast-sm_{}", sm); }

bool IsCudaFastName(std::string_view backend) { return NamesArchitecture(backend, "cuda-fast-sm_"); }

std::optional<int> CudaIndexOf(std::string_view device) {
  constexpr std::string_view kCuda = "cuda", kIndexed = "cuda:";
  if (device == kCuda) return 0;
  if (!device.starts_with(kIndexed)) return std::nullopt;
  const std::string_view digits = device.substr(kIndexed.size());
  int index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || index < 0 || index >= 128) return std::nullopt;
  return index;
}

std::string NumericsSpec::Id() const {
  const int number = torch() ? kTorchBackendVersion : fast() ? kFastVersion : kNumericsVersion;
  const bool libraries = torch() || cuda_fast();
  const std::string version = libraries ? fmt::format("{}-torch{}", number, kTorchVersion) : std::to_string(number);
  return fmt::format("{}/{}/weights={}/act={}/kv={}", backend, version, weights_dtype, activation_dtype, kv_dtype);
}

}  // namespace iha
