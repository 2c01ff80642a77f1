// unary.h: one call in domain types: encode, call under the caller's policy, decode.
#pragma once

#include "common/status_macros.h"
#include "proto/codec/codec.h"
#include "proto/link/caller.h"

namespace iha::link {

// `method` is a unary method of `stub`. The result is what codec::FromWire makes of the reply: StatusOr<domain type>.
template <class Stub, class WireRequest, class WireReply, class Request>
auto Unary(Caller& caller, Stub& stub,
           grpc::Status (Stub::*method)(grpc::ClientContext*, const WireRequest&, WireReply*), const Request& request)
    -> decltype(codec::FromWire(WireReply())) {
  WireRequest out;
  codec::ToWire(request, &out);
  WireReply in;
  IHA_RETURN_IF_ERROR(caller.Call([&](grpc::ClientContext& context) { return (stub.*method)(&context, out, &in); }));
  return codec::FromWire(in);
}

}  // namespace iha::link
