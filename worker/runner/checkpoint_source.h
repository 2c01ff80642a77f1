// checkpoint_source.h: checkpoints in folders, for the exact CPU engine, GPUs and the torch backend (and
// folders of type iha_fake, for dry runs).
//
// A name is looked up among the given folders first, then below the models root; "..", absolute paths and links that
// leave the root are refused. Digests are computed once a folder and kept. Blocking; one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/eval_types.h"
#include "worker/runner/model_source.h"

namespace iha::worker {

struct CheckpointSourceOptions {
  std::map<std::string, std::string> folders;  // name -> folder
  std::string models_root;                     // "" = none
  int threads = 1;
  std::string device = "cpu";    // or emulated, cuda, cuda:N
  const Clock* clock = nullptr;  // of the models' profiles; null = none. Must outlive them
  bool profile_device = false;   // model::OpenOptions
};

class CheckpointSource final : public ModelSource {
 public:
  explicit CheckpointSource(CheckpointSourceOptions options);

  std::vector<std::string> NumericsIds() const override;
  absl::StatusOr<ModelOffer> Offer(const std::string& name) override;
  absl::StatusOr<LoadedModel> Load(const std::string& name, const std::string& numerics_id, int64_t positions) override;

 private:
  absl::StatusOr<std::string> FolderOf(const std::string& name) const;

  const CheckpointSourceOptions options_;
  std::map<std::string, NumericsSpec> numerics_;  // by id
  std::map<std::string, ModelOffer> offers_;      // by name
};

}  // namespace iha::worker
