#include "benchmarks/scoring/math/quantities.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kLongest = 120;

enum Dimension : int { kTime = 1, kMonths, kLength, kMetric, kWeight, kMass, kVolume, kLiters, kMoney };

struct Unit {
  Dimension dimension;
  int64_t factor;
};

const std::unordered_map<string_view, Unit>& Units() {
  static const auto* const kUnits = new std::unordered_map<string_view, Unit>{{"s", {kTime, 1}},
                                                                              {"sec", {kTime, 1}},
                                                                              {"secs", {kTime, 1}},
                                                                              {"second", {kTime, 1}},
                                                                              {"seconds", {kTime, 1}},
                                                                              {"min", {kTime, 60}},
                                                                              {"mins", {kTime, 60}},
                                                                              {"minute", {kTime, 60}},
                                                                              {"minutes", {kTime, 60}},
                                                                              {"h", {kTime, 3600}},
                                                                              {"hr", {kTime, 3600}},
                                                                              {"hrs", {kTime, 3600}},
                                                                              {"hour", {kTime, 3600}},
                                                                              {"hours", {kTime, 3600}},
                                                                              {"day", {kTime, 86400}},
                                                                              {"days", {kTime, 86400}},
                                                                              {"week", {kTime, 604800}},
                                                                              {"weeks", {kTime, 604800}},
                                                                              {"hora", {kTime, 3600}},
                                                                              {"horas", {kTime, 3600}},
                                                                              {"minuto", {kTime, 60}},
                                                                              {"minutos", {kTime, 60}},
                                                                              {"heure", {kTime, 3600}},
                                                                              {"heures", {kTime, 3600}},
                                                                              {"stunde", {kTime, 3600}},
                                                                              {"stunden", {kTime, 3600}},
                                                                              {"minuten", {kTime, 60}},
                                                                              {"sekunden", {kTime, 1}},
                                                                              {"часа", {kTime, 3600}},
                                                                              {"час", {kTime, 3600}},
                                                                              {"часов", {kTime, 3600}},
                                                                              {"минут", {kTime, 60}},
                                                                              {"минуты", {kTime, 60}},
                                                                              {"小时", {kTime, 3600}},
                                                                              {"分钟", {kTime, 60}},
                                                                              {"秒", {kTime, 1}},
                                                                              {"month", {kMonths, 1}},
                                                                              {"months", {kMonths, 1}},
                                                                              {"year", {kMonths, 12}},
                                                                              {"years", {kMonths, 12}},
                                                                              {"yr", {kMonths, 12}},
                                                                              {"yrs", {kMonths, 12}},
                                                                              {"in", {kLength, 1}},
                                                                              {"inch", {kLength, 1}},
                                                                              {"inches", {kLength, 1}},
                                                                              {"\"", {kLength, 1}},
                                                                              {"ft", {kLength, 12}},
                                                                              {"foot", {kLength, 12}},
                                                                              {"feet", {kLength, 12}},
                                                                              {"'", {kLength, 12}},
                                                                              {"yd", {kLength, 36}},
                                                                              {"yard", {kLength, 36}},
                                                                              {"yards", {kLength, 36}},
                                                                              {"mi", {kLength, 63360}},
                                                                              {"mile", {kLength, 63360}},
                                                                              {"miles", {kLength, 63360}},
                                                                              {"mm", {kMetric, 1}},
                                                                              {"cm", {kMetric, 10}},
                                                                              {"m", {kMetric, 1000}},
                                                                              {"meter", {kMetric, 1000}},
                                                                              {"meters", {kMetric, 1000}},
                                                                              {"metre", {kMetric, 1000}},
                                                                              {"metres", {kMetric, 1000}},
                                                                              {"km", {kMetric, 1000000}},
                                                                              {"centimeters", {kMetric, 10}},
                                                                              {"millimeters", {kMetric, 1}},
                                                                              {"kilometers", {kMetric, 1000000}},
                                                                              {"oz", {kWeight, 1}},
                                                                              {"ounce", {kWeight, 1}},
                                                                              {"ounces", {kWeight, 1}},
                                                                              {"lb", {kWeight, 16}},
                                                                              {"lbs", {kWeight, 16}},
                                                                              {"pound", {kWeight, 16}},
                                                                              {"pounds", {kWeight, 16}},
                                                                              {"ton", {kWeight, 32000}},
                                                                              {"tons", {kWeight, 32000}},
                                                                              {"mg", {kMass, 1}},
                                                                              {"g", {kMass, 1000}},
                                                                              {"gram", {kMass, 1000}},
                                                                              {"grams", {kMass, 1000}},
                                                                              {"kg", {kMass, 1000000}},
                                                                              {"kilogram", {kMass, 1000000}},
                                                                              {"kilograms", {kMass, 1000000}},
                                                                              {"cup", {kVolume, 1}},
                                                                              {"cups", {kVolume, 1}},
                                                                              {"pint", {kVolume, 2}},
                                                                              {"pints", {kVolume, 2}},
                                                                              {"quart", {kVolume, 4}},
                                                                              {"quarts", {kVolume, 4}},
                                                                              {"gallon", {kVolume, 16}},
                                                                              {"gallons", {kVolume, 16}},
                                                                              {"ml", {kLiters, 1}},
                                                                              {"milliliters", {kLiters, 1}},
                                                                              {"l", {kLiters, 1000}},
                                                                              {"liter", {kLiters, 1000}},
                                                                              {"liters", {kLiters, 1000}},
                                                                              {"litre", {kLiters, 1000}},
                                                                              {"litres", {kLiters, 1000}},
                                                                              {"cent", {kMoney, 1}},
                                                                              {"cents", {kMoney, 1}},
                                                                              {"¢", {kMoney, 1}},
                                                                              {"dollar", {kMoney, 100}},
                                                                              {"dollars", {kMoney, 100}},
                                                                              {"\\$", {kMoney, 100}}};
  return *kUnits;
}

class QuantityReader {
 public:
  explicit QuantityReader(string_view text) : text_(text) {}

  std::optional<Quantity> Run() {
    Quantity out;
    for (SkipJoins(true); pos_ < text_.size(); SkipJoins(false)) {
      const bool money = Take("\\$");
      SkipJoins(true);
      const auto value = Value();
      if (!value.has_value()) return std::nullopt;
      SkipJoins(true);
      std::optional<Unit> unit = money ? std::optional(Units().at("\\$")) : UnitHere(out);
      // "2h30": minutes behind hours.
      const bool bare = !unit.has_value() && pos_ >= text_.size() && out.dimension == kTime && out.units.size() == 1 &&
                        out.units[0] == Rational(3600);
      if (bare) unit = Unit{kTime, 60};
      if (!unit.has_value() || !Append(*value, *unit, out)) return std::nullopt;
    }
    return out.units.empty() ? std::nullopt : std::optional(out);
  }

 private:
  bool Take(string_view mark) {
    if (!text_.substr(pos_).starts_with(mark)) return false;
    pos_ += mark.size();
    return true;
  }

  // Blanks, braces and text commands; between two parts also commas and "and".
  void SkipJoins(bool inside) {
    for (bool again = true; again && pos_ < text_.size();) {
      again = false;
      if (IsAsciiSpace(text_[pos_]) || string_view("~{}").find(text_[pos_]) != string_view::npos ||
          (text_[pos_] == '$' && (pos_ == 0 || text_[pos_ - 1] != '\\'))) {
        ++pos_;
        again = true;
        continue;
      }
      for (const string_view command :
           {"\\text", "\\mathrm", "\\mbox", "\\textrm", "\\,", "\\ ", "\\;", "\\:", "\\!"}) {
        const size_t end = pos_ + command.size();
        const bool letters = IsAsciiLetter(command.back());
        if (!text_.substr(pos_).starts_with(command) || (letters && (end >= text_.size() || text_[end] != '{')))
          continue;
        pos_ = end;
        again = true;
        break;
      }
      if (again || inside) continue;
      if (text_[pos_] == ',' || (text_[pos_] == '.' && pos_ + 1 == text_.size())) {
        ++pos_;
        again = true;
      } else if (text_.substr(pos_).starts_with("and ") || text_.substr(pos_).starts_with("and}")) {
        pos_ += 3;
        again = true;
      }
    }
  }

  string_view Digits() {
    const size_t begin = pos_;
    while (pos_ < text_.size() && IsAsciiDigit(text_[pos_])) ++pos_;
    return text_.substr(begin, pos_ - begin);
  }

  static std::optional<Rational> Fraction(string_view top, string_view bottom) {
    if (top.empty() || bottom.empty() || top.size() > 9 || bottom.size() > 9) return std::nullopt;
    const int64_t below = std::stoll(std::string(bottom));
    if (below == 0) return std::nullopt;
    return Rational(std::stoll(std::string(top)), below);
  }

  std::optional<Rational> LatexFraction() {
    for (const string_view command : {"\\frac", "\\dfrac", "\\tfrac"}) {
      const size_t at = pos_ + command.size();
      const bool digits = text_.substr(pos_).starts_with(command) && at + 1 < text_.size() && IsAsciiDigit(text_[at]) &&
                          IsAsciiDigit(text_[at + 1]);
      if (!digits) continue;
      pos_ = at + 2;
      return Fraction(text_.substr(at, 1), text_.substr(at + 1, 1));
    }
    for (const string_view command : {"\\frac{", "\\dfrac{", "\\tfrac{"}) {
      if (!Take(command)) continue;
      const string_view top = Digits();
      if (!Take("}{")) return std::nullopt;
      const string_view bottom = Digits();
      return Take("}") ? Fraction(top, bottom) : std::nullopt;
    }
    return std::nullopt;
  }

  // 2, 2.5, 1,200, 3/4, 1 1/2, 1\frac{1}{2}.
  std::optional<Rational> Value() {
    if (pos_ < text_.size() && text_[pos_] == '\\') return LatexFraction();
    std::string digits(Digits());
    if (digits.empty()) return std::nullopt;
    if (Take("/")) return Fraction(digits, Digits());
    const size_t whole_end = pos_;
    while (pos_ < text_.size() && text_[pos_] == ' ') ++pos_;
    const size_t second = pos_;
    const string_view top = Digits();
    if (!top.empty() && second > whole_end && Take("/")) {
      const auto part = Fraction(top, Digits());
      return part.has_value() ? std::optional(Rational(std::stoll(digits.substr(0, 9))) + *part) : std::nullopt;
    }
    pos_ = second;
    if (const auto part = LatexFraction()) return Rational(std::stoll(digits.substr(0, 9))) + *part;
    pos_ = whole_end;
    const auto mark_then_digit = [&](char mark) {
      return pos_ + 1 < text_.size() && text_[pos_] == mark && IsAsciiDigit(text_[pos_ + 1]);
    };
    while (mark_then_digit(',')) {
      ++pos_;
      const string_view group = Digits();
      if (group.size() != 3) return std::nullopt;
      digits += group;
    }
    if (mark_then_digit('.')) {
      ++pos_;
      digits += '.';
      digits += Digits();
    }
    return Rational::ParseDecimal(digits);
  }

  std::optional<Unit> UnitHere(const Quantity& so_far) {
    const size_t begin = pos_;
    if (Take("''") || Take("\"")) return Units().at("\"");
    if (Take("'")) return Units().at("'");
    while (pos_ < text_.size() && (IsAsciiLetter(text_[pos_]) || static_cast<unsigned char>(text_[pos_]) >= 0x80))
      ++pos_;
    const std::string word = LowerAscii(text_.substr(begin, pos_ - begin));
    if (pos_ < text_.size() && text_[pos_] == '.' && pos_ > begin) ++pos_;
    if (word == "m" && so_far.dimension == kTime) return Unit{kTime, 60};
    const auto found = Units().find(word);
    return found == Units().end() ? std::nullopt : std::optional(found->second);
  }

  static bool Append(const Rational& value, const Unit& unit, Quantity& out) {
    const Rational factor(unit.factor);
    const bool again = std::find(out.units.begin(), out.units.end(), factor) != out.units.end();
    if (again || (out.dimension != 0 && out.dimension != unit.dimension)) return false;
    out.dimension = unit.dimension;
    out.total += value * factor;
    out.units.push_back(factor);
    return true;
  }

  string_view text_;
  size_t pos_ = 0;
};

}  // namespace

std::optional<Quantity> ParseQuantity(string_view answer) {
  if (answer.size() > kLongest || answer.find_first_of("0123456789") == string_view::npos) return std::nullopt;
  return QuantityReader(answer).Run();
}

}  // namespace iha::scoring::math
