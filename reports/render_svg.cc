#include "reports/render_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "common/text.h"
#include "reports/html_text.h"

namespace iha::reports {
namespace {

// Sizes in CSS pixels.
constexpr double kMargin = 16;
constexpr double kAxisWidth = 44;  // left of a panel: numbers
constexpr double kPlotHeight = 240;
constexpr double kTitleHeight = 40;  // room for the label of a bar that ends at the top
constexpr double kBelow = 46;        // below a plot: names and title of its x axis
constexpr double kLegendLine = 22;
constexpr double kNoteLine = 15;
constexpr double kWidth = 840;
constexpr double kCharacter = 6.7;  // of 12 px text, on the wide side: nothing is measured
constexpr size_t kPanelsInRow = 3;
constexpr size_t kLongestName = 40;  // characters of a series' name in the legend

// Colours of Okabe and Ito, told apart by most eyes, dark and light in turn for grey; what is drawn over them.
struct Style {
  const char* colour;
  const char* overlay;  // of a pattern of 8 x 8 px
  const char* dash;
  const char* marker;  // around the origin
};
constexpr std::array<Style, 8> kStyles = {{
    {"#0072B2", "", "", "<circle r=\"4\"/>"},
    {"#F0E442", "<path d=\"M0 8 8 0M-2 2 2 -2M6 10 10 6\"/>", "7 3",
     "<rect x=\"-4\" y=\"-4\" width=\"8\" height=\"8\"/>"},
    {"#D55E00", "<path d=\"M0 4H8\"/>", "2 3", "<path d=\"M0 -5 5 4H-5Z\"/>"},
    {"#FFFFFF", "<circle cx=\"4\" cy=\"4\" r=\"1.5\"/>", "9 3 2 3", "<path d=\"M0 -5 5 0 0 5 -5 0Z\"/>"},
    {"#009E73", "<path d=\"M0 0 8 8M-2 6 2 10M6 -2 10 2\"/>", "1 2", "<path d=\"M0 5 5 -4H-5Z\"/>"},
    {"#CC79A7", "<path d=\"M4 0V8\"/>", "5 2 1 2 1 2",
     "<path d=\"M-5 -3-3 -5 0 -2 3 -5 5 -3 2 0 5 3 3 5 0 2-3 5-5 3-2 0Z\"/>"},
    {"#56B4E9", "<path d=\"M0 0 8 8M0 8 8 0\"/>", "12 3",
     "<path d=\"M-5 -1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z\"/>"},
    {"#666666", "<path d=\"M0 4H8M4 0V8\"/>", "3 3 9 3", "<rect x=\"-5\" y=\"-2\" width=\"10\" height=\"4\"/>"},
}};

// The first eight differ in everything; each further eight take the same colours with another pattern, marker and dash,
// so that 64 are told apart.
Style StyleOf(size_t series) {
  const Style& form = kStyles[(series + series / kStyles.size()) % kStyles.size()];
  return {kStyles[series % kStyles.size()].colour, form.overlay, form.dash, form.marker};
}
constexpr size_t kMostStyles = kStyles.size() * kStyles.size();

// Two decimals always: doubles print alike everywhere.
std::string Px(double value) { return fmt::format("{:.2f}", value == 0 ? 0.0 : value); }

std::string Text(double x, double y, const char* anchor, double size, std::string_view text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", Px(x), Px(y), anchor,
                     Px(size), HtmlText(text));
}

std::string Line(double x1, double y1, double x2, double y2, const char* stroke, double width) {
  return fmt::format("<path d=\"M{} {} {} {}\" stroke=\"{}\" stroke-width=\"{}\" fill=\"none\"/>\n", Px(x1), Px(y1),
                     Px(x2), Px(y2), stroke, Px(width));
}

std::string Pattern(size_t series) {
  const Style style = StyleOf(series);
  return fmt::format(
      "<pattern id=\"p{}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" "
      "fill=\"{}\"/><g stroke=\"#000\" stroke-width=\"1.2\">{}</g></pattern>\n",
      series, style.colour, style.overlay);
}

std::string Marker(size_t series, double x, double y) {
  const Style style = StyleOf(series);
  return fmt::format("<g transform=\"translate({} {})\" fill=\"{}\" stroke=\"#000\" stroke-width=\"1\">{}</g>\n", Px(x),
                     Px(y), style.colour, style.marker);
}

// The number of characters, not bytes.
size_t Characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Where the character `count` begins.
size_t Behind(std::string_view text, size_t count) {
  size_t end = 0;
  while (count-- > 0) end += std::max<size_t>(Utf8Length(text.substr(end), nullptr), 1);
  return end;
}

// What is too long keeps its beginning and its end, where paths differ.
std::string Shortened(const std::string& text, size_t most) {
  const std::string safe = TerminalSafe(text);
  const size_t length = Characters(safe);
  if (length <= most) return safe;
  const size_t head = most / 2, tail = most - head - 1;
  return fmt::format("{}…{}", safe.substr(0, Behind(safe, head)), safe.substr(Behind(safe, length - tail)));
}

// The series' names as the legend has room for; those that would look alike are numbered.
std::vector<std::string> LegendNames(const Figure& figure) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const std::string& series : figure.series) {
    const std::string name = Shortened(series.empty() ? "(no folder)" : series, kLongestName);
    std::string own = name;
    for (int n = 2; !taken.insert(own).second; n++) own = fmt::format("{} ({})", name, n);
    names.push_back(std::move(own));
  }
  return names;
}

// A round number of percent that no bar exceeds, and the distance of its grid lines.
struct Scale {
  double top = 100;
  double step = 20;
};

Scale ScaleOf(const Panel& panel) {
  double highest = 0;
  for (const auto& series : panel.values) {
    for (const auto& value : series) {
      if (value.has_value()) highest = std::max(highest, value->high);
    }
  }
  for (const double step : {0.5, 1.0, 2.0, 5.0, 10.0}) {
    if (highest <= 5 * step) return {5 * step, step};
  }
  return {std::min(100.0, 20 * std::ceil(highest / 20)), 20};
}

// One panel in its frame.
class Plot {
 public:
  Plot(const Panel& panel, double x, double y, double width)
      : panel_(panel),
        scale_(ScaleOf(panel)),
        left_(x + kAxisWidth),
        top_(y + kTitleHeight),
        width_(width - kAxisWidth - kMargin) {}

  std::string Draw() const {
    const auto room = static_cast<size_t>(width_ / kCharacter);
    std::string out = Text(left_, top_ - 24, "start", 13, Shortened(panel_.title, std::max<size_t>(room, 8))) + Axes();
    if (IsEmpty()) return out + Text(left_ + width_ / 2, Y(scale_.top / 2), "middle", 12, "no complete cell");
    return out + (panel_.kind == Panel::Kind::kBars ? Bars() : Lines());
  }

 private:
  bool IsEmpty() const {
    return std::none_of(panel_.values.begin(), panel_.values.end(), [](const auto& series) {
      return std::any_of(series.begin(), series.end(), [](const auto& value) { return value.has_value(); });
    });
  }

  double Y(double percent) const { return top_ + kPlotHeight * (1 - percent / scale_.top); }

  // The middle of position i.
  double X(size_t i) const {
    const auto count = static_cast<double>(panel_.x_names.size());
    if (panel_.x.empty()) return left_ + width_ * (static_cast<double>(i) + 0.5) / count;
    const double last = panel_.x.back();
    return left_ + 12 + (width_ - 36) * (last > 0 ? panel_.x[i] / last : 0);
  }

  std::string Axes() const {
    std::string out;
    for (double tick = 0; tick <= scale_.top + 1e-9; tick += scale_.step) {
      out += Line(left_, Y(tick), left_ + width_, Y(tick), tick == 0 ? "#000" : "#ddd", 1);
      out += Text(left_ - 6, Y(tick) + 4, "end", 11, fmt::format("{}", tick));
    }
    double free_from = left_ - kAxisWidth;  // names that would lie over the one before are left out
    for (size_t i = 0; i < panel_.x_names.size(); i++) {
      const std::string name = Shortened(panel_.x_names[i], 24);
      const double half = kCharacter * static_cast<double>(Characters(name)) / 2;
      if (X(i) - half < free_from) continue;
      free_from = X(i) + half + 4;
      out += Text(X(i), top_ + kPlotHeight + 16, "middle", 12, name);
    }
    out += Text(left_ + width_ / 2, top_ + kPlotHeight + 34, "middle", 11, panel_.x_title);
    return out + Text(left_ - 6, top_ - 10, "end", 11, "%");
  }

  std::string ErrorBar(double x, const FigureValue& value, double cap) const {
    return Line(x, Y(value.low), x, Y(value.high), "#000", 1.2) +
           Line(x - cap, Y(value.low), x + cap, Y(value.low), "#000", 1.2) +
           Line(x - cap, Y(value.high), x + cap, Y(value.high), "#000", 1.2);
  }

  std::string Bars() const {
    const double group = width_ / static_cast<double>(panel_.x_names.size());
    const double bar = std::min(48.0, 0.86 * group / static_cast<double>(panel_.values.size()));
    std::string out;
    for (size_t i = 0; i < panel_.x_names.size(); i++) {
      double x = X(i) - bar * static_cast<double>(panel_.values.size()) / 2;
      for (size_t s = 0; s < panel_.values.size(); s++, x += bar) out += Bar(s, panel_.values[s][i], x, bar);
    }
    return out;
  }

  std::string Bar(size_t series, const std::optional<FigureValue>& value, double x, double width) const {
    const double middle = x + width / 2;
    if (!value.has_value()) return Text(middle, Y(0) - 4, "middle", 11, "–");
    std::string out = fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"url(#p{})\" stroke=\"#000\"/>\n", Px(x + 1),
        Px(Y(value->percent)), Px(std::max(0.5, width - 2)), Px(Y(0) - Y(value->percent)), series % kMostStyles);
    out += ErrorBar(middle, *value, std::min(5.0, width / 4));
    // A number that is wider than its bar would lie over its neighbour's.
    const bool fits = 0.85 * kCharacter * static_cast<double>(value->label.size()) <= width;
    return fits ? out + Text(middle, Y(value->high) - 4, "middle", 10, value->label) : out;
  }

  std::string Lines() const {
    std::string out;
    // Lines at the same place: each a little beside the next, as far as the room goes.
    const double beside = std::min(3.0, 24.0 / static_cast<double>(panel_.values.size()));
    for (size_t s = 0; s < panel_.values.size(); s++) {
      std::string path;
      std::string marks;
      for (size_t i = 0; i < panel_.x_names.size(); i++) {
        const auto& value = panel_.values[s][i];
        if (!value.has_value()) continue;
        const double x = X(i) + beside * (static_cast<double>(s) - 0.5 * static_cast<double>(panel_.values.size() - 1));
        path += fmt::format("{}{} {}", path.empty() ? "M" : " L", Px(x), Px(Y(value->percent)));
        marks += ErrorBar(x, *value, 3) + Marker(s, x, Y(value->percent));
      }
      if (path.empty()) continue;
      out +=
          fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#000\" stroke-width=\"1.6\" stroke-dasharray=\"{}\"/>\n",
                      path, *StyleOf(s).dash == '\0' ? "none" : StyleOf(s).dash) +
          marks;
    }
    return out;
  }

  const Panel& panel_;
  const Scale scale_;
  const double left_, top_, width_;
};

// Names beside their patterns, in as many lines as they need; moves `y` below them.
std::string Legend(const Figure& figure, double& y) {
  const bool lines = !figure.panels.empty() && figure.panels.front().kind == Panel::Kind::kLines;
  const std::vector<std::string> names = LegendNames(figure);
  std::string out;
  double x = kMargin;
  for (size_t s = 0; s < figure.series.size(); s++) {
    const std::string& name = names[s];
    const double width = 34 + kCharacter * static_cast<double>(Characters(name)) + 14;
    if (x > kMargin && x + width > kWidth - kMargin) {
      x = kMargin;
      y += kLegendLine;
    }
    out +=
        lines ? Marker(s, x + 13, y + 7)
              : fmt::format("<rect x=\"{}\" y=\"{}\" width=\"26\" height=\"14\" fill=\"url(#p{})\" stroke=\"#000\"/>\n",
                            Px(x), Px(y), s % kMostStyles);
    out += Text(x + 32, y + 11, "start", 12, name);
    x += width;
  }
  y += kLegendLine + 6;
  return out;
}

// Rows of panels; those of bars get room by how many bars they hold.
std::string Panels(const std::vector<Panel>& panels, double& y) {
  std::string out;
  for (size_t first = 0; first < panels.size(); first += kPanelsInRow) {
    const size_t end = std::min(first + kPanelsInRow, panels.size());
    double shares = 0;
    const auto share = [&](size_t i) {
      return panels[i].kind == Panel::Kind::kBars ? 0.6 + static_cast<double>(panels[i].x_names.size()) : 1.0;
    };
    for (size_t i = first; i < end; i++) shares += share(i);
    double x = kMargin / 2;
    for (size_t i = first; i < end; i++) {
      const double width = (kWidth - kMargin) * share(i) / shares;
      out += Plot(panels[i], x, y, width).Draw();
      x += width;
    }
    y += kTitleHeight + kPlotHeight + kBelow;
  }
  return out;
}

// Words in lines of the figure's width.
std::vector<std::string> Wrapped(const std::string& text) {
  const auto most = static_cast<size_t>((kWidth - 2 * kMargin) / (kCharacter * 0.85));
  std::vector<std::string> lines(1);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!lines.back().empty() && Characters(lines.back()) + 1 + Characters(word) > most) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return lines;
}

}  // namespace

std::string RenderSvg(const Figure& figure) {
  double y = kMargin;
  std::string body = Legend(figure, y);
  body += Panels(figure.panels, y);
  for (const std::string& note : figure.notes) {
    for (const std::string& line : Wrapped(TerminalSafe(note))) {
      body += Text(kMargin, y + 4, "start", 10, line);
      y += kNoteLine;
    }
  }
  std::string patterns;
  for (size_t s = 0; s < std::min(figure.series.size(), kMostStyles); s++) patterns += Pattern(s);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<defs>\n{2}</defs>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n{3}</svg>\n",
      Px(kWidth), Px(y + kMargin / 2), patterns, body);
}

}  // namespace iha::reports
