#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/support/simd_target.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "kernels/support/lanes-inl.h"
#include "kernels/support/simd_target.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {
int64_t TargetId() { return HWY_TARGET; }
}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(TargetId);

namespace {
SimdTarget Describe(int64_t id) {
  return {id, hwy::TargetName(id), id != HWY_EMU128 && id != HWY_SCALAR && id != HWY_SSSE3 && id != HWY_SSE4};
}
}  // namespace

std::vector<SimdTarget> SimdTargets() {
  std::vector<SimdTarget> targets;
  for (const auto id : hwy::SupportedAndGeneratedTargets()) targets.push_back(Describe(id));
  return targets;
}

SimdTarget CurrentSimdTarget() { return Describe(HWY_DYNAMIC_DISPATCH(TargetId)()); }

std::string SimdBuild() {
#ifdef __clang__
  constexpr const char* kCompiler = "";  // its version begins with its name
#else
  constexpr const char* kCompiler = "GCC ";
#endif
  return "Highway " + std::to_string(HWY_MAJOR) + "." + std::to_string(HWY_MINOR) + "." + std::to_string(HWY_PATCH) +
         ", " + kCompiler + __VERSION__;
}

void ForceSimdTargetForTest(int64_t id) {
  hwy::SetSupportedTargetsForTest(id);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace iha::kernels
#endif
