// torch_ops_util.h: torch.ops.iha in tests: loaded once, called by name.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace iha::torch_ops::testing {

// The results of an operator of the loaded library.
inline std::vector<at::Tensor> CallAll(const char* op, torch::jit::Stack arguments) {
  static void* const library = dlopen(IHA_TORCH_OPS, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow((std::string("iha::") + op).c_str(), "");
  // What is left out takes its default.
  const auto& schema = handle.schema().arguments();
  for (size_t i = arguments.size(); i < schema.size(); i++) arguments.push_back(*schema[i].default_value());
  handle.callBoxed(arguments);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : arguments) results.push_back(value.toTensor());
  return results;
}
inline at::Tensor Call(const char* op, torch::jit::Stack arguments) { return CallAll(op, std::move(arguments)).at(0); }

inline at::Tensor Random(at::IntArrayRef sizes) { return at::randn(sizes); }

// The largest difference, relative to the largest value.
inline double Worst(const at::Tensor& got, const at::Tensor& want) {
  EXPECT_EQ(got.sizes(), want.sizes());
  if (got.sizes() != want.sizes()) return 1e9;
  const at::Tensor difference = (got.to(at::kDouble) - want.to(at::kDouble)).abs();
  return difference.max().item<double>() / want.to(at::kDouble).abs().max().item<double>();
}

}  // namespace iha::torch_ops::testing
