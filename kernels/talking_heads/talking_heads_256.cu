#include "kernels/talking_heads/talking_heads.cuh"

namespace iha::kernels {

TalkingHeadsGpuParts TalkingHeadsGpu256() { return {LaunchScores<256>, LaunchValues<256>}; }

}  // namespace iha::kernels
