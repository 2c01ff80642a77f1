#include "model/tokenizer/regex_translate.h"

#include <cctype>
#include <optional>
#include <vector>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/tokenizer/regex_sets.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

constexpr int kMaxClassDepth = 32;
constexpr const char* kAnyChar = "(?s:.)";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Hex(char32_t c) { return fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(c)); }

std::string Bracket(const CharSet& set) { return (set.negated ? "[^" : "[") + set.items + "]"; }

// The members of a bracket while it is read: `items` for one PCRE2 bracket, `others` as whole single-char patterns.
struct ClassMembers {
  std::string items;
  std::vector<std::string> others;

  void Add(const CharSet& set) {
    if (!set.negated) {
      items += set.items;
    } else {
      others.push_back(Bracket(set));
    }
  }
  std::string Pattern() const {
    if (others.empty()) return items.empty() ? "(?!)" : "[" + items + "]";
    std::string out = "(?:";
    if (!items.empty()) out += "[" + items + "]|";
    for (size_t i = 0; i < others.size(); ++i) out += (i == 0 ? "" : "|") + others[i];
    return out + ")";
  }
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : p_(pattern) {}

  absl::StatusOr<std::string> Run() {
    groups_.push_back({});
    while (i_ < p_.size()) IHA_RETURN_IF_ERROR(Step());
    if (groups_.size() > 1) return Error("a group is not closed");
    CloseFlagGroups();
    return out_;
  }

 private:
  struct Group {
    size_t start = 0;     // of the group in out_
    int flag_groups = 0;  // (?i: opened for an inline (?i), closed with the group
  };

  template <class... Args>
  absl::Status Error(fmt::format_string<Args...> f, Args&&... args) const {
    return InvalidArgument("regex: {} (at byte {})", TerminalSafe(fmt::format(f, std::forward<Args>(args)...)), i_);
  }
  bool At(std::string_view text) const { return p_.substr(i_).starts_with(text); }
  void Atom(const std::string& text) {
    atom_ = out_.size();
    quantified_ = false;
    out_ += text;
  }
  void NoAtom() {
    atom_.reset();
    quantified_ = false;
  }
  void CloseFlagGroups() {
    out_.append(static_cast<size_t>(groups_.back().flag_groups), ')');
    groups_.back().flag_groups = 0;
  }

  absl::Status Step() {
    const char c = p_[i_];
    switch (c) {
      case '\\':
        return Escape();
      case '[': {
        IHA_ASSIGN_OR_RETURN(const std::string set, Class(0));
        Atom(set);
        return absl::OkStatus();
      }
      case '(':
        return OpenGroup();
      case ')':
        return CloseGroup();
      case '*':
      case '+':
      case '?':
        ++i_;
        return Quantify(std::string(1, c), /*lazy_and_possessive=*/true);
      case '{':
        return Interval();
      case '|':
      case '^':
      case '$':
        ++i_;
        out_ += c;
        NoAtom();
        return absl::OkStatus();
      case '.':
        ++i_;
        Atom(".");
        return absl::OkStatus();
      default: {
        const CodePoint point = FirstChar(p_.substr(i_));
        i_ += point.length;
        Atom(Hex(point.value));
        return absl::OkStatus();
      }
    }
  }

  absl::Status Quantify(const std::string& quantifier, bool lazy_and_possessive) {
    if (!atom_.has_value()) return Error("nothing to repeat before \"{}\"", quantifier);
    if (quantified_) {
      out_.insert(*atom_, "(?:");
      out_ += ')';
    }
    out_ += quantifier;
    if (i_ < p_.size() && (p_[i_] == '?' || p_[i_] == '+') && lazy_and_possessive) out_ += p_[i_++];
    quantified_ = true;
    return absl::OkStatus();
  }

  // {n} {n,} {n,m} {,m}; anything else is a literal brace. {n}? is "n times or not at all" and X{n,m}+ repeats the
  // interval, so only the lazy mark of a real interval is kept.
  absl::Status Interval() {
    size_t end = i_ + 1;
    std::string low, high;
    bool comma = false;
    for (; end < p_.size() && (IsDigit(p_[end]) || (p_[end] == ',' && !comma)); ++end) {
      if (p_[end] == ',') {
        comma = true;
      } else {
        (comma ? high : low) += p_[end];
      }
    }
    if (end >= p_.size() || p_[end] != '}' || (low.empty() && high.empty())) {
      ++i_;
      Atom("\\{");
      return absl::OkStatus();
    }
    i_ = end + 1;
    std::string quantifier = "{" + (low.empty() ? "0" : low) + (comma ? "," : "") + high + "}";
    if (comma && i_ < p_.size() && p_[i_] == '?') {
      quantifier += '?';
      ++i_;
    }
    return Quantify(quantifier, /*lazy_and_possessive=*/false);
  }

  absl::Status OpenGroup() {
    if (At("(?#")) {
      const size_t end = p_.find(')', i_);
      if (end == std::string_view::npos) return Error("a comment is not closed");
      i_ = end + 1;
      return absl::OkStatus();
    }
    if (At("(*") || At("(?{")) return Error("callouts are not supported");
    if (!At("(?")) return Open("(", 1);
    for (const char* head : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"}) {
      if (At(head)) return Open(head, std::string_view(head).size());
    }
    if (At("(?<") || At("(?'")) {
      const size_t end = p_.find(p_[i_ + 2] == '<' ? '>' : '\'', i_ + 3);
      if (end == std::string_view::npos) return Error("a group name is not closed");
      return Open(p_.substr(i_, end + 1 - i_), end + 1 - i_);
    }
    return Flags();
  }
  absl::Status Open(std::string_view head, size_t consumed) {
    groups_.push_back({out_.size(), 0});
    out_ += head;
    i_ += consumed;
    NoAtom();
    return absl::OkStatus();
  }
  // (?i) (?m-i: ...: i as it is, Ruby's m is PCRE2's s.
  absl::Status Flags() {
    std::string head = "(?";
    size_t j = i_ + 2;
    for (; j < p_.size() && p_[j] != ')' && p_[j] != ':'; ++j) {
      if (p_[j] == 'i' || p_[j] == '-') {
        head += p_[j];
      } else if (p_[j] == 'm') {
        head += 's';
      } else {
        return Error("group option \"{}\" is not supported", fmt::format("(?{}", p_[j]));
      }
    }
    if (j >= p_.size()) return Error("a group is not closed");
    const bool scoped = p_[j] == ':';
    if (scoped) return Open(head + ":", j + 1 - i_);
    i_ = j + 1;
    out_ += head + ":";
    ++groups_.back().flag_groups;
    NoAtom();
    return absl::OkStatus();
  }
  absl::Status CloseGroup() {
    if (groups_.size() == 1) return Error("a ) without its (");
    CloseFlagGroups();
    atom_ = groups_.back().start;
    quantified_ = false;
    groups_.pop_back();
    out_ += ')';
    ++i_;
    return absl::OkStatus();
  }

  absl::Status Escape() {
    if (i_ + 1 >= p_.size()) return Error("a \\ at the end");
    const char c = p_[i_ + 1];
    if (c == 'b' || c == 'B') {
      i_ += 2;
      const std::string word = Bracket(*EscapeSet('w'));
      out_ += c == 'b' ? fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word)
                       : fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word);
      NoAtom();
      return absl::OkStatus();
    }
    if (c == 'A' || c == 'z' || c == 'Z' || c == 'G') {
      i_ += 2;
      out_ += {'\\', c};
      NoAtom();
      return absl::OkStatus();
    }
    // Grapheme clusters: the two libraries' Unicode versions disagree on emoji.
    if (c == 'X') return Error("\\X is not supported");
    if (c == 'R' || c == 'N' || c == 'O') {
      i_ += 2;
      Atom(c == 'N' ? "[^\\x{a}]" : c == 'O' ? kAnyChar : std::string{'\\', c});
      return absl::OkStatus();
    }
    if ((c >= '1' && c <= '9') || c == 'k' || c == 'g') return Reference();
    IHA_ASSIGN_OR_RETURN(const Member member, EscapeMember());
    Atom(member.set.has_value() ? Bracket(*member.set) : Hex(member.point));
    return absl::OkStatus();
  }
  absl::Status Reference() {
    size_t end = i_ + 2;
    if (IsDigit(p_[i_ + 1])) {
      while (end < p_.size() && IsDigit(p_[end])) ++end;
      Atom("\\g{" + std::string(p_.substr(i_ + 1, end - i_ - 1)) + "}");
    } else {
      end = p_.find('>', i_);
      if (end == std::string_view::npos || p_[i_ + 2] != '<') return Error("a reference needs <name>");
      ++end;
      Atom(std::string(p_.substr(i_, end - i_)));
    }
    i_ = end;
    return absl::OkStatus();
  }

  struct Member {
    std::optional<CharSet> set;
    char32_t point = 0;
  };
  // An escape that stands for one character or a set, here and inside brackets alike.
  absl::StatusOr<Member> EscapeMember() {
    if (i_ + 1 >= p_.size()) return Error("a \\ at the end");
    const CodePoint point = FirstChar(p_.substr(i_ + 1));
    if (point.value >= 0x80) {
      i_ += 1 + point.length;
      return Member{std::nullopt, point.value};
    }
    const char c = p_[i_ + 1];
    if (const std::optional<CharSet> set = EscapeSet(c)) {
      i_ += 2;
      return Member{set};
    }
    if (c == 'p' || c == 'P') return Property(c == 'P');
    if (c == 'x' || c == 'u' || c == '0') return Numeric(c);
    if (c == 'c' || c == 'C' || c == 'M' || c == 'y' || c == 'Y' || c == 'K') return Error("\\{} is not supported", c);
    i_ += 2;
    constexpr std::string_view kFrom = "tnrfvae", kTo = "\t\n\r\f\v\a\x1B";
    const size_t known = kFrom.find(c);
    return Member{std::nullopt, static_cast<unsigned char>(known == std::string_view::npos ? c : kTo[known])};
  }
  absl::StatusOr<Member> Property(bool negated) {
    const size_t end = p_.find('}', i_);
    if (i_ + 2 >= p_.size() || p_[i_ + 2] != '{' || end == std::string_view::npos) return Error("\\p needs {{name}}");
    const std::string_view name = p_.substr(i_ + 3, end - i_ - 3);
    for (const char c : name) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c);
      if (!letter && c != '_' && c != '-' && c != ' ' && c != '^') return Error("bad property name");
    }
    CharSet set = PropertySet(name);
    set.negated ^= negated;
    i_ = end + 1;
    return Member{set};
  }
  absl::StatusOr<Member> Numeric(char kind) {
    size_t j = i_ + 2;
    const bool braces = kind == 'x' && j < p_.size() && p_[j] == '{';
    if (braces) ++j;
    const size_t limit = braces ? 8 : kind == 'x' ? 2 : kind == 'u' ? 4 : 2;
    const int base = kind == '0' ? 8 : 16;
    std::string digits;
    while (j < p_.size() && digits.size() < limit &&
           (base == 8 ? p_[j] >= '0' && p_[j] <= '7' : std::isxdigit(static_cast<unsigned char>(p_[j])))) {
      digits += p_[j++];
    }
    const char32_t value = digits.empty() ? 0 : static_cast<char32_t>(std::stoul(digits, nullptr, base));
    if (braces && (j >= p_.size() || p_[j++] != '}')) return Error("\\x{{...}} is not closed");
    if (kind == 'u' && digits.size() != limit) return Error("\\u needs four hex digits");
    if (digits.empty() && kind != '0') return Error("\\{} needs hex digits", kind);
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return Error("no such character");
    if (!braces && kind == 'x' && value >= 0x80) return Error("raw bytes are not supported: write \\x{{...}}");
    i_ = j;
    return Member{std::nullopt, value};
  }

  // A bracket from its [ to its ], as a pattern that takes one character.
  absl::StatusOr<std::string> Class(int depth) {
    if (depth > kMaxClassDepth) return Error("brackets nested too deep");
    ++i_;
    bool negated = false;
    if (i_ < p_.size() && p_[i_] == '^') {
      negated = true;
      ++i_;
    }
    std::vector<ClassMembers> operands(1);  // of &&
    for (bool first = true;; first = false) {
      if (i_ >= p_.size()) return Error("a bracket is not closed");
      if (p_[i_] == ']' && !first) break;
      if (At("&&")) {
        i_ += 2;
        operands.emplace_back();
        continue;
      }
      IHA_RETURN_IF_ERROR(ClassItem(depth, &operands.back()));
    }
    ++i_;
    if (operands.size() == 1 && operands[0].others.empty()) {
      const std::string& items = operands[0].items;
      if (items.empty()) return std::string(negated ? kAnyChar : "(?!)");
      return (negated ? "[^" : "[") + items + "]";
    }
    std::string pattern = operands.back().Pattern();
    for (size_t k = operands.size() - 1; k-- > 0;) pattern = "(?=" + operands[k].Pattern() + ")" + pattern;
    return negated ? "(?:(?!" + pattern + ")" + kAnyChar + ")" : "(?:" + pattern + ")";
  }

  absl::Status ClassItem(int depth, ClassMembers* members) {
    if (At("[:")) {
      const size_t end = p_.find(":]", i_ + 2);
      if (end != std::string_view::npos) {
        const std::optional<CharSet> set = PosixSet(p_.substr(i_ + 2, end - i_ - 2));
        if (!set.has_value()) return Error("bracket expression is not supported");
        members->Add(*set);
        i_ = end + 2;
        return absl::OkStatus();
      }
    }
    if (p_[i_] == '[') {
      IHA_ASSIGN_OR_RETURN(std::string nested, Class(depth + 1));
      members->others.push_back(std::move(nested));
      return absl::OkStatus();
    }
    IHA_ASSIGN_OR_RETURN(const Member low, ClassChar());
    if (low.set.has_value()) {
      members->Add(*low.set);
      return absl::OkStatus();
    }
    members->items += Hex(low.point);
    const bool range = i_ + 1 < p_.size() && p_[i_] == '-' && p_[i_ + 1] != ']' && p_[i_ + 1] != '[' && !At("-&&");
    if (!range) return absl::OkStatus();
    ++i_;
    IHA_ASSIGN_OR_RETURN(const Member high, ClassChar());
    if (high.set.has_value()) {  // [a-\d]: the dash is a character
      members->items += "\\x{2d}";
      members->Add(*high.set);
      return absl::OkStatus();
    }
    if (high.point < low.point) return Error("an empty range in brackets");
    members->items += "-" + Hex(high.point);
    return absl::OkStatus();
  }
  absl::StatusOr<Member> ClassChar() {
    if (p_[i_] != '\\') {
      const CodePoint point = FirstChar(p_.substr(i_));
      i_ += point.length;
      return Member{std::nullopt, point.value};
    }
    if (At("\\b")) {
      i_ += 2;
      return Member{std::nullopt, U'\b'};
    }
    if (At("\\w") ||
        At("\\W")) {  // the plain set: Latin-1's superscripts and fractions are in \w outside brackets only
      CharSet set = *PosixSet("word");
      set.negated = p_[i_ + 1] == 'W';
      i_ += 2;
      return Member{std::move(set)};
    }
    return EscapeMember();
  }

  const std::string_view p_;
  size_t i_ = 0;
  std::string out_;
  std::optional<size_t> atom_;  // start in out_ of what a quantifier would repeat
  bool quantified_ = false;     // and it carries a quantifier already
  std::vector<Group> groups_;
};

}  // namespace

absl::StatusOr<std::string> TranslateOniguruma(std::string_view pattern) { return Translator(pattern).Run(); }

}  // namespace iha::tokenizer
