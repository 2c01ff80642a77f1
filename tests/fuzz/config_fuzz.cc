// Any bytes as config.json: refused in one line, or a config from which everything that follows can be computed.
#include <cstdlib>
#include <string_view>

#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/inspect.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace iha::checkpoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ParseGenerationConfig(text);
  const auto config = ParseModelConfig(text);
  if (!config.ok()) {
    if (config.status().message().find('\n') != std::string::npos) abort();
    return 0;
  }
  if (config->layers.empty() || config->ropes.empty() || config->head_dim % 2 != 0 ||
      config->num_heads % config->num_kv_heads != 0 || CountParameters(*config).total() <= 0) {
    abort();
  }
  for (const LayerSpec& layer : config->layers) {
    if (layer.rope < 0 || static_cast<size_t>(layer.rope) >= config->ropes.size()) abort();
  }
  for (const RopeSpec& rope : config->ropes) (void)InverseFrequencies(rope, config->head_dim);
  (void)config->FunctionBytes();
  (void)DescribeLayer(*config, config->layers.back());
  (void)ModelFlops(*config, 1000);
  return 0;
}
