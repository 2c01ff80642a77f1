#include "model/tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/tokenizer/regex_translate.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

constexpr size_t kMaxPatternBytes = 100'000;
// A piece of text can be one match (a megabyte of spaces): the JIT's stack may grow this far, then the interpreter
// takes over, whose memory is the heap.
constexpr size_t kJitStackStart = size_t{64} << 10;
constexpr size_t kJitStackLimit = size_t{64} << 20;

// PCRE2's default would turn a long run of spaces into "no match", a silent change of the tokens. Only patterns whose
// time explodes reach this one: the rest of the piece then counts as not matching, the same on every machine.
constexpr uint32_t kMatchLimit = 100'000'000;

struct CodeFree {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};
struct DataFree {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
struct CompileContextFree {
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
};
struct MatchContextFree {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct JitStackFree {
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};

}  // namespace

struct Pattern::Code {
  std::unique_ptr<pcre2_code, CodeFree> code;
};

struct PatternMatcher::Scratch {
  std::unique_ptr<pcre2_match_data, DataFree> data;
  std::unique_ptr<pcre2_match_context, MatchContextFree> context;
  std::unique_ptr<pcre2_jit_stack, JitStackFree> jit_stack;
};

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern Pattern::Literal(std::string text) {
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

absl::StatusOr<Pattern> Pattern::Regex(std::string_view oniguruma) {
  if (oniguruma.size() > kMaxPatternBytes) {
    return InvalidArgument("regex: {} bytes, at most {} are supported", oniguruma.size(), kMaxPatternBytes);
  }
  IHA_ASSIGN_OR_RETURN(const std::string translated, TranslateOniguruma(oniguruma));
  const std::unique_ptr<pcre2_compile_context, CompileContextFree> context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t offset = 0;
  Pattern pattern;
  pattern.code_ = std::make_unique<Code>();
  pattern.code_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                                          &offset, context.get()));
  if (pattern.code_->code == nullptr) {
    char text[256];
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof text);
    return InvalidArgument("regex \"{}\": {}", TerminalSafe(oniguruma, 80), text);
  }
  // Where there is no JIT the interpreter gives the same matches.
  pcre2_jit_compile(pattern.code_->code.get(), PCRE2_JIT_COMPLETE);
  return pattern;
}

absl::StatusOr<Pattern> Pattern::Parse(const Json& object, std::string_view path) {
  const std::string field = FieldPath(path, "pattern");
  const Json* value = Find(object, "pattern");
  if (value == nullptr) return InvalidArgument("{}: missing (expected {{\"String\": s}} or {{\"Regex\": s}})", field);
  IHA_RETURN_IF_ERROR(ExpectObject(*value, field));
  if (Find(*value, "Regex") != nullptr) {
    IHA_ASSIGN_OR_RETURN(const std::string regex, GetString(*value, "Regex", field));
    absl::StatusOr<Pattern> pattern = Regex(regex);
    if (!pattern.ok()) return Annotate(pattern.status(), field);
    return pattern;
  }
  IHA_ASSIGN_OR_RETURN(std::string text, GetString(*value, "String", field));
  // An empty literal matches between all characters, as the regex that it becomes there does.
  if (text.empty()) return Regex("");
  return Literal(std::move(text));
}

double Pattern::Growth(std::string_view content) const {
  uint32_t shortest = static_cast<uint32_t>(literal_.size());
  if (!is_literal() && pcre2_pattern_info(code_->code.get(), PCRE2_INFO_MINLENGTH, &shortest) != 0) shortest = 0;
  // Empty matches leave the text between them.
  if (shortest == 0) return 1 + static_cast<double>(content.size());
  return std::max(1.0, static_cast<double>(content.size()) / shortest);
}

absl::Status GrowsTooMuch(std::string_view path, double growth) {
  return InvalidArgument("{}: its Replace stages can make a text {} times as long, expected at most {}", path, growth,
                         kMaxGrowth);
}

PatternMatcher::PatternMatcher(const Pattern& pattern) : pattern_(pattern) {
  if (pattern.is_literal()) return;
  scratch_ = std::make_unique<Scratch>();
  scratch_->data.reset(pcre2_match_data_create(1, nullptr));
  scratch_->context.reset(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(scratch_->context.get(), kMatchLimit);
  pcre2_set_depth_limit(scratch_->context.get(), kMatchLimit);
}
PatternMatcher::~PatternMatcher() = default;

bool PatternMatcher::MatchAt(std::string_view text, size_t from, Span* match) {
  const auto try_match = [&](uint32_t extra) {
    return pcre2_match(pattern_.code_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK | extra, scratch_->data.get(), scratch_->context.get());
  };
  int rc = try_match(0);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT && scratch_->jit_stack == nullptr) {
    scratch_->jit_stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr));
    pcre2_jit_stack_assign(scratch_->context.get(), nullptr, scratch_->jit_stack.get());
    rc = try_match(0);
  }
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = try_match(PCRE2_NO_JIT);
  if (rc < 0) return false;
  const size_t* offsets = pcre2_get_ovector_pointer(scratch_->data.get());
  *match = {offsets[0], offsets[1]};
  return true;
}

void PatternMatcher::FindAll(std::string_view text, std::vector<Span>* matches) {
  matches->clear();
  if (text.empty()) return;
  if (pattern_.is_literal()) {
    const std::string& needle = pattern_.literal();
    for (size_t at = 0; (at = text.find(needle, at)) != std::string_view::npos; at += needle.size()) {
      matches->push_back({at, at + needle.size()});
    }
    return;
  }
  std::optional<size_t> last_end;
  Span match;
  for (size_t from = 0; from <= text.size() && MatchAt(text, from, &match);) {
    if (match.begin == match.end && last_end == match.end) {
      from += from < text.size() ? FirstChar(text.substr(from)).length : 1;
      continue;
    }
    matches->push_back(match);
    from = match.end;
    last_end = match.end;
  }
}

}  // namespace iha::tokenizer
