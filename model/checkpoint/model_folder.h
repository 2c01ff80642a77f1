// model_folder.h: what a model's folder holds, by its config.json: a checkpoint, or a stand-in of the fake backend.
//
// Both have weights with a digest. Blocking; thread: any.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/digest.h"

namespace iha::checkpoint {

// config.json's model_type of the fake backend (model/fake_model.h), for tests and dry runs.
inline constexpr char kFakeModelType[] = "iha_fake";

// Of a folder whose config.json cannot be read too: who reads it in full says what is wrong with it.
bool IsFakeFolder(const std::string& folder);

// The context that the model was made for, in tokens. Errors of Checkpoint::Open; a fake folder's config.json alone is
// read.
absl::StatusOr<int64_t> ContextTokensOf(const std::string& folder);
// Reads every weight. Errors of Checkpoint::Open.
absl::StatusOr<Digest> WeightsDigestOf(const std::string& folder);
// The digest of fake weights: config.json decides everything about them.
Digest FakeWeightsDigest(const std::string& config_json);

}  // namespace iha::checkpoint
