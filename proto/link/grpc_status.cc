#include "proto/link/grpc_status.h"

#include <string>

namespace iha::link {

grpc::Status ToGrpc(const absl::Status& status) {
  // gRPC percent-encodes messages, and peers commonly refuse more than 8 KiB of metadata.
  constexpr size_t kMaxMessage = 2048;
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()).substr(0, kMaxMessage));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace iha::link
