#include "common/usage_error.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <optional>
#include <vector>

#include "common/errors.h"
#include "common/nearest.h"
#include "common/text.h"

namespace iha {
namespace {

// Words from `first` on belong to `app`, which takes no deeper command.
struct Place {
  const CLI::App* app;
  std::string path;  // "iha-eval bench list"
  size_t first;
};

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

Place FindPlace(const CLI::App& root, const std::vector<std::string>& words) {
  Place place{.app = &root, .path = root.get_name(), .first = 1};
  while (place.first < words.size()) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : CommandsOf(*place.app)) {
      if (sub->get_name() == words[place.first]) next = sub;
    }
    if (next == nullptr) break;
    place = {.app = next, .path = place.path + " " + next->get_name(), .first = place.first + 1};
  }
  return place;
}

bool LooksLikeOption(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return false;
  return word[1] == '-' || std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

// An option as it was typed.
struct TypedOption {
  std::string name;
  const CLI::Option* option = nullptr;  // none: the command has no such option
  size_t values = 0;                    // the words behind it that it takes in any case, whatever they look like
};

std::optional<TypedOption> ReadOption(const Place& place, const std::string& word) {
  if (!LooksLikeOption(word)) return std::nullopt;
  const size_t equals = word.find('=');
  const bool is_long = word[1] == '-';
  TypedOption typed{.name = word.substr(0, equals)};
  typed.option = place.app->get_option_no_throw(is_long ? typed.name : typed.name.substr(0, 2));
  if (typed.option != nullptr && equals == std::string::npos) {
    typed.values = static_cast<size_t>(std::max(0, typed.option->get_items_expected_min()));
  }
  return typed;
}

// The first option that the command does not have, as it was typed; empty when all are known.
std::string UnknownOption(const Place& place, const std::vector<std::string>& words) {
  for (size_t i = place.first; i < words.size() && words[i] != "--"; i++) {
    const std::optional<TypedOption> typed = ReadOption(place, words[i]);
    if (!typed.has_value()) continue;
    if (typed->option == nullptr) return typed->name;
    i += typed->values;
  }
  return "";
}

// What is wrong when an option would take the name of another one for its value; else empty.
std::string SwallowedOption(const Place& place, const std::vector<std::string>& words) {
  for (size_t i = place.first; i < words.size() && words[i] != "--"; i++) {
    const std::optional<TypedOption> typed = ReadOption(place, words[i]);
    if (!typed.has_value()) continue;
    for (size_t last = i + typed->values; i < last && i + 1 < words.size(); i++) {
      const std::optional<TypedOption> value = ReadOption(place, words[i + 1]);
      if (!value.has_value() || value->option == nullptr) continue;
      return fmt::format("{}: expected {}, found the option {}", typed->name,
                         typed->values == 1 ? "a value" : fmt::format("{} values", typed->values), value->name);
    }
  }
  return "";
}

std::string DescribeOption(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& text : option->get_lnames()) known.push_back("--" + text);
  }
  const std::optional<std::string> nearest = NearestName(name, known);
  return fmt::format("unknown option {}{}", TerminalSafe(name, 80),
                     nearest.has_value() ? fmt::format(" (did you mean {}?)", *nearest) : "");
}

bool HasUnknownCommand(const Place& place, const std::vector<std::string>& words) {
  return !CommandsOf(*place.app).empty() && place.first < words.size() && !LooksLikeOption(words[place.first]);
}

std::string Describe(const Place& place, const std::vector<std::string>& words, const CLI::Error& error) {
  std::vector<std::string> commands;
  for (const CLI::App* sub : CommandsOf(*place.app)) commands.push_back(sub->get_name());
  if (HasUnknownCommand(place, words)) {
    return std::string(UnknownName("command", words[place.first], commands).message());
  }
  if (const std::string option = UnknownOption(place, words); !option.empty())
    return DescribeOption(*place.app, option);
  if (!commands.empty()) return "a command is missing";
  const std::vector<std::string> extra = place.app->remaining();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extra.empty()) {
    return fmt::format("unexpected argument \"{}\"", TerminalSafe(extra.front(), 80));
  }
  std::string said = error.what();
  // "--out: At Most 1 required but received 2"
  if (const size_t at = said.find(": At Most 1 required but received "); at != std::string::npos) {
    said = said.substr(0, at) + " is given more than once";
  }
  return said;
}

}  // namespace

std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> words(argv, argv + argc);
  const Place place = FindPlace(app, words);
  std::string problem = SwallowedOption(place, words);
  if (problem.empty()) {
    try {
      app.parse(argc, argv);
      return std::nullopt;
    } catch (const CLI::ParseError& error) {
      // --help, --version; the help of a command that is none would be another's.
      if (error.get_exit_code() == 0 && !HasUnknownCommand(place, words)) return app.exit(error);
      problem = Describe(place, words, error);
    }
  }
  std::cerr << TerminalSafe(fmt::format("{}: {}; see {} --help", app.get_name(), problem, place.path)) << std::endl;
  return kExitUsage;
}

int ExitCodeAfterOutput(const CLI::App& app, int exit_code) {
  if (std::cout.flush() || exit_code != kExitOk) return exit_code;
  std::cerr << app.get_name() << " " << app.get_subcommands().front()->get_name()
            << ": standard output: cannot be written\n";
  return kExitUnavailable;
}

}  // namespace iha
