// flag_checks.h: the checks of flags that take a number. They say what was found and what is expected, and refuse what
// the parser's own conversion bends into range (99999999999999999999) or lets through (nan). Thread: main.
#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}

namespace iha {

// Decimal digits with an optional sign.
CLI::Validator WholeNumber(int64_t low, uint64_t high);
// As strtod reads it, all of the text; never nan.
CLI::Validator RealNumber(double low, double high);

}  // namespace iha
