#include "worker/engine/tokenizer_decoder.h"

namespace iha::engine {
namespace {

class TokenizerDecoder final : public TextDecoder {
 public:
  TokenizerDecoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, bool skip_special)
      : tokenizer_(std::move(tokenizer)), stream_(*tokenizer_, skip_special) {}
  std::string Push(int32_t id) override { return stream_.Push(id); }
  std::string Finish() override { return stream_.Flush(); }

 private:
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;  // the stream points into it
  tokenizer::DecodeStream stream_;
};

}  // namespace

std::unique_ptr<TextDecoder> MakeTokenizerDecoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                                                  bool skip_special) {
  return std::make_unique<TokenizerDecoder>(std::move(tokenizer), skip_special);
}

}  // namespace iha::engine
