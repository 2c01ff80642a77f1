// Any bytes as a GGUF file: refused in one line, or its tensors can be dequantised and its metadata converted.
#include <cstdlib>

#include "model/checkpoint/gguf/gguf_file.h"
#include "model/checkpoint/gguf/import_parts.h"
#include "tests/fuzz/memory_file.h"

namespace {

void CheckOneLine(const absl::Status& status) {
  if (status.message().find('\n') != std::string::npos) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace iha::checkpoint;
  const iha::testing::MemoryFile memory(data, size);
  const auto file = GgufFile::Open(memory.path());
  CheckOneLine(file.status());
  if (!file.ok()) return 0;
  for (const auto& [name, tensor] : file->tensors()) {
    if (tensor.type.row == nullptr) continue;
    if (tensor.bytes.size() > size) abort();
    const size_t blocks = tensor.bytes.size() / static_cast<size_t>(tensor.type.row->block_bytes);
    std::vector<float> values(blocks * static_cast<size_t>(tensor.type.row->block_elements));
    Dequantise(tensor.type, tensor.bytes, values);
  }
  const auto model = ReadGgufModel(*file);
  CheckOneLine(model.status());
  if (!model.ok()) return 0;
  CheckOneLine(ConfigFiles(*file, *model, DType::kF32).status());
  CheckOneLine(TokenizerFiles(*file, *model).status());
  return 0;
}
