#include "common/json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <type_traits>

#include "common/errors.h"
#include "common/nearest.h"
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

// Deepest nesting of brackets outside strings and comments. Cheap, and exact for valid JSON.
int DepthOf(std::string_view text) {
  int depth = 0, deepest = 0;
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
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      depth--;
    }
  }
  return deepest;
}

absl::Status SyntaxError(std::string_view text, size_t byte, std::string_view where) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  if (before.size() == text.size()) return InvalidArgument("{}:{}:{}: JSON ends too early", where, line, column);
  constexpr size_t kShown = 20;
  return InvalidArgument("{}:{}:{}: not valid JSON at \"{}\"", where, line, column,
                         TerminalSafe(text.substr(before.size()), kShown));
}

template <class T>
constexpr const char* kExpected = nullptr;
template <>
constexpr const char* kExpected<std::string> = "a string";
template <>
constexpr const char* kExpected<bool> = "true or false";
template <>
constexpr const char* kExpected<int32_t> = "an integer of 32 bits";
template <>
constexpr const char* kExpected<int64_t> = "an integer";
template <>
constexpr const char* kExpected<uint64_t> = "an integer from 0";
template <>
constexpr const char* kExpected<double> = "a number";
template <>
constexpr const char* kExpected<std::vector<std::string>> = "an array of strings";
template <>
constexpr const char* kExpected<std::vector<int32_t>> = "an array of integers of 32 bits";
template <>
constexpr const char* kExpected<std::vector<int64_t>> = "an array of integers";
template <>
constexpr const char* kExpected<std::vector<double>> = "an array of numbers";

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class T>
std::optional<T> Convert(const Json& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (value.is_string()) return value.get_ref<const std::string&>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (value.is_boolean()) return value.get<bool>();
  } else if constexpr (std::is_same_v<T, double>) {
    if (value.is_number()) return value.get<double>();
  } else if constexpr (std::is_integral_v<T>) {
    // nlohmann keeps integers without a sign as uint64_t, others as int64_t, and what fits neither as a double.
    if (value.is_number_unsigned() && std::in_range<T>(value.get<uint64_t>()))
      return static_cast<T>(value.get<uint64_t>());
    if (value.is_number_integer() && !value.is_number_unsigned() && std::in_range<T>(value.get<int64_t>())) {
      return static_cast<T>(value.get<int64_t>());
    }
  } else {
    static_assert(IsVector<T>::value);
    if (!value.is_array()) return std::nullopt;
    T elements;
    elements.reserve(value.size());
    for (const Json& element : value) {
      std::optional<typename T::value_type> converted = Convert<typename T::value_type>(element);
      if (!converted.has_value()) return std::nullopt;
      elements.push_back(*std::move(converted));
    }
    return elements;
  }
  return std::nullopt;
}

absl::Status Mismatch(std::string_view key, const Json& found, std::string_view expected) {
  return InvalidArgument("field \"{}\": found {}, expected {}", key, DescribeJson(found), expected);
}

absl::StatusOr<const Json*> Find(const Json& object, std::string_view key, std::string_view expected) {
  if (!object.is_object()) {
    return InvalidArgument("found {}, expected an object with the field \"{}\"", DescribeJson(object), key);
  }
  const auto at = object.find(key);
  if (at == object.end()) return InvalidArgument("field \"{}\": missing, expected {}", key, expected);
  return &*at;
}

}  // namespace

namespace {

template <class Value>
absl::StatusOr<Value> Parse(std::string_view text, std::string_view where, bool comments,
                            const typename Value::parser_callback_t& watch = nullptr) {
  if (const int depth = DepthOf(text); depth > kMaxJsonDepth) {
    return InvalidArgument("{}: JSON nested {} deep, expected at most {}", where, depth, kMaxJsonDepth);
  }
  // The parser takes a zero byte for the end.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) return SyntaxError(text, zero, where);
  try {
    return Value::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/true, /*ignore_comments=*/comments);
  } catch (const typename Value::parse_error& error) {
    // `byte` counts from 1 and points at the last byte read.
    return SyntaxError(text, error.byte > 0 ? error.byte - 1 : 0, where);
  } catch (const typename Value::exception& error) {
    // A number out of the range of double. Without the library's class of errors, which stands in brackets.
    const std::string_view what = error.what();
    const size_t class_end = what.find("] ");
    return InvalidArgument("{}: {}", where, TerminalSafe(class_end == what.npos ? what : what.substr(class_end + 2)));
  }
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view where) {
  return Parse<Json>(text, where, /*comments=*/false);
}

absl::StatusOr<nlohmann::ordered_json> ParseCommentedJson(std::string_view text, std::string_view where) {
  using Event = nlohmann::ordered_json::parse_event_t;
  std::vector<std::set<std::string>> names;  // of the open objects
  std::string twice;
  const auto watch = [&](int, Event event, const nlohmann::ordered_json& value) {
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key && !names.back().insert(value.get<std::string>()).second && twice.empty()) {
      twice = value.get<std::string>();
    }
    return true;
  };
  auto parsed = Parse<nlohmann::ordered_json>(text, where, /*comments=*/true, watch);
  if (!parsed.ok() || twice.empty()) return parsed;
  return InvalidArgument("{}: field \"{}\" is there twice in one object; keep one", where, TerminalSafe(twice, 80));
}

absl::StatusOr<Json> ReadJsonFile(const std::string& path, int64_t max_bytes) {
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, max_bytes));
  return ParseJson(text, path);
}

std::string DescribeJson(const Json& value) {
  if (value.is_array()) return value.empty() ? "an empty array" : "an array";
  if (value.is_object()) return "an object";
  constexpr size_t kShown = 60;
  return TerminalSafe(CanonicalJson(value), kShown);
}

template <class T>
absl::StatusOr<T> Get(const Json& object, std::string_view key) {
  IHA_ASSIGN_OR_RETURN(const Json* value, Find(object, key, kExpected<T>));
  std::optional<T> converted = Convert<T>(*value);
  if (!converted.has_value()) return Mismatch(key, *value, kExpected<T>);
  return *std::move(converted);
}

template <class T>
absl::StatusOr<T> GetOr(const Json& object, std::string_view key, T fallback) {
  if (object.is_object() && !object.contains(key)) return fallback;
  return Get<T>(object, key);
}

#define IHA_JSON_TYPE_(...)                                                             \
  template absl::StatusOr<__VA_ARGS__> Get<__VA_ARGS__>(const Json&, std::string_view); \
  template absl::StatusOr<__VA_ARGS__> GetOr<__VA_ARGS__>(const Json&, std::string_view, __VA_ARGS__);
IHA_JSON_TYPE_(std::string)
IHA_JSON_TYPE_(bool)
IHA_JSON_TYPE_(int32_t)
IHA_JSON_TYPE_(int64_t)
IHA_JSON_TYPE_(uint64_t)
IHA_JSON_TYPE_(double)
IHA_JSON_TYPE_(std::vector<std::string>)
IHA_JSON_TYPE_(std::vector<int32_t>)
IHA_JSON_TYPE_(std::vector<int64_t>)
IHA_JSON_TYPE_(std::vector<double>)
#undef IHA_JSON_TYPE_

absl::StatusOr<const Json*> GetObject(const Json& object, std::string_view key) {
  IHA_ASSIGN_OR_RETURN(const Json* value, Find(object, key, "an object"));
  if (!value->is_object()) return Mismatch(key, *value, "an object");
  return value;
}

absl::StatusOr<const Json*> GetArray(const Json& object, std::string_view key) {
  IHA_ASSIGN_OR_RETURN(const Json* value, Find(object, key, "an array"));
  if (!value->is_array()) return Mismatch(key, *value, "an array");
  return value;
}

absl::Status CheckKeys(const Json& object, std::span<const std::string> known) {
  if (!object.is_object()) return InvalidArgument("found {}, expected an object", DescribeJson(object));
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) return UnknownName("field", key, known);
  }
  return absl::OkStatus();
}

std::string CanonicalJson(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace iha
