// grpc_client_api.h: ClientApi over gRPC: what submit, watch, status, cancel, list and table call.
//
// Blocking, with the caller's retry policy; thread: any. Errors: the coordinator's, or Unavailable (caller.h).
#pragma once

#include <memory>

#include "common/coordinator_api.h"
#include "proto/link/caller.h"

namespace iha::cli {

std::unique_ptr<ClientApi> MakeGrpcClientApi(std::unique_ptr<link::Caller> caller);

}  // namespace iha::cli
