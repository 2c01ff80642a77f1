// flag_checks.h: the checks of flags that take a number or a device. They say what was found and what is expected, and
// refuse what the parser's own conversion bends into range (99999999999999999999) or lets through (nan). Thread: main.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class Validator;
}

namespace iha {

// Decimal digits with an optional sign.
CLI::Validator WholeNumber(int64_t low, uint64_t high);
// A device as checkpoints run on it: cpu, emulated, cuda or cuda:N; "auto" as well where it is allowed.
CLI::Validator DeviceName(bool or_auto = false);
// Unavailable: --numerics fast on the CPU, as --device names it.
absl::Status NoFastNumericsOn(const std::string& device);
// As strtod reads it, all of the text; never nan.
CLI::Validator RealNumber(double low, double high);

}  // namespace iha
