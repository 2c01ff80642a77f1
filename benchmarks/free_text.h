// free_text.h: from a model's text to its grades, for benchmarks whose answers are free text: thinking, stops, metrics.
//
// Thread-safe. GradeTexts blocks as the graders do; all else is pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"

namespace iha::benchmarks {

// What of a text is the answer.
struct FreeText {
  bool strip_thinking = false;
  std::vector<std::string> stops;

  // What ends a generation. Where thinking is stripped nothing but eos does, as a stop inside it must not: the stops
  // then cut what is left.
  std::vector<std::string> GenerationStops() const;
  // What every metric sees of a stored text.
  std::string AnswerOf(const std::string& text) const;
};

// Reads option `think` of a ref that WithDefaults returned, and writes what `auto` stands for into it: `strip` in
// `chat` forms, else `keep`. InvalidArgument: another value.
absl::StatusOr<bool> StripsThinking(BenchmarkRef& ref, bool chat);

// Benchmark::Grade: for each of `texts` one grade for each of `metrics`. `gold` is asked for the reference answer that
// a metric takes.
std::vector<std::vector<SampleGrade>> GradeTexts(Graders& graders, const FreeText& form,
                                                 const std::vector<std::string>& texts,
                                                 const std::vector<MetricInfo>& metrics,
                                                 const std::function<std::string(const std::string& metric)>& gold);

}  // namespace iha::benchmarks
