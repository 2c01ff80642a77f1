// Forms with words or parameters beside the value: domains of parameters, chains of equal names, derivatives, ellipses
// (docs/grading.md, rules `domain`, `list`, `derivative`).
#include <algorithm>
#include <set>

#include "benchmarks/scoring/math/compare.h"

namespace iha::scoring::math {
namespace {

constexpr size_t kMaxExpanded = 1000;  // numbers that an ellipsis stands for

bool Occurs(const Tree& tree, Ref ref, const std::string& symbol) {
  if (tree.Is(ref, Kind::kSymbol)) return tree[ref].text == symbol;
  const std::vector<Ref>& kids = tree[ref].kids;
  return std::any_of(kids.begin(), kids.end(), [&](Ref kid) { return Occurs(tree, kid, symbol); });
}

void CollectSymbols(const Tree& tree, Ref ref, std::set<std::string>& names) {
  if (tree.Is(ref, Kind::kSymbol)) names.insert(tree[ref].text);
  for (const Ref kid : tree[ref].kids) CollectSymbols(tree, kid, names);
}

// "k \in \mathbb{Z}": the name of k; "" for anything else.
std::string ParameterOf(const Tree& tree, Ref ref) {
  const Node& node = tree[ref];
  const bool member = node.kind == Kind::kRelation && node.text == "e" && tree.Is(node.kids[0], Kind::kSymbol) &&
                      tree.Is(node.kids[1], Kind::kNamedSet);
  return member ? tree[node.kids[0]].text : "";
}

// A value, or a name or call that equals one: what a domain of a parameter can stand beside. "x > 2, x \in \mathbb{Z}"
// and "x = 3, x \in \mathbb{N}" say something about x itself.
bool HasParameter(const Tree& tree, Ref item, const std::string& parameter) {
  const Node& node = tree[item];
  if (node.kind != Kind::kRelation) return Occurs(tree, item, parameter);
  if (node.text != "=" && node.text != "e") return false;
  return !(tree.Is(node.kids[0], Kind::kSymbol) && tree[node.kids[0]].text == parameter) &&
         Occurs(tree, item, parameter);
}

}  // namespace

Comparer::Stated Comparer::WithoutDomains(Ref ref) {
  Stated out{.value = ref, .domains = {}};
  if (!tree_.Is(ref, Kind::kList)) return out;
  const Node list = tree_[ref];
  std::vector<Ref> values;
  for (const Ref kid : list.kids) {
    const std::string parameter = ParameterOf(tree_, kid);
    const bool used = !parameter.empty() && std::any_of(list.kids.begin(), list.kids.end(), [&](Ref item) {
      return item != kid && ParameterOf(tree_, item).empty() && HasParameter(tree_, item, parameter);
    });
    (used ? out.domains : values).push_back(kid);
  }
  if (out.domains.empty()) return out;
  out.value = values.size() == 1 ? values[0] : tree_.New(Kind::kList, list.text, std::move(values));
  return out;
}

// `value`, which states no domain, with the letter that only it has as the parameter of `stated`, where one is missing:
// "n\pi" beside "k\pi, k \in \mathbb{Z}".
Ref Comparer::WithParameterOf(const Stated& stated, Ref value) {
  if (stated.domains.size() != 1) return value;
  const Ref parameter = tree_[stated.domains[0]].kids[0];
  std::set<std::string> here;
  std::set<std::string> there;
  // Not the name in front of "=": "x = n\pi".
  const auto said = [&](Ref ref) {
    const Node& node = tree_[ref];
    const bool named = node.kind == Kind::kRelation && node.text == "=" && node.kids.size() == 2 &&
                       tree_.Is(node.kids[0], Kind::kSymbol);
    return named ? node.kids[1] : ref;
  };
  CollectSymbols(tree_, said(value), here);
  CollectSymbols(tree_, said(stated.value), there);
  if (here.contains(tree_[parameter].text)) return value;
  std::erase_if(here, [&](const std::string& name) { return there.contains(name); });
  return here.size() == 1 ? tree_.Substitute(value, *here.begin(), parameter) : value;
}

// "x = k\pi, k \in \mathbb{Z}": a domain that only one side states says no more; one parameter may have any name.
std::optional<Result> Comparer::CompareDomains(Ref a, Ref b) {
  Stated x = WithoutDomains(a);
  Stated y = WithoutDomains(b);
  if (x.domains.empty() && y.domains.empty()) return std::nullopt;
  if (x.value == kNoRef || y.value == kNoRef) return Undecided("budget: nodes");
  if (!x.domains.empty() && !y.domains.empty()) {
    if (x.domains.size() != y.domains.size()) return Different("domain");
    if (x.domains.size() == 1) {
      const Node left = tree_[x.domains[0]];
      const Node right = tree_[y.domains[0]];
      if (tree_.Key(left.kids[1]) != tree_.Key(right.kids[1])) return Different("domain");
      y.value = tree_.Substitute(y.value, tree_[right.kids[0]].text, left.kids[0]);
    } else if (const Result same = CompareUnordered(x.domains, y.domains, "domain");
               same.outcome != MathOutcome::kEqual) {
      return same;
    }
  }
  if (x.domains.empty() != y.domains.empty()) {
    Stated& with = x.domains.empty() ? y : x;
    Stated& without = x.domains.empty() ? x : y;
    without.value = WithParameterOf(with, without.value);
  }
  const bool full = x.value == kNoRef || y.value == kNoRef;
  Result result = full ? Undecided("budget: nodes") : Compare(x.value, y.value);
  if (result.outcome == MathOutcome::kEqual) result.rule = "domain: " + result.rule;
  return result;
}

namespace {

// A letter that names constants of a family of functions: C, c, K, k, A, B, C_1, c_2.
bool NamesConstant(const std::string& name) {
  const bool letter = std::string_view("CcKkAB").find(name[0]) != std::string_view::npos;
  return letter && (name.size() == 1 || (name.size() == 3 && name[1] == '_' && name[2] >= '0' && name[2] <= '9'));
}

// n of a term with n\pi or n degrees in it: a whole number of periods.
bool CountsPeriods(const Tree& tree, Ref ref, const std::string& letter) {
  const Node& node = tree[ref];
  if (node.kind == Kind::kMul && Occurs(tree, ref, letter)) {
    return std::any_of(node.kids.begin(), node.kids.end(),
                       [&](Ref kid) { return tree.IsConstant(kid, "pi") || tree.Is(kid, Kind::kDegree); });
  }
  return std::any_of(node.kids.begin(), node.kids.end(), [&](Ref kid) { return CountsPeriods(tree, kid, letter); });
}

// "y = C e^x", "f(x) = cx", "\\sin x + C": a function of a letter that both sides have.
bool IsFamily(const Tree& tree, Ref ref) {
  const Node& node = tree[ref];
  if (node.kind == Kind::kRelation && node.text == "=" && node.kids.size() == 2) {
    return tree.Is(node.kids[0], Kind::kApply) ||
           (tree.Is(node.kids[0], Kind::kSymbol) && tree[node.kids[0]].text == "y" && Occurs(tree, node.kids[1], "x"));
  }
  return node.kind == Kind::kAdd && (Occurs(tree, ref, "x") || Occurs(tree, ref, "t")) &&
         std::any_of(node.kids.begin(), node.kids.end(), [&](Ref kid) {
           return tree.Is(kid, Kind::kSymbol) && NamesConstant(tree[kid].text) && tree[kid].text[0] != 'A' &&
                  tree[kid].text[0] != 'B' && tree[kid].text[0] != 'k';
         });
}

}  // namespace

// The constants of a family of functions, and the whole number of periods of an angle, may have any name (rule
// `domain`); nullopt where none would be renamed.
std::optional<Result> Comparer::CompareFamilies(Ref a, Ref b) {
  std::set<std::string> left;
  std::set<std::string> right;
  CollectSymbols(tree_, a, left);
  CollectSymbols(tree_, b, right);
  const std::set<std::string> all = left;
  std::erase_if(left, [&](const std::string& name) { return right.contains(name); });
  std::erase_if(right, [&](const std::string& name) { return all.contains(name); });
  left.erase("x");  // "x = k\pi" beside "n\pi"
  right.erase("x");
  if (left.empty() || left.size() != right.size() || left.size() > 3) return std::nullopt;
  const auto constants = [](const std::set<std::string>& names) {
    return std::all_of(names.begin(), names.end(), NamesConstant);
  };
  const auto letters = [](const std::set<std::string>& names) {
    return std::all_of(names.begin(), names.end(), [](const std::string& name) {
      return NamesConstant(name) || (name.size() == 1 && name != "x" && name != "y" && name != "t");
    });
  };
  const bool family = IsFamily(tree_, a) && IsFamily(tree_, b) && (constants(left) || constants(right)) &&
                      letters(left) && letters(right);
  const bool periods = left.size() == 1 && letters(left) && letters(right) && CountsPeriods(tree_, a, *left.begin()) &&
                       CountsPeriods(tree_, b, *right.begin());
  if (!family && !periods) return std::nullopt;
  std::vector<std::string> names(left.begin(), left.end());
  Result result = Different("domain");
  do {
    Ref renamed = b;
    size_t i = 0;
    for (const std::string& name : right) {
      renamed = tree_.Substitute(renamed, name, tree_.New(Kind::kSymbol, names[i++], {}));
    }
    if (renamed == kNoRef) return Undecided("budget: nodes");
    result = Compare(a, renamed);
    if (result.outcome == MathOutcome::kEqual) result.rule = "domain: " + result.rule;
  } while (result.outcome != MathOutcome::kEqual && std::next_permutation(names.begin(), names.end()));
  return result;
}

// "x = y = z = 1" as the tuple (1, 1, 1); kNoRef for anything else.
Ref Comparer::TupleOfNames(Ref chain) {
  const Node node = tree_[chain];
  if (node.kind != Kind::kRelation || node.kids.size() < 3 || node.text.find_first_not_of('=') != std::string::npos) {
    return kNoRef;
  }
  std::set<std::string> names;
  for (size_t i = 0; i + 1 < node.kids.size(); ++i) {
    if (!tree_.Is(node.kids[i], Kind::kSymbol) || !names.insert(tree_[node.kids[i]].text).second) return kNoRef;
  }
  return tree_.New(Kind::kBracket, "()", std::vector<Ref>(node.kids.size() - 1, node.kids.back()));
}

// "1, 2, \ldots, 10": the numbers in steps of one size that the dots stand for; empty for anything else.
std::vector<Ref> Comparer::WithoutDots(const std::vector<Ref>& kids) {
  const auto dots = std::find_if(kids.begin(), kids.end(), [&](Ref kid) { return tree_.Is(kid, Kind::kDots); });
  const auto numbers = std::count_if(
      kids.begin(), kids.end(), [&](Ref kid) { return tree_.Is(kid, Kind::kNumber) && tree_[kid].value.IsInteger(); });
  if (dots == kids.begin() || dots == kids.end() || dots + 1 == kids.end()) return {};
  if (numbers + 1 != static_cast<ptrdiff_t>(kids.size())) return {};
  std::vector<Rational> before;
  std::vector<Rational> behind;
  for (auto at = kids.begin(); at != kids.end(); ++at) {
    if (at != dots) (at < dots ? before : behind).push_back(tree_[*at].value);
  }
  const Rational step = before.size() > 1 ? before[1] - before[0] : behind.size() > 1 ? behind[1] - behind[0] : 1;
  const auto stepped = [&](const std::vector<Rational>& values) {
    for (size_t i = 1; i < values.size(); ++i) {
      if (values[i] - values[i - 1] != step) return false;
    }
    return true;
  };
  if (step.Sign() == 0 || !stepped(before) || !stepped(behind)) return {};
  const Rational steps = (behind.front() - before.back()) / step;
  if (!steps.IsInteger() || steps.Sign() <= 0 || steps > Rational(kMaxExpanded)) return {};
  std::vector<Ref> out(kids.begin(), dots);
  for (Rational at = before.back() + step; at != behind.front(); at += step) out.push_back(tree_.Number(at));
  out.insert(out.end(), dots + 1, kids.end());
  return out;
}

namespace {

// "d^2y/dx^2" -> y'' and x; false for any other name.
bool PrimesOf(const std::string& name, std::string& primes, std::string& variable) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || name[0] != 'd' || name.compare(slash + 1, 1, "d") != 0) return false;
  std::string order = "1";
  size_t at = 1;
  if (at < slash && name[at] == '^') {
    const size_t end = std::min(name.find_first_not_of("0123456789", at + 1), slash);
    order = name.substr(at + 1, end - at - 1);
    at = end;
  }
  variable = name.substr(slash + 2, name.find('^', slash) - slash - 2);
  if (order.empty() || order.size() > 1 || order[0] < '1' || order[0] > '4') return false;
  primes = name.substr(at, slash - at) + std::string(static_cast<size_t>(order[0] - '0'), '\'');
  return true;
}

}  // namespace

// Derivatives under one kind of name: \frac{dy}{dx}, \frac{d}{dx} y and y' as y', f'(x) as f'. `variables`: what they
// say that is differentiated by.
Ref Comparer::WithPrimes(Ref ref, std::set<std::string>& variables) {
  if (ref == kNoRef) return kNoRef;
  const Node node = tree_[ref];
  std::string primes;
  std::string variable;
  if (node.kind == Kind::kSymbol) {
    if (!PrimesOf(node.text, primes, variable) || primes[0] == '\'') return ref;
    variables.insert(variable);
    return tree_.New(Kind::kSymbol, primes, {});
  }
  if (node.kind == Kind::kApply && node.kids.size() == 1 && node.text.ends_with('\'') &&
      tree_.Is(node.kids[0], Kind::kSymbol)) {
    variables.insert(tree_[node.kids[0]].text);
    return tree_.New(Kind::kSymbol, node.text, {});
  }
  // \frac{d}{dx} f(x)
  if (node.kind == Kind::kMul && node.kids.size() == 2 && tree_.Is(node.kids[0], Kind::kSymbol) &&
      PrimesOf(tree_[node.kids[0]].text, primes, variable) && primes[0] == '\'') {
    const Node& of = tree_[node.kids[1]];
    if (of.kind == Kind::kSymbol || of.kind == Kind::kApply) {
      variables.insert(variable);
      return tree_.New(Kind::kSymbol, of.text + primes, {});
    }
  }
  std::vector<Ref> kids = node.kids;
  for (Ref& kid : kids) kid = WithPrimes(kid, variables);
  return kids == node.kids ? ref : tree_.WithKids(ref, std::move(kids));
}

// nullopt when neither side has a derivative that could be written otherwise, or they are by different variables.
std::optional<Result> Comparer::CompareDerivatives(Ref a, Ref b) {
  std::set<std::string> left;
  std::set<std::string> right;
  const Ref x = WithPrimes(a, left);
  const Ref y = WithPrimes(b, right);
  if ((x == a && y == b) || x == kNoRef || y == kNoRef) return std::nullopt;
  if (!left.empty() && !right.empty() && left != right) return std::nullopt;
  Result result = Compare(x, y);
  if (result.outcome != MathOutcome::kEqual) return std::nullopt;
  return Equal("derivative: " + result.rule);
}

}  // namespace iha::scoring::math
