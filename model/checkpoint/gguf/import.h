// import.h: a GGUF file becomes a checkpoint folder in Hugging Face form.
//
// Writes config.json, generation_config.json, tokenizer.json, tokenizer_config.json, model.safetensors and import.json
// (where it came from) into a temporary folder beside `out`, opens it as a checkpoint, then renames it: `out` is whole
// or absent. An `out` that holds the same import already is left alone; anything else there is refused. F16 and BF16
// tensors stay as they are; others become F32, the dequantised values, equal to the `gguf` Python package's bit for bit
// (--dtype bf16 rounds everything to nearest even); the row permutation that GGUF applies to Llama's q and k is undone.
// Memory is bounded: tensors are streamed.
// Blocking (seconds: a gigabyte may be written). Thread: any.
// Errors: InvalidArgument / DataLoss / NotFound (bad file, unknown architecture, tensor type or tokenizer: the message
// lists the known ones), AlreadyExists (something else lies at `out`), those of common/file.h for the disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "model/checkpoint/tensor.h"

namespace iha::checkpoint {

struct GgufImport {
  bool already_there = false;  // nothing was written
  int64_t tensors = 0;
  int64_t parameters = 0;
};

// dtype: kF32 (exact) or kBF16 (rounded). Once *stop is true, writing ends with Cancelled; nothing is left behind.
absl::StatusOr<GgufImport> ImportGguf(const std::string& gguf_path, const std::string& out, DType dtype,
                                      const std::atomic<bool>* stop = nullptr);

}  // namespace iha::checkpoint
