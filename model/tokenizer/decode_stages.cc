// The streaming stages of decoder.h, one class per decoder of the `tokenizers` crate.
#include <algorithm>
#include <deque>
#include <utility>

#include "model/tokenizer/decoder.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

template <class Stage, class... Args>
class Spec : public DecodeStageSpec {
 public:
  explicit Spec(Args... args) : args_(std::move(args)...) {}
  std::unique_ptr<DecodeStage> Make() const override {
    return std::apply([](const Args&... args) { return std::make_unique<Stage>(args...); }, args_);
  }

 private:
  std::tuple<Args...> args_;
};

// All tokens become one text: the bytes that their characters stand for, or the token as it is if a character stands
// for none.
class ByteLevelStage : public DecodeStage {
 public:
  void Feed(std::string_view fragment, bool ends) override {
    token_ += fragment;
    if (!ends) return;
    const size_t before = bytes_.size();
    for (size_t i = 0; i < token_.size();) {
      const CodePoint c = FirstChar(std::string_view(token_).substr(i));
      const int byte = CharToByte(c.value);
      if (byte < 0) {
        bytes_.resize(before);
        bytes_ += token_;
        break;
      }
      bytes_ += static_cast<char>(byte);
      i += c.length;
    }
    token_.clear();
    Emit(/*final=*/false);
  }
  void Finish() override {
    Emit(/*final=*/true);
    next->Feed("", true);
    next->Finish();
  }

 private:
  void Emit(bool final) {
    std::string text;
    bytes_.erase(0, AppendLossy(bytes_, final, &text));
    if (!text.empty()) next->Feed(text, false);
  }
  std::string token_;  // fragments of the current one
  std::string bytes_;  // an unfinished UTF-8 sequence
};

// Runs of <0xNN> tokens become the text of their bytes, or one U+FFFD a byte if they are not UTF-8.
class ByteFallbackStage : public DecodeStage {
 public:
  void Feed(std::string_view fragment, bool ends) override {
    if (!passing_) {
      token_ += fragment;
      if (!ends && token_.size() < kLength) return;
      const int byte = ends ? Byte(token_) : -1;
      if (byte >= 0) {
        run_ += static_cast<char>(byte);
        token_.clear();
        return;
      }
      if (!ends && token_.size() == kLength) return;  // its end may be all that is missing
      EndRun();
      next->Feed(token_, ends);
      token_.clear();
    } else {
      next->Feed(fragment, ends);
    }
    passing_ = !ends;
  }
  void Finish() override {
    EndRun();
    next->Finish();
  }

 private:
  static constexpr size_t kLength = 6;
  static int Hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }
  static int Byte(std::string_view token) {
    if (token.size() != kLength || !token.starts_with("<0x") || token[5] != '>') return -1;
    const int low = Hex(token[4]);
    if (token[3] == '+') return low;  // Rust's from_str_radix takes a sign
    return Hex(token[3]) < 0 || low < 0 ? -1 : Hex(token[3]) * 16 + low;
  }
  void EndRun() {
    if (run_.empty()) return;
    std::string text;
    AppendLossy(run_, true, &text);
    if (text == run_) {
      next->Feed(text, true);
    } else {
      for (size_t i = 0; i < run_.size(); ++i) next->Feed("\xEF\xBF\xBD", true);
    }
    run_.clear();
  }
  std::string token_;     // the start of the current token while it may be a byte
  bool passing_ = false;  // the current token is none, and its start has been handed on
  std::string run_;
};

class FuseStage : public DecodeStage {
 public:
  void Feed(std::string_view fragment, bool) override {
    if (!fragment.empty()) next->Feed(fragment, false);
  }
  void Finish() override {
    next->Feed("", true);
    next->Finish();
  }
};

class MetaspaceStage : public DecodeStage {
 public:
  MetaspaceStage(char32_t replacement, bool drop_first) : replacement_(replacement), drop_(drop_first) {}
  void Feed(std::string_view fragment, bool ends) override {
    std::string out;
    for (size_t i = 0; i < fragment.size();) {
      const CodePoint c = FirstChar(fragment.substr(i));
      if (c.value != replacement_) {
        out += fragment.substr(i, c.length);
      } else if (!drop_) {
        out += ' ';
      }
      i += c.length;
    }
    next->Feed(out, ends);
    if (ends) drop_ = false;
  }
  void Finish() override { next->Finish(); }

 private:
  char32_t replacement_;
  bool drop_;  // within the first token
};

class StripStage : public DecodeStage {
 public:
  StripStage(char32_t content, size_t start, size_t stop) : content_(content), start_(start), stop_(stop) {}
  void Feed(std::string_view fragment, bool ends) override {
    std::string out;
    for (size_t i = 0; i < fragment.size();) {
      const CodePoint c = FirstChar(fragment.substr(i));
      const std::string_view text = fragment.substr(i, c.length);
      i += c.length;
      const bool is_content = c.value == content_;
      if (is_content && at_start_ && cut_ < start_) {
        ++cut_;
        continue;
      }
      at_start_ = false;
      if (!is_content || stop_ == 0) {
        Release(&out);
        out += text;
        continue;
      }
      // One of at most `stop` that would be cut if the token ended here; what is older stays.
      if (++held_ > stop_) {
        AppendUtf8(content_, &out);
        --held_;
      }
    }
    if (ends) {
      at_start_ = true;
      cut_ = 0;
      held_ = 0;
    }
    next->Feed(out, ends);
  }
  void Finish() override { next->Finish(); }

 private:
  void Release(std::string* out) {
    for (; held_ > 0; --held_) AppendUtf8(content_, out);
  }
  char32_t content_;
  size_t start_, stop_;
  bool at_start_ = true;  // only stripped characters so far in this token
  size_t cut_ = 0;
  size_t held_ = 0;
};

// A literal is replaced as it passes by, holding back what may be its start; a regular expression needs whole tokens.
class ReplaceStage : public DecodeStage {
 public:
  ReplaceStage(std::shared_ptr<const Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)), matcher_(*pattern_) {}
  void Feed(std::string_view fragment, bool ends) override {
    token_ += fragment;
    if (!ends && !pattern_->is_literal()) return;
    std::vector<Span> matches;
    matcher_.FindAll(token_, &matches);
    std::string out;
    size_t copied = 0;
    for (const Span& match : matches) {
      out.append(token_, copied, match.begin - copied);
      out += content_;
      copied = match.end;
    }
    const size_t held = ends ? 0 : PossibleStart(std::string_view(token_).substr(copied));
    out.append(token_, copied, token_.size() - held - copied);
    token_.erase(0, token_.size() - held);
    next->Feed(out, ends);
  }
  void Finish() override { next->Finish(); }

 private:
  // Length of the longest end of `text` that is a proper start of the literal.
  size_t PossibleStart(std::string_view text) const {
    const std::string_view literal = pattern_->literal();
    for (size_t length = std::min(text.size(), literal.size() - 1); length > 0; --length) {
      if (text.ends_with(literal.substr(0, length))) return length;
    }
    return 0;
  }
  std::shared_ptr<const Pattern> pattern_;
  std::string content_;
  PatternMatcher matcher_;
  std::string token_;  // the part not handed on yet
};

class JoinStage : public DecodeStage {
 public:
  explicit JoinStage(std::string separator) : separator_(std::move(separator)) {}
  void Feed(std::string_view fragment, bool ends) override {
    if (between_) next->Feed(separator_, false);
    between_ = ends;
    next->Feed(fragment, ends);
  }
  void Finish() override { next->Finish(); }

 private:
  std::string separator_;
  bool between_ = false;  // a token has ended: the next one follows a separator
};

}  // namespace

std::unique_ptr<const DecodeStageSpec> ByteLevelDecode() { return std::make_unique<Spec<ByteLevelStage>>(); }
std::unique_ptr<const DecodeStageSpec> ByteFallbackDecode() { return std::make_unique<Spec<ByteFallbackStage>>(); }
std::unique_ptr<const DecodeStageSpec> FuseDecode() { return std::make_unique<Spec<FuseStage>>(); }
std::unique_ptr<const DecodeStageSpec> MetaspaceDecode(char32_t replacement, bool drop_first) {
  return std::make_unique<Spec<MetaspaceStage, char32_t, bool>>(replacement, drop_first);
}
std::unique_ptr<const DecodeStageSpec> StripDecode(char32_t content, size_t start, size_t stop) {
  return std::make_unique<Spec<StripStage, char32_t, size_t, size_t>>(content, start, stop);
}
std::unique_ptr<const DecodeStageSpec> ReplaceDecode(Pattern pattern, std::string content) {
  return std::make_unique<Spec<ReplaceStage, std::shared_ptr<const Pattern>, std::string>>(
      std::make_shared<const Pattern>(std::move(pattern)), std::move(content));
}
std::unique_ptr<const DecodeStageSpec> JoinDecode(std::string separator) {
  return std::make_unique<Spec<JoinStage, std::string>>(std::move(separator));
}

}  // namespace iha::tokenizer
