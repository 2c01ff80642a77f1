// test_files.h: small files for the checkpoint tests.
#pragma once

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace iha::checkpoint::testing {

inline void WriteText(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}
inline std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}
// 8-byte length, header, data.
inline std::string SafetensorsBytes(std::string_view header, size_t data_bytes) {
  const uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  bytes += header;
  bytes.append(data_bytes, '\1');
  return bytes;
}

}  // namespace iha::checkpoint::testing
