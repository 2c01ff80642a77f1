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

// Smaller where it is wider than the line, never larger.
std::string Fitting(const std::string& tabular) {
  return fmt::format(
      "\\setbox0=\\hbox{{%\n{}}}\n\\leavevmode\\ifdim\\wd0>\\linewidth\\resizebox{{\\linewidth}}{{!}}{{\\box0}}"
      "\\else\\box0\\fi\n",
      tabular);
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

// Cells of one column: the value and, with a baseline, its delta.
class Body {
 public:
  Body(const Table& table, LongNames& names)
      : table_(table), names_(names), deltas_(!table.baseline.empty()), ranks_(table.rows.size() > 1) {}

  std::string Columns() const {
    std::string out = "l";
    for (size_t c = 0; c < table_.columns.size(); c++) out += deltas_ ? R"(r@{\ \ }l)" : "r";
    return out + (ranks_ ? "r" : "");
  }

  std::string Header() const {
    std::string out = "Model";
    for (const Column& column : table_.columns) out += Across(HeaderText(column.header, names_), "c");
    if (ranks_) out += " & Avg.{} Rank";
    return out + " \\\\\n";
  }

  std::string Row(const TableRow& row) const {
    std::string out = names_.Fit(row.model) + (row.imported.empty() ? "" : " (imported)");
    for (size_t c = 0; c < row.cells.size(); c++) {
      const TableCell& cell = row.cells[c];
      const int decimals = table_.columns[c].decimals;
      const std::string value = Escaped(ValueText(cell, decimals));
      out += " & " + (cell.best ? fmt::format(R"(\textbf{{{}}})", value) : value);
      if (deltas_) out += " & " + DeltaText(cell, decimals);
    }
    if (ranks_) out += " & " + (row.average_rank.has_value() ? row.average_rank->ToFixed(1) : std::string("--"));
    return out + " \\\\\n" + (HasInterval(row) ? Intervals(row) : "");
  }

 private:
  std::string Across(const std::string& text, const char* align) const {
    return deltas_ ? fmt::format(R"( & \multicolumn{{2}}{{{}}}{{{}}})", align, text) : " & " + text;
  }

  std::string Intervals(const TableRow& row) const {
    std::string out;
    for (const TableCell& cell : row.cells) {
      const auto& interval = cell.cell.interval;
      out += Across(interval.has_value() ? fmt::format(R"(\scriptsize {{[}}{:.1f}, {:.1f}{{]}})", 100 * interval->low,
                                                       100 * interval->high)
                                         : "",
                    "l");
    }
    return out + (ranks_ ? " &" : "") + " \\\\[2pt]\n";
  }

  const Table& table_;
  LongNames& names_;
  const bool deltas_;
  const bool ranks_;
};

std::string Joined(const std::vector<std::string>& texts, LongNames& names) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : " & ") + names.Fit(text);
  return out + " \\\\\n";
}

constexpr size_t kUnbroken = 24;  // characters of a word below the table

std::string MeansOfRuler(const Table& table, LongNames& names) {
  std::string out;
  for (const RulerTable& ruler : RulerTables(table)) {
    std::string tabular = fmt::format("\\begin{{tabular}}{{l{}}}\n", std::string(ruler.headers.size() - 1, 'r'));
    tabular += "\\toprule\n" + Joined(ruler.headers, names) + "\\midrule\n";
    for (const std::vector<std::string>& row : ruler.rows) tabular += Joined(row, names);
    out += fmt::format("\n\\medskip\n{}\\par\n{}", Escaped(ruler.title, kUnbroken),
                       Fitting(tabular + "\\bottomrule\n\\end{tabular}"));
  }
  return out;
}

}  // namespace

std::string RenderLatex(const Table& table) {
  LongNames names;
  const Body body(table, names);
  std::string out = "% \\usepackage{booktabs,graphicx,xcolor}\n";
  for (const std::string& line : FooterLines(table)) out += Comment(line);
  out += "\\definecolor{ihagain}{RGB}{0,110,40}\n\\definecolor{ihaloss}{RGB}{180,20,20}\n";
  std::string tabular =
      fmt::format("\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n", body.Columns(), body.Header());
  for (const TableRow& row : table.rows) tabular += body.Row(row);
  out += "\\begin{table}[t]\n\\centering\n" + Fitting(tabular + "\\bottomrule\n\\end{tabular}") +
         MeansOfRuler(table, names) + "\n\\smallskip\n\\begin{minipage}{\\linewidth}\\scriptsize\\raggedright\n";
  std::vector<std::string> lines = names.Lines();
  for (std::string& line : LegendLines(table)) lines.push_back(std::move(line));
  for (const std::string& note : table.notes) lines.push_back("Note: " + note);
  for (const SweepEntry& entry : table.provenance.spec.entries) lines.push_back(Describe(entry));
  for (const std::string& line : lines) out += Escaped(line, kUnbroken) + "\\par\n";
  out += "\\end{minipage}\n\\end{table}\n";
  return out;
}

}  // namespace iha::reports
