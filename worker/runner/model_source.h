// model_source.h: where a worker finds checkpoints, and what it needs of one to run it.
//
// Implementation for folders on disk: checkpoint_source.h. Blocking; used by the worker's loop thread only.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/coordinator_api.h"
#include "model/open_model.h"

namespace iha::worker {

using LoadedModel = model::OpenedModel;  // the backend is moved into the engine

class ModelSource {
 public:
  virtual ~ModelSource() = default;
  // Every numerics id that Load accepts.
  virtual std::vector<std::string> NumericsIds() const = 0;
  // Digests of the named checkpoint. NotFound: this worker does not have it. Others: it has it and it is bad; the
  // message says why.
  virtual absl::StatusOr<ModelOffer> Offer(const std::string& name) = 0;
  // `positions`: so many must be runnable, also beyond the context that the checkpoint was made for; 0 = that one.
  virtual absl::StatusOr<LoadedModel> Load(const std::string& name, const std::string& numerics_id,
                                           int64_t positions) = 0;
};

}  // namespace iha::worker
