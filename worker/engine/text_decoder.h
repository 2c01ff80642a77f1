// text_decoder.h: token ids to text, one id at a time. The engine's view of a tokenizer's decode stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace iha::engine {

// One generation's stream. The texts returned by all Push calls and by Finish, joined, are the decoded text: bytes that
// are returned never change later, an incomplete UTF-8 character is held back until it is complete. One thread.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;
  virtual std::string Push(int32_t id) = 0;
  // What is still held back, as the tokenizer shows incomplete bytes. Called once, last.
  virtual std::string Finish() = 0;
};

// Called on the engine's thread, once a generation.
using TextDecoderFactory = std::function<std::unique_ptr<TextDecoder>()>;

}  // namespace iha::engine
