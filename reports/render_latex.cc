#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/text.h"
#include "reports/render.h"
#include "reports/render_ruler.h"

namespace iha::reports {
namespace {

// What pdflatex prints in its default encoding, by code point: what is special to TeX, what its fonts lack or would
// join into another glyph, and the signs of our own texts.
const std::map<char32_t, const char*>& Replacements() {
  static const std::map<char32_t, const char*> kReplacements = {
      {U'\\', R"(\textbackslash{})"},
      {U'{', R"(\{)"},
      {U'}', R"(\})"},
      {U'$', R"(\$)"},
      {U'&', R"(\&)"},
      {U'#', R"(\#)"},
      {U'%', R"(\%)"},
      {U'_', R"(\_)"},
      {U'^', R"(\textasciicircum{})"},
      {U'~', R"(\textasciitilde{})"},
      {U'<', R"(\textless{})"},
      {U'>', R"(\textgreater{})"},
      {U'|', R"(\textbar{})"},
      {U'"', R"({\ttfamily\char34})"},
      {U'\'', R"(\textquotesingle{})"},
      {U'`', R"(\textasciigrave{})"},
      {U'[', "{[}"},  // not an argument of the line end before it
      {U']', "{]}"},
      {U'*', "{*}"},  // the same
      {U'\u00B7', R"(\textperiodcentered{})"},
      {U'\u00B1', R"($\pm$)"},
      {U'\u00D7', R"($\times$)"},
      {U'\u0394', R"($\Delta$)"},
      {U'\u2020', R"(\textdagger{})"},
      {U'\u2013', "--"},
      {U'\u2014', "---"},
      {U'\u2026', R"(\ldots{})"},
      {U'\u2264', R"($\leq$)"},
      {U'\u2265', R"($\geq$)"},
  };
  return kReplacements;
}

// Letters of Latin-1 that the default encoding composes itself; eth and thorn it does not.
bool IsPlainLetter(char32_t c) {
  return c >= 0xC0 && c <= 0xFF && c != 0xD0 && c != 0xD7 && c != 0xDE && c != 0xF0 && c != 0xF7 && c != 0xFE;
}

// Bytes of the first character, at least one.
size_t Step(std::string_view text, char32_t* c = nullptr) { return std::max<size_t>(Utf8Length(text, c), 1); }

size_t Characters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); count++) text.remove_prefix(Step(text));
  return count;
}

// The first `count` characters.
std::string_view Head(std::string_view text, size_t count) {
  size_t end = 0;
  while (count-- > 0 && end < text.size()) end += Step(text.substr(end));
  return text.substr(0, end);
}

// `unbroken`: a run of more characters than this without a space may be broken behind each further one.
std::string Escaped(std::string_view text, size_t unbroken = SIZE_MAX) {
  std::string out;
  size_t run = 0;
  while (!text.empty()) {
    char32_t c = 0xFFFD;
    const size_t length = Step(text, &c);
    run = c == U' ' ? 0 : run + 1;
    if (run > unbroken) out += "\\hspace{0pt}";
    if (const auto known = Replacements().find(c); known != Replacements().end()) {
      out += known->second;
    } else if (c == U'-' && text.starts_with("--")) {
      out += "-{}";  // not joined to a dash
    } else if (c < 0x20 || c == 0x7F) {
      out += ' ';
    } else if (c < 0x7F || IsPlainLetter(c)) {
      out += text.substr(0, length);
    } else {
      out += fmt::format("{{[}}U+{:04X}{{]}}", static_cast<uint32_t>(c));
    }
    text.remove_prefix(length);
  }
  return out;
}

// Names that are longer than a cell should be: shown by their beginning and a number, whole below the table.
class LongNames {
 public:
  std::string Fit(const std::string& name) {
    if (Characters(name) <= kLongest) return Escaped(name);
    const auto at = std::find(names_.begin(), names_.end(), name);
    const auto number = static_cast<size_t>(at - names_.begin()) + 1;
    if (at == names_.end()) names_.push_back(name);
    return Escaped(fmt::format("{}\u2026 ({})", Head(name, kShown), number));
  }
  // "(1) the whole name", one line each.
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < names_.size(); i++) lines.push_back(fmt::format("({}) {}", i + 1, names_[i]));
    return lines;
  }

 private:
  static constexpr size_t kLongest = 32;
  static constexpr size_t kShown = 26;
  std::vector<std::string> names_;
};

// A header in lines of few characters, broken at spaces.
std::string HeaderText(const std::string& header, LongNames& names) {
  constexpr size_t kWidth = 20;
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= header.size();) {
    const size_t end = std::min(header.find(' ', begin), header.size());
    const std::string word = header.substr(begin, end - begin);
    begin = end + 1;
    if (!lines.empty() && Characters(lines.back()) + 1 + Characters(word) <= kWidth) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : "\\\\") + names.Fit(line);
  return lines.size() == 1 ? out : fmt::format("\\shortstack{{{}}}", out);
}

// Smaller where it is wider than the line, or takes more than its part of most of a page's height; never larger.
std::string Fitting(const std::string& tabular, size_t parts) {
  const std::string most = fmt::format("{:.3f}\\textheight", 0.8 / static_cast<double>(parts));
  return fmt::format(
      "\\setbox0=\\hbox{{%\n{0}}}\n"
      "\\ifdim\\wd0>\\linewidth\\setbox0=\\hbox{{\\resizebox{{\\linewidth}}{{!}}{{\\box0}}}}\\fi\n"
      "\\ifdim\\dimexpr\\ht0+\\dp0\\relax>{1}\\setbox0=\\hbox{{\\resizebox*{{!}}{{{1}}}{{\\box0}}}}\\fi\n"
      "\\leavevmode\\box0\\par\n",
      tabular, most);
}

// Lines in small print.
std::string SmallPrint(const std::vector<std::string>& lines) {
  constexpr size_t kUnbroken = 24;  // characters of a word
  std::string out = "\\scriptsize\\raggedright\n";
  for (const std::string& line : lines) out += Escaped(line, kUnbroken) + "\\par\n";
  return out;
}

// A comment ends with its line.
std::string Comment(const std::string& text) { return "% " + TerminalSafe(text) + "\n"; }

std::string DeltaText(const TableCell& cell, int decimals) {
  if (!cell.delta.has_value()) return "";
  const std::string text = SignedPercent(*cell.delta, decimals);
  const bool zero = text.find_first_not_of("+-0.") == std::string::npos;
  const std::string math = fmt::format("${}$", text);
  if (zero) return math;
  return fmt::format(R"(\textcolor{{{}}}{{{}}})", cell.delta->Sign() > 0 ? "ihagain" : "ihaloss", math);
}

bool HasInterval(const TableRow& row) {
  return std::any_of(row.cells.begin(), row.cells.end(),
                     [](const TableCell& cell) { return cell.cell.interval.has_value(); });
}

// Some of the columns, side by side. Cells of one column: the value and, with a baseline, its delta.
class Block {
 public:
  Block(const Table& table, size_t begin, size_t end, LongNames& names)
      : table_(table),
        begin_(begin),
        end_(end),
        names_(names),
        deltas_(!table.baseline.empty()),
        ranks_(table.rows.size() > 1 && end == table.columns.size()) {}

  std::string Tabular() const {
    std::string out = fmt::format("\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n", Columns(), Header());
    for (const TableRow& row : table_.rows) out += Row(row);
    return out + "\\bottomrule\n\\end{tabular}";
  }

 private:
  std::string Columns() const {
    std::string out = "l";
    for (size_t c = begin_; c < end_; c++) out += deltas_ ? R"(r@{\ \ }l)" : "r";
    return out + (ranks_ ? "r" : "");
  }

  std::string Header() const {
    std::string out = "Model";
    for (size_t c = begin_; c < end_; c++) out += Across(HeaderText(table_.columns[c].header, names_), "c");
    if (ranks_) out += " & Avg.{} Rank";
    return out + " \\\\\n";
  }

  std::string Row(const TableRow& row) const {
    std::string out = names_.Fit(row.model) + (row.imported.empty() ? "" : " (imported)");
    for (size_t c = begin_; c < end_; c++) {
      const TableCell& cell = row.cells[c];
      const int decimals = table_.columns[c].decimals;
      const std::string value = Escaped(ValueText(cell, decimals));
      out += " & " + (cell.best ? fmt::format(R"(\textbf{{{}}})", value) : value);
      if (deltas_) out += " & " + DeltaText(cell, decimals);
    }
    if (ranks_) out += " & " + (row.average_rank.has_value() ? row.average_rank->ToFixed(1) : std::string("--"));
    return out + " \\\\\n" + (HasInterval(row) ? Intervals(row) : "");
  }

  std::string Across(const std::string& text, const char* align) const {
    return deltas_ ? fmt::format(R"( & \multicolumn{{2}}{{{}}}{{{}}})", align, text) : " & " + text;
  }

  std::string Intervals(const TableRow& row) const {
    std::string out;
    for (size_t c = begin_; c < end_; c++) {
      const auto& interval = row.cells[c].cell.interval;
      out += Across(interval.has_value() ? fmt::format(R"(\scriptsize {{[}}{:.1f}, {:.1f}{{]}})", 100 * interval->low,
                                                       100 * interval->high)
                                         : "",
                    "l");
    }
    return out + (ranks_ ? " &" : "") + " \\\\[2pt]\n";
  }

  const Table& table_;
  const size_t begin_;
  const size_t end_;
  LongNames& names_;
  const bool deltas_;
  const bool ranks_;
};

// Blocks of columns below each other: what stands side by side stays large enough to be read.
std::string Blocks(const Table& table, LongNames& names) {
  constexpr size_t kSideBySide = 6;  // as in the paper's widest table
  const size_t blocks = std::max<size_t>(1, (table.columns.size() + kSideBySide - 1) / kSideBySide);
  std::string out;
  for (size_t b = 0; b < blocks; b++) {
    const size_t begin = table.columns.size() * b / blocks, end = table.columns.size() * (b + 1) / blocks;
    out += (b == 0 ? "" : "\n\\medskip\n") + Fitting(Block(table, begin, end, names).Tabular(), blocks);
  }
  return out;
}

std::string Joined(const std::vector<std::string>& texts, LongNames& names) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : " & ") + names.Fit(text);
  return out + " \\\\\n";
}

std::string MeansOfRuler(const Table& table, LongNames& names) {
  std::string out;
  for (const RulerTable& ruler : RulerTables(table)) {
    std::string tabular = fmt::format("\\begin{{tabular}}{{l{}}}\n", std::string(ruler.headers.size() - 1, 'r'));
    tabular += "\\toprule\n" + Joined(ruler.headers, names) + "\\midrule\n";
    for (const std::vector<std::string>& row : ruler.rows) tabular += Joined(row, names);
    out += fmt::format("\n\\medskip\n{{{}}}{}", SmallPrint({ruler.title}),
                       Fitting(tabular + "\\bottomrule\n\\end{tabular}", 2));
  }
  return out;
}

}  // namespace

std::string RenderLatex(const Table& table) {
  LongNames names;
  std::string out = "% \\usepackage{booktabs,graphicx,xcolor}\n";
  for (const std::string& line : FooterLines(table)) out += Comment(line);
  out += "\\definecolor{ihagain}{RGB}{0,110,40}\n\\definecolor{ihaloss}{RGB}{180,20,20}\n";
  out += "\\begin{table}[t]\n\\centering\n" + Blocks(table, names) + MeansOfRuler(table, names);
  std::vector<std::string> below = names.Lines();
  for (std::string& line : LegendLines(table)) below.push_back(std::move(line));
  std::vector<std::string> lines;
  for (const std::string& note : table.notes) lines.push_back("Note: " + note);
  for (const SweepEntry& entry : table.provenance.spec.entries) lines.push_back(Describe(entry));
  // A float is never broken over pages: many lines stand behind it, in the text.
  constexpr size_t kFloating = 12;
  const bool behind = lines.size() > kFloating;
  if (!behind) below.insert(below.end(), lines.begin(), lines.end());
  out += "\n\\smallskip\n\\begin{minipage}{\\linewidth}" + SmallPrint(below) + "\\end{minipage}\n\\end{table}\n";
  if (behind) out += "\n{" + SmallPrint(lines) + "}\n";
  return out;
}

}  // namespace iha::reports
