// line_generator.h: JSON Lines of prompts in, JSON Lines of samples out, over one engine.
//
// In: {"prompt": text} (encoded with the special tokens that the tokenizer adds) or {"ids": [...]} (taken as they are).
// Out, in the order of the input: the line's other keys and "samples", one a sample index: {"text", "ids",
// "finish_reason", "logprobs" if asked for}. Without a tokenizer lines with ids alone are good, and "text" is null. A
// bad line is reported with its number and leaves no output line.
//
// Thread: Run reads on the caller's thread and writes on the engine's, each line as soon as it and all before it are
// complete, so that a caller may wait for an answer before it sends the next line. At most `lines_ahead` lines are
// held. Ownership: everything handed in must outlive Run; the engine has been started.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/file.h"
#include "model/tokenizer/tokenizer.h"
#include "worker/engine/engine.h"

namespace iha::tools {

struct GenerateOptions {
  std::string name = "iha-tool generate";  // before each message
  SamplingParams sampling;                 // `samples` for each line
  std::vector<std::string> stops;
  std::vector<int32_t> eos;
  bool ignore_eos = false;
  std::optional<int32_t> logprobs;  // log-probability of each token, and of that many best ones beside it
  size_t lines_ahead = 64;          // at least 1
};

class LineGenerator {
 public:
  // `tokenizer` may be null.
  LineGenerator(const tokenizer::Tokenizer* tokenizer, engine::Engine& engine, GenerateOptions options,
                std::ostream& out, std::ostream& errors);

  // Blocks until the input has ended and every line is out. The exit code: 0, 3 when a line was bad, 4 when the output
  // cannot be written, 70 when the engine failed on a line.
  int Run(LineReader& in);

 private:
  struct Line;

  absl::Status Read(const std::string& text, Line& line, std::vector<int32_t>& prompt) const;
  void Submit(const std::shared_ptr<Line>& line, std::vector<int32_t> prompt);
  void Complete(Line& line, size_t sample, engine::GenerationResult result);
  void FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WriteLocked(Line& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const tokenizer::Tokenizer* const tokenizer_;
  engine::Engine& engine_;
  const GenerateOptions options_;

  absl::Mutex mu_;
  std::deque<std::shared_ptr<Line>> lines_ ABSL_GUARDED_BY(mu_);  // not out yet, in order of input
  std::ostream& out_ ABSL_GUARDED_BY(mu_);
  std::ostream& errors_ ABSL_GUARDED_BY(mu_);
  int exit_code_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace iha::tools
