// qa.h: questions among documents, which official and seeded rows of qa_1 and qa_2 are both made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/ruler/qa_data.h"
#include "benchmarks/ruler/task_rows.h"

namespace iha::benchmarks::ruler {

// The documents of one question, already in order.
Sample BuildQaPrompt(const PromptParts& parts, const QaQuestion& question, const std::vector<CountedPiece>& documents,
                     TokenCounter& counter);

// "the questions end with number 99": no row of that number.
std::string NoSuchQuestion(const QaData& data, int64_t row);

}  // namespace iha::benchmarks::ruler
