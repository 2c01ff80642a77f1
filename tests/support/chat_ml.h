// chat_ml.h: SmolLM2's chat template, as far as benchmark messages need it.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/benchmark.h"

namespace iha::testing {

inline std::string ChatMl(const std::vector<benchmarks::Message>& messages) {
  std::string text;
  if (messages.front().role != "system") {
    text = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n";
  }
  for (const benchmarks::Message& message : messages) {
    text += "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>\n";
  }
  return text + "<|im_start|>assistant\n";
}

}  // namespace iha::testing
