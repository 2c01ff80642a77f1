// Domains of parameters that are written in words or brackets (markup.h, DomainsAsList).
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "benchmarks/scoring/math/extract_shape.h"
#include "benchmarks/scoring/math/markup.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kLongestDomain = 80;
constexpr std::array<string_view, 4> kTextCommands = {"\\text{", "\\mathrm{", "\\mbox{", "\\textrm{"};

bool Among(string_view word, std::initializer_list<string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// `text` without what separates an answer from the words behind it.
string_view WithoutSeparator(string_view text) {
  for (bool again = true; again;) {
    again = false;
    text = TrimSpaces(text);
    for (const string_view tail : {",", ";", "\\quad", "\\qquad", "\\,", "\\;", "\\ ", "\\", "~", "\\text{",
                                   "\\mathrm{", "\\mbox{", "\\textrm{", "(", "\\left("}) {
      if (!text.ends_with(tail)) continue;
      text.remove_suffix(tail.size());
      again = true;
    }
  }
  return text;
}

// Without the commands and marks that only dress words.
std::string PlainTail(string_view tail) {
  std::string out(tail);
  for (const string_view command : kTextCommands) {
    for (size_t at = out.find(command); at != kNone; at = out.find(command)) out.replace(at, command.size(), " ");
  }
  for (const string_view mark : {"\\right)", "\\quad", "\\,", "\\;", "\\ ", "$", "~"}) {
    for (size_t at = out.find(mark); at != kNone; at = out.find(mark)) out.replace(at, mark.size(), " ");
  }
  return out;
}

// "k \in \mathbb{Z}" at the start of `tail`, up to its end; "" for anything else.
std::string Membership(string_view tail) {
  const size_t in = std::min(tail.find("\\in "), tail.find("\\in\\"));  // "\in Z", "\in\mathbb{Z}"
  if (in == kNone) return "";
  const size_t from = std::min(tail.find_first_not_of(" }"), in);
  const string_view name = TrimSpaces(tail.substr(from, in - from));
  const bool letter = name.size() == 1 && IsAsciiLetter(name[0]);
  if (!letter && !(name.starts_with('\\') && IsGreek(name.substr(1)))) return "";
  const string_view set = TrimSpaces(tail.substr(in + 3));
  // \mathbb{Z}, and the same set in other letters.
  const size_t braced = set.starts_with("\\mathbf{") || set.starts_with("\\mathrm{") ? 8 : 0;
  if (braced < set.size() && string_view("ZNQRC").find(set[braced]) != kNone &&
      (braced == 0 || set.substr(braced + 1).starts_with('}'))) {
    if (set.substr(braced == 0 ? 1 : braced + 2).find_first_not_of(" )}.,") != kNone) return "";
    return std::string(name) + " \\in \\mathbb{" + set[braced] + "}";
  }
  if (!set.starts_with("\\mathbb")) return "";
  size_t end = 7;
  int depth = 0;
  while (end < set.size() && (depth > 0 || string_view("{ ^_+*-ZNQRC").find(set[end]) != kNone)) {
    depth += set[end] == '{' ? 1 : set[end] == '}' ? -1 : 0;
    ++end;
  }
  if (set.substr(end).find_first_not_of(" )}.,") != kNone) return "";
  return std::string(name) + " \\in " + std::string(TrimSpaces(set.substr(0, end)));
}

// "k is a positive integer", "all real numbers x", "some constant c": a membership; "" where nothing is said that
// matters; nullopt for any other words.
std::optional<std::string> DomainInWords(string_view tail) {
  std::vector<std::string> words;
  for (size_t i = 0; i < tail.size();) {
    size_t end = i;
    while (end < tail.size() && (IsAsciiLetter(tail[end]) || tail[end] == '-')) ++end;
    if (end > i) {
      words.emplace_back(tail.substr(i, end - i));
    } else if (string_view(" {}).,").find(tail[i]) == kNone) {
      return std::nullopt;
    }
    i = std::max(end, i + 1);
  }
  std::string name;
  std::string set;
  bool positive = false;
  bool not_negative = false;
  bool several = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string lower = LowerAscii(words[i]);
    const bool article = (lower == "a" || lower == "an") && i + 1 < words.size() && words[i + 1].size() > 1;
    if (words[i].size() == 1 && !article) {
      several = several || !name.empty();
      name = words[i];
    } else if (Among(lower, {"integer", "integers"})) {
      set = "Z";
    } else if (lower == "natural" || lower == "rational" || lower == "complex" || lower == "real" || lower == "reals") {
      set = lower == "natural" ? "N" : lower == "rational" ? "Q" : lower == "complex" ? "C" : "R";
    } else if (lower == "positive") {
      positive = true;
    } else if (lower == "nonnegative" || lower == "non-negative") {
      not_negative = true;
    } else if (!article &&
               !Among(lower, {"is", "are", "any", "some", "all", "every", "arbitrary", "number", "numbers", "constant",
                              "constants", "value", "values", "of", "the", "fixed", "denotes", "and"})) {
      return std::nullopt;
    }
  }
  if (set.empty()) return positive || not_negative ? std::nullopt : std::optional<std::string>("");
  if (name.empty() || several) return std::nullopt;
  return name + " \\in \\mathbb{" + set + "}" + (positive ? "^{+}" : not_negative ? "_{\\ge 0}" : "");
}

// "n is the number of sides": what a letter stands for.
bool Describes(string_view tail) {
  std::string plain = LowerAscii(tail);
  std::erase_if(plain, [](char c) { return c == '{' || c == '}'; });
  const string_view text = TrimSpaces(plain);
  const size_t verb = text.find_first_of(' ');
  if (verb != 1 || !IsAsciiLetter(text[0])) return false;
  const string_view rest = TrimSpaces(text.substr(verb));
  const bool says = rest.starts_with("is the ") || rest.starts_with("denotes the ") || rest.starts_with("represents ");
  return says && std::all_of(rest.begin(), rest.end(), [](char c) { return IsAsciiLetter(c) || c == ' ' || c == '.'; });
}

}  // namespace

void DomainsAsList(std::string& text) {
  // "k\pi (k \in \mathbb{Z})"
  string_view whole = TrimSpaces(text);
  while (whole.ends_with('$') || whole.ends_with('.')) whole = TrimSpaces(whole.substr(0, whole.size() - 1));
  const size_t open = whole.ends_with(')') ? whole.rfind('(') : kNone;
  if (open != kNone && open > 0) {
    const string_view inside = whole.substr(open + 1, whole.size() - open - 2);
    const std::string member =
        Membership(PlainTail(inside.ends_with("\\right") ? inside.substr(0, inside.size() - 6) : inside));
    const string_view head = WithoutSeparator(whole.substr(0, open));
    if (!member.empty() && !head.empty()) {
      text = std::string(head) + ", " + member;
      return;
    }
  }
  for (const string_view marker : {"where", "for all", "for any", "for every", "for each", "for some", "\\forall"}) {
    const size_t at = text.find(marker);
    if (at == kNone || at == 0 || IsAsciiLetter(text[at - 1])) continue;
    if (at + marker.size() < text.size() && IsAsciiLetter(text[at + marker.size()])) continue;
    const std::string head(WithoutSeparator(string_view(text).substr(0, at)));
    if (head.empty() || text.size() - at > kLongestDomain || ShapeOf(head).prose > 0) return;
    const std::string tail = PlainTail(string_view(text).substr(at + marker.size()));
    std::optional<std::string> domain = Membership(tail);
    if (domain->empty()) domain = Describes(tail) ? "" : DomainInWords(tail);
    if (!domain.has_value()) return;
    text = head + (domain->empty() ? "" : ", " + *domain);
    return;
  }
}

}  // namespace iha::scoring::math
