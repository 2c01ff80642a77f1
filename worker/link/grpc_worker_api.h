// grpc_worker_api.h: WorkerApi over gRPC: a worker's only way to the coordinator.
//
// Large requests are cut into messages below the limits of proto/codec/limits.h and large answers are fetched in pages.
// Blocking, with the caller's retry policy; heartbeats make one attempt, since the next one is due soon. Thread: any.
#pragma once

#include <memory>

#include "common/coordinator_api.h"
#include "proto/link/caller.h"

namespace iha::worker {

std::unique_ptr<WorkerApi> MakeGrpcWorkerApi(std::unique_ptr<link::Caller> caller);

}  // namespace iha::worker
