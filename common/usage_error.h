// usage_error.h: what a program says when its command line cannot be parsed. Thread: main.
#pragma once

#include <string>

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace iha {

// One line, safe for a terminal: the first word of argv that the named command does not know, with the nearest name
// that it does, else what the parser says; then the --help of that command. `app` is the root, after the failed parse.
std::string UsageMessage(const CLI::App& app, const CLI::Error& error, int argc, const char* const* argv);

}  // namespace iha
