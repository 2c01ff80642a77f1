#include "model/engine_build.h"

#include "kernels/support/simd_target.h"

namespace iha::model {

EngineBuild ThisEngineBuild() { return {.simd = kernels::CurrentSimdTarget().name, .build = kernels::SimdBuild()}; }

}  // namespace iha::model
