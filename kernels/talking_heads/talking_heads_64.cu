#include "kernels/talking_heads/talking_heads.cuh"

namespace iha::kernels {

TalkingHeadsGpuParts TalkingHeadsGpu64() { return {LaunchScores<64>, LaunchValues<64>}; }

}  // namespace iha::kernels
