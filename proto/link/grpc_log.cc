#include "proto/link/grpc_log.h"

#include <grpc/support/log.h>

namespace iha::link {

void SilenceGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace iha::link
