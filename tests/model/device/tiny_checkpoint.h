// tiny_checkpoint.h: checkpoints of random weights for a config, of sizes that an emulated device can run.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/safetensors.h"
#include "tests/model/checkpoint/test_files.h"

namespace iha::model::testing {

// config.json and model.safetensors (F32) into an existing folder: norms about 1, everything else such that products
// keep the size of what they multiply.
inline absl::Status WriteTinyCheckpoint(const std::string& folder, const std::string& config_json, uint32_t seed = 1) {
  IHA_ASSIGN_OR_RETURN(const checkpoint::ModelConfig config, checkpoint::ParseModelConfig(config_json));
  checkpoint::testing::WriteText(folder + "/config.json", config_json);
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> values;
  std::vector<checkpoint::NamedTensor> tensors;
  for (const checkpoint::TensorSpec& spec : checkpoint::RequiredTensors(config)) {
    size_t count = 1;
    for (const int64_t n : spec.shape) count *= static_cast<size_t>(n);
    const bool norm = spec.name.find("norm") != std::string::npos || spec.name.find("subln") != std::string::npos;
    const bool embedding = spec.name.find("embed_tokens") != std::string::npos;
    const float scale = norm ? 0.1f : embedding ? 1.0f : 1 / std::sqrt(static_cast<float>(spec.shape.back()));
    const float mean = norm && !config.norm_plus_one ? 1.0f : 0.0f;
    std::vector<float>& tensor = values.emplace_back(count);
    for (float& v : tensor) v = mean + scale * normal(bits);
    tensors.push_back(
        {.plan = {.name = spec.name, .dtype = checkpoint::DType::kF32, .shape = spec.shape}, .bytes = {}});
  }
  for (size_t i = 0; i < tensors.size(); i++) tensors[i].bytes = std::as_bytes(std::span<const float>(values[i]));
  return checkpoint::WriteSafetensors(folder + "/model.safetensors", tensors);
}

inline std::vector<int32_t> RandomIds(size_t n, int32_t vocabulary, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < n; i++) ids.push_back(static_cast<int32_t>(bits() % static_cast<uint32_t>(vocabulary)));
  return ids;
}

}  // namespace iha::model::testing
