// grpc_status.h: absl::Status <-> grpc::Status. The codes are the same numbers; messages are cut to what fits into a
// trailer. Pure; thread: any.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace iha::link {

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace iha::link
