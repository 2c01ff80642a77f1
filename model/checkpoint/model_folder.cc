#include "model/checkpoint/model_folder.h"

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "model/checkpoint/checkpoint.h"

namespace iha::checkpoint {

bool IsFakeFolder(const std::string& folder) {
  const absl::StatusOr<nlohmann::json> config = ReadJsonFile(folder + "/config.json", kMaxConfigBytes);
  return config.ok() && config->is_object() && config->value("model_type", nlohmann::json()) == kFakeModelType;
}

absl::Status CheckModelFolder(const std::string& folder) {
  return IsFakeFolder(folder) ? absl::OkStatus() : Checkpoint::Open(folder).status();
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
