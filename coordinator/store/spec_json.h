// spec_json.h: SweepSpec and JobSpec as the JSON text in the database. Not the user's sweep.json (docs/formats.md): all
// fields are always there, none has a default. Pure; thread: any. Parse errors are DataLoss: only we write this text.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/eval_types.h"

namespace iha::coordinator {

std::string ToJson(const SweepSpec& spec);
std::string ToJson(const JobSpec& spec);
absl::StatusOr<SweepSpec> ParseSweepSpec(const std::string& text);
absl::StatusOr<JobSpec> ParseJobSpec(const std::string& text);
std::string ToJson(const std::vector<std::string>& strings);
absl::StatusOr<std::vector<std::string>> ParseStrings(const std::string& text);

}  // namespace iha::coordinator
