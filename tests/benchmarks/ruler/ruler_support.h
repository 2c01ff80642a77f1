// ruler_support.h: the tokenizer and the options that tests of RULER's rows share.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "benchmarks/ruler/generate.h"
#include "benchmarks/ruler/texts.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::benchmarks::ruler {

// A folder that Tokenizer::Load takes, of the handed SmolLM2 tokenizer.
inline void UnpackTokenizer(const std::string& cases, const std::string& folder) {
  const std::string from = cases + "/ruler_rows/smollm2_tokenizer/";
  std::ofstream json(folder + "/tokenizer.json");
  for (const std::string& line : testing::GzLines(from + "tokenizer.json.gz")) json << line << "\n";
  for (const char* name : {"tokenizer_config.json", "chat_template.jinja"}) {
    std::ofstream(folder + "/" + name) << std::ifstream(from + name).rdbuf();
  }
}

// Loaded once a process.
inline std::shared_ptr<const tokenizer::Tokenizer> SmolLm2(const std::string& cases) {
  static const std::shared_ptr<const tokenizer::Tokenizer> loaded = [&] {
    const testing::TempDir folder;
    UnpackTokenizer(cases, folder.path());
    auto tokenizer = tokenizer::Tokenizer::Load(folder.path());
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return tokenizer.ok() ? std::shared_ptr<const tokenizer::Tokenizer>(*std::move(tokenizer)) : nullptr;
  }();
  return loaded;
}

// The texts of the data root, read once a process.
inline std::shared_ptr<Texts> SharedTexts(const std::string& data) {
  static const auto texts = std::make_shared<Texts>(data);
  return texts;
}

inline RulerOptions SmolLm2Options(const std::string& data, const std::string& cases, const std::string& task,
                                   int64_t length) {
  RulerOptions options;
  options.task = task;
  options.length = length;
  options.tokenizer = SmolLm2(cases);
  options.data_root = data;
  options.texts = SharedTexts(data);
  return options;
}

inline absl::StatusOr<RulerRows> MakeRows(const RulerOptions& options, int64_t first, int64_t count) {
  auto generator = Generator::Open(options);
  if (!generator.ok()) return generator.status();
  return (*generator)->Rows(first, count);
}

}  // namespace iha::benchmarks::ruler
