#include "model/tokenizer/decoder.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/status_macros.h"
#include "model/tokenizer/pattern.h"

namespace iha::tokenizer {
namespace {

constexpr int64_t kMaxStrip = 1 << 20;

class CollectStage : public DecodeStage {
 public:
  explicit CollectStage(std::string* text) : text_(text) {}
  void Feed(std::string_view fragment, bool) override { *text_ += fragment; }
  void Finish() override {}

 private:
  std::string* text_;
};

}  // namespace

absl::StatusOr<DecoderSpec> DecoderSpec::Parse(const Json& value, const std::string& path) {
  DecoderSpec spec;
  if (value.is_null()) {
    spec.stages_.push_back(JoinDecode(" "));
  } else {
    IHA_RETURN_IF_ERROR(spec.ParseAt(value, path, 0));
    if (spec.growth_ > kMaxGrowth) return GrowsTooMuch(path, spec.growth_);
  }
  return spec;
}

absl::Status DecoderSpec::ParseAt(const Json& value, const std::string& path, int depth) {
  if (depth > kMaxNesting) return TooDeep(path);
  IHA_RETURN_IF_ERROR(ExpectObject(value, path));
  IHA_ASSIGN_OR_RETURN(const std::string type, GetString(value, "type", path));
  if (type == "Sequence") {
    IHA_ASSIGN_OR_RETURN(const Json* const list, GetArray(value, "decoders", path));
    for (size_t i = 0; i < list->size(); ++i) {
      IHA_RETURN_IF_ERROR(ParseAt((*list)[i], fmt::format("{}.decoders[{}]", path, i), depth + 1));
    }
  } else if (type == "ByteLevel") {
    stages_.push_back(ByteLevelDecode());
  } else if (type == "ByteFallback") {
    stages_.push_back(ByteFallbackDecode());
  } else if (type == "Fuse") {
    stages_.push_back(FuseDecode());
  } else if (type == "Metaspace") {
    IHA_ASSIGN_OR_RETURN(const char32_t replacement, GetChar(value, "replacement", path));
    IHA_ASSIGN_OR_RETURN(const std::string scheme, GetString(value, "prepend_scheme", path, "always"));
    stages_.push_back(MetaspaceDecode(replacement, scheme != "never"));
  } else if (type == "Strip") {
    IHA_ASSIGN_OR_RETURN(const char32_t content, GetChar(value, "content", path));
    IHA_ASSIGN_OR_RETURN(const int64_t start, GetInt(value, "start", path, 0, kMaxStrip));
    IHA_ASSIGN_OR_RETURN(const int64_t stop, GetInt(value, "stop", path, 0, kMaxStrip));
    stages_.push_back(StripDecode(content, static_cast<size_t>(start), static_cast<size_t>(stop)));
  } else if (type == "Replace") {
    IHA_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Parse(value, path));
    IHA_ASSIGN_OR_RETURN(std::string content, GetString(value, "content", path));
    growth_ *= pattern.Growth(content);
    stages_.push_back(ReplaceDecode(std::move(pattern), std::move(content)));
  } else {
    return Unsupported(path + ".type", type,
                       {"ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Sequence", "Strip"});
  }
  return absl::OkStatus();
}

DecodeChain::DecodeChain(const DecoderSpec& spec) {
  for (const auto& stage : spec.stages_) stages_.push_back(stage->Make());
  stages_.push_back(std::make_unique<CollectStage>(&text_));
  for (size_t i = 0; i + 1 < stages_.size(); ++i) stages_[i]->next = stages_[i + 1].get();
}

void DecodeChain::Token(std::string_view text) { stages_.front()->Feed(text, true); }

void DecodeChain::Finish() { stages_.front()->Finish(); }

std::string DecodeChain::Take() { return std::exchange(text_, std::string()); }

}  // namespace iha::tokenizer
