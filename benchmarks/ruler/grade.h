// grade.h: what a cell of RULER stores of one sample: which references its text holds, and the score.
//
// The references follow from the checkpoint's tokenizer, which the coordinator lacks. A grade names them all, so that
// whoever has the text can tell whether the grade is right for them. Pure; thread: any.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/ruler/tasks.h"
#include "common/eval_types.h"

namespace iha::benchmarks::ruler {

inline constexpr char kMetric[] = "ruler.string_match";

// `references`: at least one.
SampleGrade GradeOf(const Task& task, const std::vector<std::string>& references, const std::string& text);

// Whether `grade` is, bit for bit, GradeOf the references that it names, as many as the task has.
bool IsGradeOf(const Task& task, const std::string& text, const SampleGrade& grade);

}  // namespace iha::benchmarks::ruler
