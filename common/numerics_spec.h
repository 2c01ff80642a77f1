// numerics_spec.h: what decides the bits of a model's results beside its weights, and the id of it.
//
// Pure values; thread: any. Source: DESIGN section 5, docs/contracts/numerics.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace iha {

// The LibTorch that the torch backend is built against (tools/deps/libtorch.pypi).
inline constexpr char kTorchVersion[] = "2.11.0";

// The backend that LibTorch is: on the CPU (sm 0) "torch"; on a GPU of compute capability 9.0 (sm 90)
// "torch-cuda-sm_90", since its kernels differ by architecture.
std::string TorchBackendName(int sm);
// Whether TorchBackendName of some architecture gives it.
bool IsTorchCudaName(std::string_view backend);
// What a sweep says that leaves the architecture to the host that runs it; in no numerics id.
inline constexpr char kTorchCudaHere[] = "torch-cuda";
// Our kernels on a GPU of compute capability 9.0 (sm 90): "cuda-exact-sm_90" (docs/contracts/device.md).
std::string CudaExactName(int sm);
bool IsCudaExactName(std::string_view backend);
inline constexpr char kCudaExactHere[] = "cuda-exact";  // as kTorchCudaHere
// The same with the libraries' products and attention where they serve, keys of decode steps split: "cuda-fast-sm_90".
std::string CudaFastName(int sm);
bool IsCudaFastName(std::string_view backend);
inline constexpr char kCudaFastHere[] = "cuda-fast";  // as kTorchCudaHere
// N of "cuda:N", 0 of "cuda"; nullopt: no name of a CUDA device.
std::optional<int> CudaIndexOf(std::string_view device);
// The kernels for the device, run by the emulator (docs/contracts/device.md).
inline constexpr char kEmulatedBackend[] = "cuda-emulated";
// What of cuda-fast the emulator can run: keys of decode steps split.
inline constexpr char kEmulatedFastBackend[] = "cuda-fast-emulated";
inline constexpr char kEmulatedDevice[] = "emulated";  // its name in flags

struct NumericsSpec {
  // cpu-exact | cuda-exact-sm_NN | cuda-fast-sm_NN | cuda-emulated | cuda-fast-emulated | torch | torch-cuda-sm_NN |
  // fake
  std::string backend = "cpu-exact";
  std::string weights_dtype = "stored";  // widened exactly
  std::string activation_dtype = "f32";
  std::string kv_dtype = "f32";
  bool operator==(const NumericsSpec&) const = default;
  // "cpu-exact/1/weights=stored/act=f32/kv=f32": version of the numeric rules included (docs/contracts/numerics.md).
  // torch, cuda-fast-sm_NN: "torch/1-torch2.11.0/...", LibTorch's version as well, since its operations (and the
  // libraries that come with it) decide the bits.
  std::string Id() const;
  bool torch_cuda() const { return IsTorchCudaName(backend) || backend == kTorchCudaHere; }
  bool torch() const { return backend == "torch" || torch_cuda(); }
  bool cuda_exact() const { return IsCudaExactName(backend) || backend == kCudaExactHere; }
  bool cuda_fast() const { return IsCudaFastName(backend) || backend == kCudaFastHere; }
  bool emulated() const { return backend == kEmulatedBackend || backend == kEmulatedFastBackend; }
  // Whether our kernels run it on a GPU.
  bool cuda() const { return cuda_exact() || cuda_fast(); }
  // Whether the kernels for the device run it, on a GPU or under the emulator.
  bool on_device() const { return cuda() || emulated(); }
  // Whether rows are computed in orders of sums that the step's other rows change.
  bool fast() const { return cuda_fast() || backend == kEmulatedFastBackend; }
  // Whether every bit is promised equal on a repeat (DESIGN section 5).
  bool exact() const { return !fast() && !torch(); }
};

// What `--device emulated` runs: bf16 throughout.
inline NumericsSpec EmulatedNumerics() { return {kEmulatedBackend, "bf16", "bf16", "bf16"}; }
inline NumericsSpec EmulatedFastNumerics() { return {kEmulatedFastBackend, "bf16", "bf16", "bf16"}; }
// What `--device cuda` runs; `backend` is CudaExactName's, CudaFastName's, kCudaExactHere or kCudaFastHere.
inline NumericsSpec CudaNumerics(const std::string& backend) { return {backend, "bf16", "bf16", "bf16"}; }

}  // namespace iha
