#include "benchmarks/scoring/math/words.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace iha::scoring::math {
namespace {

using std::string_view;
using Set = std::unordered_set<string_view>;

const Set& Units() {
  static const Set* const kUnits =
      new Set{"cm",         "mm",          "km",         "nm",          "dm",         "kg",
              "mg",         "gm",          "gms",        "ml",          "dl",         "ft",
              "yd",         "yds",         "mi",         "lb",          "lbs",        "oz",
              "mph",        "kmh",         "kph",        "rpm",         "hz",         "khz",
              "mhz",        "kw",          "kwh",        "kj",          "kcal",       "mol",
              "pa",         "kpa",         "atm",        "psi",         "in",         "ins",
              "inch",       "inches",      "foot",       "feet",        "yard",       "yards",
              "mile",       "miles",       "meter",      "meters",      "metre",      "metres",
              "centimeter", "centimeters", "centimetre", "centimetres", "millimeter", "millimeters",
              "kilometer",  "kilometers",  "kilometre",  "kilometres",  "gram",       "grams",
              "kilogram",   "kilograms",   "milligram",  "milligrams",  "pound",      "pounds",
              "ounce",      "ounces",      "ton",        "tons",        "tonne",      "tonnes",
              "liter",      "liters",      "litre",      "litres",      "milliliter", "milliliters",
              "gallon",     "gallons",     "quart",      "quarts",      "pint",       "pints",
              "cup",        "cups",        "acre",       "acres",       "hectare",    "hectares",
              "sec",        "secs",        "second",     "seconds",     "min",        "mins",
              "minute",     "minutes",     "hr",         "hrs",         "hour",       "hours",
              "day",        "days",        "week",       "weeks",       "month",      "months",
              "year",       "years",       "yr",         "yrs",         "dollar",     "dollars",
              "cent",       "cents",       "usd",        "eur",         "euro",       "euros",
              "gbp",        "rs",          "rupees",     "yen",         "yuan",       "pesos",
              "degree",     "degrees",     "deg",        "degs",        "radian",     "radians",
              "rad",        "celsius",     "fahrenheit", "kelvin",      "unit",       "units",
              "square",     "squared",     "sq",         "cubic",       "cubed",      "newton",
              "newtons",    "joule",       "joules",     "watt",        "watts",      "volt",
              "volts",      "ohm",         "ohms",       "amp",         "amps",       "point",
              "points",     "people",      "person",     "student",     "students",   "way",
              "ways",       "time",        "times",      "digit",       "digits",     "integer",
              "integers",   "piece",       "pieces",     "bit",         "bits",       "byte",
              "bytes",      "nickels",     "dimes",      "quarters",    "coins",      "marbles",
              "apples",     "per",         "each",       "total",       "eggs",       "chips",
              "bins",       "bells",       "ants",       "bees",        "beers",      "ans",
              "base",       "numbers",     "solutions",  "values",      "triangles",  "kilo",
              "kilos",      "g",           "m",          "s",           "l",          "h"};
  return *kUnits;
}

constexpr std::array<string_view, 12> kMonths = {"january", "february", "march",     "april",   "may",      "june",
                                                 "july",    "august",   "september", "october", "november", "december"};

constexpr std::array<string_view, 12> kStrong = {
    "final answer is", "final answer:", "final answer**:", "final answer:**", "final answer**", "final answer\n",
    "final result is", "final result:", "最终答案是",      "最终答案为",      "最终答案：",     "最终答案:"};

constexpr std::array<string_view, 62> kAnswers = {
    "answer is", "answer was", "answer are", "answer would be", "answer will be", "answer should be",
    "answer:", "answer**:", "answer:**", "answer =", "answer to the question is", "answer to this problem is",
    "answer to the problem is", "answers are", "answers:", "solution is", "solutions are", "solution:", "result is",
    "result:", "answer must be",
    // Chinese, Japanese, Korean
    "答案是", "答案为", "答案：", "答案:", "答案应该是", "答案應該是", "答案為", "答案选", "选择", "答え：",
    "答え:", "答えは", "正解は", "정답:", "정답은", "답:", "답은",
    // French, Spanish, Portuguese, Italian, German, Dutch
    "réponse est", "réponse:", "réponse :", "respuesta es", "respuesta:", "resposta é", "resposta:", "risposta è",
    "risposta:", "antwort ist", "antwort lautet", "antwort:", "antwoord is", "antwoord:",
    // Russian, Polish, Turkish, Vietnamese, Indonesian, Swahili
    "ответ:", "ответ —", "ответ -", "odpowiedź:", "cevap:", "đáp án:", "đáp án là", "jawaban:", "jawabannya adalah",
    "jibu ni"};

constexpr std::array<string_view, 50> kAnswersMore = {"câu trả lời là",
                                                      "câu trả lời:",
                                                      "odpowiedź to",
                                                      "cevap ",
                                                      "doğru cevap",
                                                      "jibu:",
                                                      "jawaban yang benar adalah",
                                                      "ответом является",
                                                      "правильный ответ",
                                                      "ответ",
                                                      "відповідь:",
                                                      "відповідь",
                                                      "الإجابة هي",
                                                      "الإجابة:",
                                                      "الجواب:",
                                                      "الجواب هو",
                                                      "الإجابة الصحيحة هي",
                                                      "उत्तर:",
                                                      "उत्तर है",
                                                      "उत्तर",
                                                      "উত্তর:",
                                                      "উত্তর",
                                                      "คำตอบคือ",
                                                      "απάντηση είναι",
                                                      "התשובה היא",
                                                      "svaret är",
                                                      "svar:",
                                                      "ans:",
                                                      "ans.",
                                                      "odpověď:",
                                                      "odpověď je",
                                                      "vastaus:",
                                                      "válasz:",
                                                      "răspuns:",
                                                      "răspunsul este",
                                                      "đáp số là",
                                                      "đáp số:",
                                                      "lösung ist",
                                                      "lösung:",
                                                      "ergebnis ist",
                                                      "resultado es",
                                                      "résultat est",
                                                      "คำตอบ:",
                                                      "సమాధానం:",
                                                      "απάντηση:",
                                                      "correct option is",
                                                      "correct choice is",
                                                      "correct letter is",
                                                      "right option is",
                                                      "right choice is"};

}  // namespace

bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsAsciiSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

std::string LowerAscii(string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string LowerLetters(string_view text) {
  std::string out = LowerAscii(text);
  for (size_t i = 0; i + 1 < out.size(); ++i) {
    const auto lead = static_cast<unsigned char>(out[i]);
    const auto next = static_cast<unsigned char>(out[i + 1]);
    const auto set = [&](unsigned code) {
      out[i] = static_cast<char>(0xC0 | (code >> 6));
      out[i + 1] = static_cast<char>(0x80 | (code & 0x3F));
    };
    if (lead < 0xC3 || lead > 0xD0) continue;
    const unsigned code = (lead & 0x1Fu) << 6 | (next & 0x3Fu);
    if ((code >= 0xC0 && code <= 0xDE && code != 0xD7) || (code >= 0x391 && code <= 0x3A9) ||
        (code >= 0x410 && code <= 0x42F)) {
      set(code + 0x20);
    } else if (code >= 0x400 && code <= 0x40F) {
      set(code + 0x50);
    }
    ++i;
  }
  return out;
}

string_view TrimSpaces(string_view text) {
  while (!text.empty() && IsAsciiSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsAsciiSpace(text.back())) text.remove_suffix(1);
  return text;
}

bool IsUnit(string_view word) { return Units().contains(word); }

bool IsUnitLetter(string_view word) {
  return word.size() == 1 && string_view("KLVWJNACFTHgmshl").find(word[0]) != string_view::npos;
}

bool IsCurrencyCode(string_view word) {
  static const Set* const kCodes = new Set{"USD", "EUR", "GBP", "JPY", "CNY", "RMB", "INR", "CAD", "AUD", "CHF", "Rs"};
  return kCodes->contains(word);
}

bool IsPercentWord(string_view word) {
  return word == "percent" || word == "prozent" || word == "por ciento" || word == "pour cent" || word == "pct" ||
         word == "per cent" || word == "percents" || word == "percentage";
}

bool IsConnective(string_view word) {
  static const Set* const kWords =
      new Set{"and", "or", "und",    "et",   "y",  "oder", "ou",    "o",    "e",   "и",   "или", "和",
              "或",  "&",  "and/or", "或者", "ve", "och",  "eller", "oraz", "lub", "dan", "atau"};
  return kWords->contains(word);
}

bool IsOrWord(string_view word) {
  static const Set* const kWords =
      new Set{"or", "oder", "ou", "o", "или", "或", "and/or", "或者", "eller", "lub", "atau"};
  return kWords->contains(word);
}

std::optional<int64_t> MultiplierOf(string_view word) {
  if (word == "dozen") return 12;
  if (word == "hundred") return 100;
  if (word == "thousand") return 1000;
  if (word == "million" || word == "millions") return 1000000;
  if (word == "billion" || word == "billions") return 1000000000;
  if (word == "trillion") return 1000000000000;
  if (word == "万" || word == "萬") return 10000;
  if (word == "亿" || word == "億") return 100000000;
  return std::nullopt;
}

std::optional<int> MonthOf(string_view word) {
  for (size_t i = 0; i < kMonths.size(); ++i) {
    if (word == kMonths[i] || (word.size() == 3 && kMonths[i].starts_with(word)) || (word == "sept" && i == 8)) {
      return static_cast<int>(i) + 1;
    }
  }
  return std::nullopt;
}

std::optional<string_view> WeekdayOf(string_view word) {
  constexpr std::array<string_view, 7> kDays = {"monday", "tuesday",  "wednesday", "thursday",
                                                "friday", "saturday", "sunday"};
  for (const string_view day : kDays) {
    if (word == day || (word.size() >= 3 && word.size() <= 5 && day.starts_with(word))) return day;
  }
  return std::nullopt;
}

std::optional<string_view> PlainCommand(string_view word) {
  static const Set* const kSame =
      new Set{"sin",   "cos",   "tan",   "cot",  "sec",   "csc",   "arcsin",  "arccos", "arctan", "arccot",
              "sinh",  "cosh",  "tanh",  "coth", "log",   "ln",    "lg",      "exp",    "sqrt",   "cbrt",
              "pi",    "theta", "alpha", "beta", "gamma", "delta", "lambda",  "omega",  "phi",    "sigma",
              "diag",  "mu",    "gcd",   "lcm",  "max",   "min",   "abs",     "floor",  "ceil",   "frac",
              "times", "infty", "tau",   "rho",  "binom", "det",   "epsilon", "cis",    "Re",     "Im"};
  static const auto* const kOther = new std::unordered_map<string_view, string_view>{
      {"oo", "infty"},         {"infinity", "infty"}, {"asin", "arcsin"}, {"acos", "arccos"},   {"atan", "arctan"},
      {"union", "cup"},        {"ceiling", "ceil"},   {"inf", "infty"},   {"arcsec", "arcsec"}, {"arccsc", "arccsc"},
      {"intersection", "cap"}, {"choose", "choose"},  {"tg", "tan"},      {"ctg", "cot"},       {"arctg", "arctan"},
      {"arcctg", "arccot"},    {"sen", "sin"},        {"mcd", "gcd"},     {"pgcd", "gcd"},      {"ggt", "gcd"},
      {"mcm", "lcm"},          {"ppcm", "lcm"},       {"kgv", "lcm"}};
  if (const auto found = kSame->find(word); found != kSame->end()) return *found;
  if (const auto found = kOther->find(word); found != kOther->end()) return found->second;
  return std::nullopt;
}

bool IsFunctionName(string_view name) {
  static const auto* const kNames =
      new Set{"sin",    "cos",    "tan",  "cot",  "sec",  "csc",  "arcsin", "arccos", "arctan", "arccot",
              "arcsec", "arccsc", "sinh", "cosh", "tanh", "coth", "sech",   "csch",   "log",    "ln",
              "lg",     "exp",    "gcd",  "lcm",  "max",  "min",  "abs",    "floor",  "ceil",   "det",
              "Re",     "Im",     "arg",  "sgn",  "cis",  "tr",   "dim",    "deg",    "ker",    "diag"};
  return kNames->contains(name);
}

bool IsGreek(string_view command) {
  static const Set* const kGreek =
      new Set{"alpha",  "beta",    "gamma",  "delta",  "epsilon", "varepsilon", "zeta",  "eta",    "theta", "vartheta",
              "iota",   "kappa",   "lambda", "mu",     "nu",      "xi",         "rho",   "varrho", "sigma", "varsigma",
              "tau",    "upsilon", "phi",    "varphi", "chi",     "psi",        "omega", "Gamma",  "Delta", "Theta",
              "Lambda", "Xi",      "Pi",     "Sigma",  "Upsilon", "Phi",        "Psi",   "Omega",  "ell",   "hbar",
              "aleph",  "partial", "nabla",  "imath",  "jmath",   "wp"};
  return kGreek->contains(command);
}

std::span<const string_view> StrongPhrases() { return kStrong; }

std::span<const string_view> AnswerPhrases() {
  static const auto* const kAll = [] {
    auto* all = new std::array<string_view, kAnswers.size() + kAnswersMore.size()>();
    std::copy(kAnswers.begin(), kAnswers.end(), all->begin());
    std::copy(kAnswersMore.begin(), kAnswersMore.end(), all->begin() + kAnswers.size());
    return all;
  }();
  return *kAll;
}

}  // namespace iha::scoring::math
