#include "model/checkpoint/json_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/errors.h"
#include "model/checkpoint/json_fields.h"

namespace iha::checkpoint {
namespace {

using nlohmann::json;

constexpr std::ptrdiff_t kShownDepth = 8;

// Follows the parser and stops it (by false) at the first thing that is refused; keeps no values.
class Watcher final : public json::json_sax_t {
 public:
  explicit Watcher(const JsonLimits& limits) : limits_(limits) {}
  const std::string& problem() const { return problem_; }
  // Byte at which the parser gave up, from 1; 0: it did not, `problem` is ours.
  size_t position() const { return position_; }
  // "iha_eval.attention[3].mask"; "" outside of every field.
  std::string Path() const {
    std::string path;
    for (const Frame& frame : frames_) {
      if (&frame - frames_.data() == kShownDepth) return path + "...";
      if (frame.is_array) {
        path += fmt::format("[{}]", frame.count == 0 ? 0 : frame.count - 1);
      } else if (!frame.key.empty()) {
        path += (path.empty() ? "" : ".") + Shown(frame.key);
      }
    }
    return path;
  }

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool start_object(std::size_t) override { return Open(false); }
  bool start_array(std::size_t) override { return Open(true); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    frames_.back().key = name;
    if (frames_.back().names.insert(name).second) return true;
    problem_ = "is there twice; keep one";
    return false;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    position_ = std::max<size_t>(1, position);
    problem_ = error.what();
    return false;
  }

 private:
  struct Frame {
    bool is_array = false;
    size_t count = 0;  // values so far
    std::string key;
    std::set<std::string> names;
  };

  bool Value() {
    if (frames_.empty() || ++frames_.back().count <= limits_.list || !frames_.back().is_array) return true;
    problem_ = fmt::format("is in a list of more than {} values; is this the right file?", limits_.list);
    return false;
  }
  bool Open(bool is_array) {
    if (!Value()) return false;
    if (frames_.size() == limits_.depth) {
      problem_ = fmt::format("is nested more than {} deep; is this the right file?", limits_.depth);
      return false;
    }
    frames_.push_back({is_array, 0, {}, {}});
    return true;
  }
  bool Close() {
    frames_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  std::vector<Frame> frames_;
  std::string problem_;
  size_t position_ = 0;
};

// "line 3, column 7"; `position` is the number of bytes read, the offending one included.
std::string LineAndColumn(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()) - (position > 0 ? 1 : 0));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  return fmt::format("line {}, column {}", line,
                     newline == std::string_view::npos ? before.size() + 1 : before.size() - newline);
}

// nlohmann's text without its class and its own place.
std::string Reason(std::string_view what) {
  for (const std::string_view mark : {"] ", " - "}) {
    if (const size_t at = what.find(mark); at != std::string_view::npos) what.remove_prefix(at + mark.size());
  }
  return Shown(what);
}

}  // namespace

absl::Status CheckJson(std::string_view text, std::string_view file, const JsonLimits& limits) {
  if (text.starts_with("\xef\xbb\xbf")) {
    return InvalidArgument("{}: begins with a byte order mark; save it as UTF-8 without one", file);
  }
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return InvalidArgument("{}: holds a zero byte at {}, expected JSON text in UTF-8; fetch the file again", file,
                           LineAndColumn(text, zero + 1));
  }
  Watcher watcher(limits);
  if (json::sax_parse(text.begin(), text.end(), &watcher)) return absl::OkStatus();
  const std::string path = watcher.Path();
  if (watcher.position() == 0) {
    return InvalidArgument("{}: {} {}", file, path.empty() ? "the value" : path, watcher.problem());
  }
  // The parser stops inside the word: its first or second letter has been read.
  const size_t read = std::min(watcher.position(), text.size());
  for (const std::string_view word : {"NaN", "Infinity"}) {
    for (size_t back = 1; back <= 2 && back <= read; ++back) {
      if (text.substr(read - back, word.size()) != word) continue;
      return InvalidArgument("{}: {} is {} ({}), which is no JSON number; write a finite value", file,
                             path.empty() ? "the value" : path, word, LineAndColumn(text, read));
    }
  }
  return InvalidArgument("{}: no valid JSON at {}{}: {}; fetch the file again or mend it", file,
                         LineAndColumn(text, watcher.position()), path.empty() ? "" : ", near " + path,
                         Reason(watcher.problem()));
}

}  // namespace iha::checkpoint
