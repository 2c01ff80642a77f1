#include "model/checkpoint/model_folder.h"

#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/file.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "model/checkpoint/checkpoint.h"

namespace iha::checkpoint {

bool IsFakeFolder(const std::string& folder) {
  const absl::StatusOr<nlohmann::json> config = ReadJsonFile(folder + "/config.json", kMaxConfigBytes);
  return config.ok() && config->is_object() && config->value("model_type", nlohmann::json()) == kFakeModelType;
}

absl::StatusOr<int64_t> ContextTokensOf(const std::string& folder) {
  if (!IsFakeFolder(folder)) {
    IHA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(folder));
    return checkpoint.config().context_tokens;
  }
  const std::string path = folder + "/config.json";
  IHA_ASSIGN_OR_RETURN(const nlohmann::json config, ReadJsonFile(path, kMaxConfigBytes));
  const auto context = config.find("max_position_embeddings");
  const std::optional<int64_t> tokens = context == config.end() ? std::nullopt : JsonInteger(*context);
  if (tokens.has_value()) return *tokens;
  return InvalidArgument("{}: max_position_embeddings is missing; expected a number of tokens", path);
}

absl::StatusOr<Digest> WeightsDigestOf(const std::string& folder) {
  if (IsFakeFolder(folder)) {
    IHA_ASSIGN_OR_RETURN(const std::string config, ReadRegularFile(folder + "/config.json", kMaxConfigBytes));
    return FakeWeightsDigest(config);
  }
  IHA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(folder));
  return checkpoint.WeightsDigest();
}

Digest FakeWeightsDigest(const std::string& config_json) { return Sha256Of(config_json); }

}  // namespace iha::checkpoint
