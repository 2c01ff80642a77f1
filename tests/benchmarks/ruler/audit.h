// audit.h: what a seeded row of each task must be, read back from its text alone.
#pragma once

#include "benchmarks/ruler/generate.h"

namespace iha::benchmarks::ruler {

// Makes rows 0 .. rows - 1 of every task at `length` and fails the test for each that is not as it must be.
void AuditSeededRows(const std::string& data, const std::string& cases, int64_t length, int64_t rows);

}  // namespace iha::benchmarks::ruler
