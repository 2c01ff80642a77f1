#include "kernels/talking_heads/talking_heads.cuh"

namespace iha::kernels {

TalkingHeadsGpuParts TalkingHeadsGpu128() { return {LaunchScores<128>, LaunchValues<128>}; }

}  // namespace iha::kernels
