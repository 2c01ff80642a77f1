#include "common/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha {
namespace {

using Json = nlohmann::json;

// Behind the comment that begins at `i`: two slashes, or a slash and a star.
size_t SkipComment(std::string_view text, size_t i) {
  const bool line = text[i + 1] == '/';
  const size_t end = text.find(line ? "\n" : "*/", i + 2);
  return end == std::string_view::npos ? text.size() : end + (line ? 1 : 2);
}

// Calls `see` with the place of each byte outside strings and comments. Cheap, and exact for valid JSON.
template <class See>
void SeeStructure(std::string_view text, const See& see) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') i++;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '/' && i + 1 < text.size() && (text[i + 1] == '/' || text[i + 1] == '*')) {
      i = SkipComment(text, i) - 1;
    } else {
      see(i);
    }
  }
}

// Deepest nesting of brackets.
int DepthOf(std::string_view text) {
  int depth = 0, deepest = 0;
  SeeStructure(text, [&](size_t i) {
    if (text[i] == '[' || text[i] == '{') deepest = std::max(deepest, ++depth);
    if (text[i] == ']' || text[i] == '}') depth--;
  });
  return deepest;
}

// The first place of `number`, which may stand in strings before it is one.
size_t FindNumber(std::string_view text, std::string_view number) {
  size_t found = std::string_view::npos;
  SeeStructure(text, [&](size_t i) {
    if (found == std::string_view::npos && text.substr(i).starts_with(number)) found = i;
  });
  return found;
}

struct Place {  // both from 1
  size_t line;
  size_t column;
};

Place PlaceOf(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const size_t newline = before.rfind('\n');
  return {1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n')),
          before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1};
}

absl::Status SyntaxError(std::string_view text, size_t byte, std::string_view where) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto [line, column] = PlaceOf(text, byte);
  if (before.size() == text.size()) return InvalidArgument("{}:{}:{}: JSON ends too early", where, line, column);
  constexpr size_t kShown = 20;
  return InvalidArgument("{}:{}:{}: not valid JSON at \"{}\"", where, line, column,
                         TerminalSafe(text.substr(before.size()), kShown));
}

template <class Value>
absl::StatusOr<Value> Parse(std::string_view text, std::string_view where, bool comments,
                            const typename Value::parser_callback_t& watch = nullptr) {
  if (const absl::Status depth = CheckJsonDepth(text); !depth.ok()) return Annotate(depth, where);
  // The parser takes a zero byte for the end.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) return SyntaxError(text, zero, where);
  try {
    return Value::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/true, /*ignore_comments=*/comments);
  } catch (const typename Value::parse_error& error) {
    // `byte` counts from 1 and points at the last byte read.
    return SyntaxError(text, error.byte > 0 ? error.byte - 1 : 0, where);
  } catch (const typename Value::exception& error) {
    // A number out of the range of double: "number overflow parsing '1e400'", behind the library's class of errors in
    // brackets.
    std::string_view what = error.what();
    if (const size_t class_end = what.find("] "); class_end != what.npos) what.remove_prefix(class_end + 2);
    const size_t quote = what.find('\'');
    const std::string_view number = quote == what.npos ? "" : what.substr(quote + 1, what.rfind('\'') - quote - 1);
    const auto [line, column] = PlaceOf(text, FindNumber(text, number));
    return InvalidArgument("{}:{}:{}: {}", where, line, column, TerminalSafe(what));
  }
}

// A parse that refuses a field that an object gives twice.
template <class Value>
absl::StatusOr<Value> ParseUnique(std::string_view text, std::string_view where, bool comments) {
  using Event = typename Value::parse_event_t;
  std::vector<std::set<std::string>> names;  // of the open objects
  std::optional<std::string> twice;
  const auto watch = [&](int, Event event, const Value& value) {
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key && !names.back().insert(value.template get<std::string>()).second && !twice.has_value()) {
      twice = value.template get<std::string>();
    }
    return true;
  };
  auto parsed = Parse<Value>(text, where, comments, watch);
  if (!parsed.ok() || !twice.has_value()) return parsed;
  return InvalidArgument("{}: field \"{}\" is there twice in one object; keep one", where, TerminalSafe(*twice, 80));
}

absl::Status RefuseMark(std::string_view text, std::string_view where) {
  if (!text.starts_with("\xef\xbb\xbf")) return absl::OkStatus();
  return InvalidArgument("{}:1:1: begins with a byte order mark; save it as UTF-8 without one", where);
}

}  // namespace

absl::Status CheckJsonDepth(std::string_view text) {
  const int depth = DepthOf(text);
  if (depth <= kMaxJsonDepth) return absl::OkStatus();
  return InvalidArgument("JSON nested {} deep, expected at most {}", depth, kMaxJsonDepth);
}

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view where) {
  IHA_RETURN_IF_ERROR(RefuseMark(text, where));
  return Parse<Json>(text, where, /*comments=*/false);
}

template <class Value>
absl::StatusOr<Value> ParseUniqueJson(std::string_view text, std::string_view where) {
  IHA_RETURN_IF_ERROR(RefuseMark(text, where));
  return ParseUnique<Value>(text, where, /*comments=*/false);
}
template absl::StatusOr<Json> ParseUniqueJson(std::string_view text, std::string_view where);
template absl::StatusOr<nlohmann::ordered_json> ParseUniqueJson(std::string_view text, std::string_view where);

absl::StatusOr<nlohmann::ordered_json> ParseCommentedJson(std::string_view text, std::string_view where) {
  return ParseUnique<nlohmann::ordered_json>(text, where, /*comments=*/true);
}

absl::StatusOr<Json> ReadJsonFile(const std::string& path, int64_t max_bytes) {
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path, max_bytes));
  return ParseJson(text, path);
}

}  // namespace iha
