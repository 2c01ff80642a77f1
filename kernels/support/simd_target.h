// simd_target.h: which vector instruction set the kernels dispatch to, and how a test picks another.
//
// Every target gives the same bits; the choice and SimdBuild go into the run record only. Forcing changes the whole
// process: call it while no kernel runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace iha::kernels {

struct SimdTarget {
  int64_t id = 0;
  std::string name;        // "AVX3", "AVX2", "EMU128", ...
  bool vectorized = true;  // false: scalar std::fma, slow
};

// Compiled in and supported by this machine, best first.
std::vector<SimdTarget> SimdTargets();
// The one that dispatch picks now.
SimdTarget CurrentSimdTarget();
// What the vector code was compiled with: "Highway 1.0.3, GCC 12.2.0".
std::string SimdBuild();
// id from SimdTargets(); 0 returns to automatic choice.
void ForceSimdTargetForTest(int64_t id);

}  // namespace iha::kernels
