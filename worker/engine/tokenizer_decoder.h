// tokenizer_decoder.h: a checkpoint's own tokenizer as the engine's text decoder.
#pragma once

#include <memory>

#include "model/tokenizer/tokenizer.h"
#include "worker/engine/text_decoder.h"

namespace iha::engine {

// Keeps the tokenizer alive. skip_special: special tokens leave no text (what benchmarks want).
std::unique_ptr<TextDecoder> MakeTokenizerDecoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                                                  bool skip_special);

}  // namespace iha::engine
