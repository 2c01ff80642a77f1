// gz_lines.h: the lines of a gzip file (or a plain one), for tests whose labelled cases are compressed.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace iha::testing {

// Empty and a test failure when the file can't be read.
inline std::vector<std::string> GzLines(const std::string& path) {
  std::vector<std::string> lines;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (file == nullptr) {
    ADD_FAILURE() << path << ": can't be opened";
    return lines;
  }
  std::string text;
  char buffer[1 << 16];
  int count = 0;
  while ((count = gzread(file.get(), buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(count));
  if (count < 0) ADD_FAILURE() << path << ": damaged gzip data";
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// One JSON value a line.
inline std::vector<nlohmann::json> JsonRows(const std::string& path) {
  std::vector<nlohmann::json> rows;
  for (const std::string& line : GzLines(path)) {
    rows.push_back(nlohmann::json::parse(line, nullptr, false));
    if (rows.back().is_discarded()) ADD_FAILURE() << path << ":" << rows.size() << ": not JSON";
  }
  return rows;
}

}  // namespace iha::testing
