// grpc_log.h: gRPC's own stderr lines off: our programs say what failed in one line of their own. For mains only.
#pragma once

namespace iha::link {

void SilenceGrpcLog();

}  // namespace iha::link
