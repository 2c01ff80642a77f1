// parts.h: readers of messages that are fields of others; for the codec's own files only.
#pragma once

#include <vector>

#include "proto/codec/check.h"
#include "proto/codec/codec.h"

namespace iha::codec {

SamplingParams Read(const wire::SamplingParams& in, const Check& at);
SweepEntry Read(const wire::SweepEntry& in, const Check& at);
ModelRef Read(const wire::ModelRef& in, const Check& at);
SweepSpec Read(const wire::SweepSpec& in, const Check& at);
JobSpec Read(const wire::JobSpec& in, const Check& at);
Generation Read(const wire::Generation& in, const Check& at);
ItemResult Read(const wire::ItemResult& in, const Check& at);
JobTelemetry Read(const wire::Telemetry& in, const Check& at);
void Write(const JobTelemetry& in, wire::Telemetry* out);
Fence Read(const wire::Fence& in, const Check& at);
void Write(const Fence& in, wire::Fence* out);
ShardId ReadShard(int64_t shard, const Check& at);

// Names below the models root: relative, no empty, "." or ".." component.
std::string ReadModelName(const char* field, const std::string& value, const Check& at);

// Repeated strings, each checked as a name.
template <class Repeated>
std::vector<std::string> ReadNames(const char* field, const Repeated& in, const Check& at) {
  std::vector<std::string> names;
  if (!at.Count(field, in.size(), kMaxListed)) return names;
  names.reserve(static_cast<size_t>(in.size()));
  for (const std::string& name : in) names.push_back(at.Name(field, name));
  return names;
}

// The value, or the first failure of its message.
template <class T>
absl::StatusOr<T> Checked(absl::Status status, T value) {
  if (!status.ok()) return status;
  return value;
}

// Reads a whole message with the Read overload of its type.
template <class Wire>
auto ReadMessage(const char* name, const Wire& in) {
  absl::Status status;
  auto value = Read(in, Check(name, &status));
  return Checked(std::move(status), std::move(value));
}

}  // namespace iha::codec
