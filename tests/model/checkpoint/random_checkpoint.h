// random_checkpoint.h: a small checkpoint with random weights of any config, for tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/canonical.h"
#include "common/rng.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/safetensors.h"
#include "tests/model/checkpoint/test_files.h"

namespace iha::checkpoint::testing {

// Uniform in +-1 by name of the tensor: the same in every checkpoint that has one of that name and size. F16: of any
// exponent from 2^-16 (subnormal) to 1, so that most values fit no other 16-bit type.
inline std::vector<std::byte> RandomTensor(const TensorPlan& plan) {
  size_t elements = 1;
  for (const int64_t size : plan.shape) elements *= static_cast<size_t>(size);
  PhiloxStream stream(CanonicalWriter("iha.test.tensor", 1).String(plan.name).Hash().Prefix64());
  if (plan.dtype == DType::kF16) {
    std::vector<uint16_t> halves;
    for (size_t i = 0; i < elements; ++i) {
      const auto draw = static_cast<uint16_t>(stream.NextUniform() * (15 << 11));
      halves.push_back(static_cast<uint16_t>((draw & 1) << 15 | draw >> 1));
    }
    const std::span<const std::byte> bytes = std::as_bytes(std::span(halves));
    return {bytes.begin(), bytes.end()};
  }
  std::vector<float> values(elements);
  for (float& value : values) value = static_cast<float>(2 * stream.NextUniform() - 1);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  if (plan.dtype == DType::kF32) return {bytes.begin(), bytes.end()};
  std::vector<uint16_t> rounded;
  for (const float value : values) rounded.push_back(F32ToBF16(value));
  const std::span<const std::byte> halves = std::as_bytes(std::span(rounded));
  return {halves.begin(), halves.end()};
}

// config.json and the weights that it calls for, F32, BF16 or F16, in `shards` files.
inline void WriteRandomCheckpoint(const std::string& folder, const std::string& config_text, DType dtype = DType::kF32,
                                  size_t shards = 1) {
  std::filesystem::create_directories(folder);
  WriteText(folder + "/config.json", config_text);
  const auto config = ParseModelConfig(config_text);
  ASSERT_TRUE(config.ok()) << config.status();
  const std::vector<TensorSpec> specs = RequiredTensors(*config);
  std::string map;
  for (size_t shard = 0; shard < shards; ++shard) {
    const std::string name =
        shards == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
    std::vector<std::vector<std::byte>> bytes;
    std::vector<NamedTensor> tensors;
    bytes.reserve(specs.size());
    for (size_t i = shard; i < specs.size(); i += shards) {
      const TensorPlan plan{specs[i].name, dtype, specs[i].shape};
      bytes.push_back(RandomTensor(plan));
      tensors.push_back({plan, bytes.back()});
      map += fmt::format("{}\"{}\": \"{}\"", map.empty() ? "" : ", ", plan.name, name);
    }
    const absl::Status status = WriteSafetensors(folder + "/" + name, tensors);
    ASSERT_TRUE(status.ok()) << status;
  }
  if (shards > 1) WriteText(folder + "/model.safetensors.index.json", fmt::format("{{\"weight_map\": {{{}}}}}", map));
}

// The checkpoint in `from` with every tensor widened to F32.
inline void WriteWidened(const std::string& from, const std::string& to) {
  std::filesystem::create_directories(to);
  WriteText(to + "/config.json", ReadText(from + "/config.json"));
  const auto checkpoint = Checkpoint::Open(from);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  values.reserve(checkpoint->tensors().size());
  for (const auto& [name, view] : checkpoint->tensors()) {
    values.emplace_back(static_cast<size_t>(view.elements()));
    ASSERT_TRUE(WidenToF32(view, values.back()).ok());
    tensors.push_back({{name, DType::kF32, view.shape}, std::as_bytes(std::span(values.back()))});
  }
  const absl::Status status = WriteSafetensors(to + "/model.safetensors", tensors);
  ASSERT_TRUE(status.ok()) << status;
}

}  // namespace iha::checkpoint::testing
