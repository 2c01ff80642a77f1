// Any bytes as a .safetensors file: refused in one line, or every view lies inside the file and can be read.
#include <cstdlib>

#include "model/checkpoint/safetensors.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace iha::checkpoint;
  const iha::testing::MemoryFile memory(data, size);
  const auto file = Safetensors::Open(memory.path());
  if (!file.ok()) {
    if (file.status().message().find('\n') != std::string::npos) abort();
    return 0;
  }
  unsigned sum = 0;
  size_t total = 0;
  for (const auto& [name, view] : file->tensors()) {
    for (const std::byte byte : view.bytes) sum += std::to_integer<unsigned>(byte);
    total += view.bytes.size();
    std::vector<float> widened(static_cast<size_t>(view.elements()));
    (void)WidenToF32(view, widened);
  }
  if (total > size || sum == ~0U) abort();  // tensors tile the file: never more bytes than it has
  return 0;
}
