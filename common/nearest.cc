#include "common/nearest.h"

#include <algorithm>
#include <vector>

#include "common/errors.h"
#include "common/text.h"

namespace iha {
namespace {

// Longer names are not typed by hand; the bound keeps the quadratic table small for untrusted input.
constexpr size_t kMaxNameBytes = 256;

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int> before(width), last(width), row(width);
  for (size_t j = 0; j < width; j++) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); i++) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j < width; j++) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> NearestName(std::string_view name, std::span<const std::string> known) {
  if (name.size() > kMaxNameBytes) return std::nullopt;
  int best = std::max<int>(1, static_cast<int>(name.size()) / 3) + 1;
  std::optional<std::string> nearest;
  for (const std::string& candidate : known) {
    if (candidate.size() > kMaxNameBytes) continue;
    const int distance = EditDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

absl::Status UnknownName(std::string_view what, std::string_view name, std::span<const std::string> known) {
  constexpr size_t kShown = 80;
  const std::string shown = TerminalSafe(name, kShown);
  if (const std::optional<std::string> nearest = NearestName(name, known); nearest.has_value()) {
    return InvalidArgument("unknown {} \"{}\" (did you mean \"{}\"?)", what, shown, TerminalSafe(*nearest, kShown));
  }
  if (known.empty()) return InvalidArgument("unknown {} \"{}\": it takes none", what, shown);
  constexpr size_t kListed = 20;
  std::string list;
  for (size_t i = 0; i < known.size() && i < kListed; i++) {
    list += (i == 0 ? "" : ", ") + TerminalSafe(known[i], kShown);
  }
  if (known.size() > kListed) list += ", ...";
  return InvalidArgument("unknown {} \"{}\", expected one of: {}", what, shown, list);
}

}  // namespace iha
