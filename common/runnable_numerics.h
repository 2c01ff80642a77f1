// runnable_numerics.h: what a worker of this installation can run. Looks for backend modules, loads none. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "common/eval_types.h"

namespace iha {

// `device`: cpu, or cuda, cuda:N (the torch backend only).
std::vector<NumericsSpec> RunnableNumerics(const std::string& device);

}  // namespace iha
