// Any bytes as tokenizer.json: refused in one line, or a tokenizer whose ids lie in its vocabulary and whose stream
// decodes as the whole does.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.h"
#include "model/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using iha::tokenizer::DecodeStream;
  using iha::tokenizer::Tokenizer;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::FromJson(json, "");
  if (!tokenizer.ok()) {
    if (tokenizer.status().message().find('\n') != std::string::npos) abort();
    return 0;
  }
  // The file's own end is the text that is likeliest to meet its tokens.
  const std::string texts[] = {"ab  c\n<s>1\xC2\xBD \xE2\x96\x81x\xFF", std::string(json.substr(size - size % 64))};
  for (const std::string& text : texts) {
    for (const bool parse_special : {true, false}) {
      const std::vector<int32_t> ids = (*tokenizer)->Encode(text, {.parse_special = parse_special});
      for (const int32_t id : ids) {
        if (id < 0 || id >= (*tokenizer)->vocab_size()) abort();
      }
      for (const bool skip : {true, false}) {
        const std::string whole = (*tokenizer)->Decode(ids, skip);
        DecodeStream stream(**tokenizer, skip);
        std::string parts;
        for (const int32_t id : ids) {
          const std::string part = stream.Push(id);
          if (!iha::IsValidUtf8(part)) abort();
          parts += part;
        }
        if (parts + stream.Flush() != whole) abort();
      }
    }
  }
  return 0;
}
