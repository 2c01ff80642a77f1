#include "benchmarks/free_text.h"

#include "benchmarks/graders/graders.h"
#include "benchmarks/options.h"
#include "benchmarks/scoring/stops.h"
#include "common/status_macros.h"

namespace iha::benchmarks {

std::vector<std::string> FreeText::GenerationStops() const {
  return strip_thinking ? std::vector<std::string>() : stops;
}

std::string FreeText::AnswerOf(const std::string& text) const {
  return strip_thinking ? scoring::CutAtStops(scoring::WithoutThinking(text), stops) : text;
}

absl::StatusOr<bool> StripsThinking(BenchmarkRef& ref, bool chat) {
  IHA_ASSIGN_OR_RETURN(const std::string think, ChoiceOption(ref, "think", {"auto", "strip", "keep"}));
  const bool strip = think == "strip" || (think == "auto" && chat);
  ref.options["think"] = strip ? "strip" : "keep";
  return strip;
}

std::vector<std::vector<SampleGrade>> GradeTexts(Graders& graders, const FreeText& form,
                                                 const std::vector<std::string>& texts,
                                                 const std::vector<MetricInfo>& metrics,
                                                 const std::function<std::string(const std::string& metric)>& gold) {
  std::vector<std::string> answers;
  for (const std::string& text : texts) answers.push_back(form.AnswerOf(text));
  std::vector<std::vector<SampleGrade>> grades(texts.size());
  for (const MetricInfo& metric : metrics) {
    const std::vector<SampleGrade> column = graders.GradeSamples(metric.name, gold(metric.name), answers);
    for (size_t s = 0; s < column.size(); ++s) grades[s].push_back(column[s]);
  }
  return grades;
}

}  // namespace iha::benchmarks
