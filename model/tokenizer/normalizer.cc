#include "model/tokenizer/normalizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

using Ptr = std::unique_ptr<const Normalizer>;

class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<Ptr> parts) : parts_(std::move(parts)) {}
  std::string Apply(std::string text, size_t* origin) const override {
    for (const Ptr& part : parts_) text = part->Apply(std::move(text), origin);
    return text;
  }

 private:
  std::vector<Ptr> parts_;
};

class FormNormalizer : public Normalizer {
 public:
  explicit FormNormalizer(NormalForm form) : form_(form) {}
  std::string Apply(std::string text, size_t* origin) const override {
    std::string out = Normalize(text, form_);
    if (origin != nullptr && *origin > 0 && !out.empty()) {
      const size_t alone = Normalize(std::string_view(text).substr(0, *origin), form_).size();
      *origin = std::min(out.size(), std::max(FirstChar(out).length, alone));
    }
    return out;
  }

 private:
  NormalForm form_;
};

class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string Apply(std::string text, size_t* origin) const override {
    if (text.empty()) return text;
    if (origin != nullptr && prefix_.empty()) *origin = std::max(*origin, FirstChar(text).length);  // as in the crate
    if (origin != nullptr && *origin > 0) *origin += prefix_.size();
    text.insert(0, prefix_);
    return text;
  }

 private:
  std::string prefix_;
};

class ReplaceNormalizer : public Normalizer {
 public:
  ReplaceNormalizer(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::string Apply(std::string text, size_t* origin) const override {
    std::vector<Span> matches;
    PatternMatcher(pattern_).FindAll(text, &matches);
    if (matches.empty()) return text;
    std::string out;
    out.reserve(text.size());
    const size_t old_origin = origin == nullptr ? 0 : *origin;
    size_t new_origin = 0;
    size_t copied = 0;
    const auto copy_to = [&](size_t end) {
      out.append(text, copied, end - copied);
      if (copied < old_origin) new_origin += std::min(old_origin, end) - copied;
    };
    for (const Span& match : matches) {
      copy_to(match.begin);
      out += content_;
      // The content stands for the last byte that it replaces.
      if (match.end == 0 || match.end <= old_origin) new_origin += content_.size();
      copied = match.end;
    }
    copy_to(text.size());
    if (origin != nullptr) *origin = new_origin;
    return out;
  }

 private:
  Pattern pattern_;
  std::string content_;
};

// One function of each character.
class CharNormalizer : public Normalizer {
 public:
  using Map = void (*)(char32_t, std::string*);
  explicit CharNormalizer(Map map) : map_(map) {}
  std::string Apply(std::string text, size_t* origin) const override {
    std::string out;
    out.reserve(text.size());
    size_t new_origin = 0;
    for (size_t i = 0; i < text.size();) {
      const CodePoint c = FirstChar(std::string_view(text).substr(i));
      map_(c.value, &out);
      if (origin != nullptr && i < *origin) new_origin = out.size();
      i += c.length;
    }
    if (origin != nullptr) *origin = new_origin;
    return out;
  }

 private:
  Map map_;
};
void DropMark(char32_t c, std::string* out) {
  if (!IsMark(c)) AppendUtf8(c, out);
}

class StripNormalizer : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  std::string Apply(std::string text, size_t* origin) const override {
    std::string_view rest = text;
    while (left_ && !rest.empty() && IsWhiteSpace(FirstChar(rest).value)) rest.remove_prefix(FirstChar(rest).length);
    const size_t cut = text.size() - rest.size();
    while (right_ && !rest.empty()) {
      const size_t last = LastCharStart(rest);
      if (!IsWhiteSpace(FirstChar(rest.substr(last)).value)) break;
      rest = rest.substr(0, last);
    }
    if (origin != nullptr) *origin = std::min(rest.size(), *origin - std::min(*origin, cut));
    return std::string(rest);
  }

 private:
  bool left_, right_;
};

class ByteLevelNormalizer : public Normalizer {
 public:
  std::string Apply(std::string text, size_t* origin) const override {
    if (origin != nullptr) *origin = ByteAlphabetLength(std::string_view(text).substr(0, *origin));
    std::string out;
    AppendByteAlphabet(text, &out);
    return out;
  }
};

// `growth` is multiplied by how many times longer the stage can make a text.
absl::StatusOr<Ptr> ParseAt(const Json& value, const std::string& path, int depth, double* growth);

absl::StatusOr<Ptr> ParseSequence(const Json& value, const std::string& path, int depth, double* growth) {
  IHA_ASSIGN_OR_RETURN(const Json* const list, GetArray(value, "normalizers", path));
  std::vector<Ptr> parts;
  for (size_t i = 0; i < list->size(); ++i) {
    IHA_ASSIGN_OR_RETURN(Ptr part, ParseAt((*list)[i], fmt::format("{}.normalizers[{}]", path, i), depth + 1, growth));
    parts.push_back(std::move(part));
  }
  return std::make_unique<SequenceNormalizer>(std::move(parts));
}

absl::StatusOr<Ptr> ParseAt(const Json& value, const std::string& path, int depth, double* growth) {
  if (depth > kMaxNesting) return TooDeep(path);
  IHA_RETURN_IF_ERROR(ExpectObject(value, path));
  IHA_ASSIGN_OR_RETURN(const std::string type, GetString(value, "type", path));
  if (type == "Sequence") return ParseSequence(value, path, depth, growth);
  if (type == "NFC") return std::make_unique<FormNormalizer>(NormalForm::kNfc);
  if (type == "NFD") return std::make_unique<FormNormalizer>(NormalForm::kNfd);
  if (type == "NFKC") return std::make_unique<FormNormalizer>(NormalForm::kNfkc);
  if (type == "NFKD") return std::make_unique<FormNormalizer>(NormalForm::kNfkd);
  if (type == "Prepend") {
    IHA_ASSIGN_OR_RETURN(std::string prefix, GetString(value, "prepend", path));
    return std::make_unique<PrependNormalizer>(std::move(prefix));
  }
  if (type == "Replace") {
    IHA_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Parse(value, path));
    IHA_ASSIGN_OR_RETURN(std::string content, GetString(value, "content", path));
    *growth *= pattern.Growth(content);
    return std::make_unique<ReplaceNormalizer>(std::move(pattern), std::move(content));
  }
  if (type == "Lowercase") return std::make_unique<CharNormalizer>(AppendLower);
  if (type == "StripAccents") return std::make_unique<CharNormalizer>(DropMark);
  if (type == "Strip") {
    IHA_ASSIGN_OR_RETURN(const bool left, GetBool(value, "strip_left", path));
    IHA_ASSIGN_OR_RETURN(const bool right, GetBool(value, "strip_right", path));
    return std::make_unique<StripNormalizer>(left, right);
  }
  if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  return Unsupported(path + ".type", type,
                     {"ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Sequence", "Strip",
                      "StripAccents"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Normalizer>> Normalizer::Parse(const Json& value, const std::string& path) {
  if (value.is_null()) return Ptr();
  double growth = 1;
  IHA_ASSIGN_OR_RETURN(Ptr normalizer, ParseAt(value, path, 0, &growth));
  if (growth > kMaxGrowth) return GrowsTooMuch(path, growth);
  return normalizer;
}

}  // namespace iha::tokenizer
