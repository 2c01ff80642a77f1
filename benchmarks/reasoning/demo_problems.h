// demo_problems.h: the bundled set of `gsm8k_demo`: 24 one-step word problems and 5 worked exemplars in GSM8K's answer
// style, so that a newcomer gets a real table without any data. Written for iha-eval; too easy to measure anything.
#pragma once

#include <span>

#include "benchmarks/reasoning/problem_pool.h"

namespace iha::benchmarks {

std::span<const BundledProblem> DemoProblems();
std::span<const BundledProblem> DemoExemplars();

}  // namespace iha::benchmarks
