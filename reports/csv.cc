#include "reports/csv.h"

#include "common/errors.h"

namespace iha::reports {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  absl::StatusOr<std::vector<std::vector<std::string>>> Read() {
    std::vector<std::vector<std::string>> rows;
    while (at_ < text_.size()) {
      std::vector<std::string> row;
      const bool blank = text_[at_] == '\n' || text_.substr(at_).starts_with("\r\n");
      do {
        absl::Status status = ReadField(row.emplace_back());
        if (!status.ok()) return status;
      } while (TakeIf(','));
      if (!TakeLineEnd())
        return InvalidArgument("line {}: text after a closing quote; expected , or a new line", line_);
      if (!blank) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  bool TakeIf(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }

  bool TakeLineEnd() {
    if (at_ >= text_.size()) return true;
    TakeIf('\r');
    if (!TakeIf('\n')) return at_ >= text_.size();
    line_++;
    return true;
  }

  absl::Status ReadField(std::string& field) {
    if (!TakeIf('"')) {
      const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
      field = text_.substr(at_, end - at_);
      at_ = end;
      return absl::OkStatus();
    }
    const int opened = line_;
    for (; at_ < text_.size(); at_++) {
      if (text_[at_] == '\n') line_++;
      if (text_[at_] != '"') {
        field += text_[at_];
        continue;
      }
      if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field += '"';
        at_++;
        continue;
      }
      at_++;
      return absl::OkStatus();
    }
    return InvalidArgument("line {}: a quote is opened and never closed", opened);
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<std::string>>> ParseCsv(std::string_view text) { return Reader(text).Read(); }

std::string QuoteCsv(std::string_view field) {
  if (field.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(field);
  std::string quoted = "\"";
  for (const char c : field) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace iha::reports
