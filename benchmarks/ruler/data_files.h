// data_files.h: which files of the data root decide a task's rows, for whoever reads, checks or digests them. Pure.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/ruler/tasks.h"

namespace iha::benchmarks::ruler {

inline constexpr char kEssays[] = "ruler/PaulGrahamEssays.json";
// Read by cwe at lengths that need more words than wonderwords has; a data root may lack it.
inline constexpr char kEnglishWords[] = "ruler/english_words.json";

// What the task cannot do without, in a fixed order: names below the data root. `essays`: whether a task that looks for
// needles in essays has them (else sentences of word lists stand in their place); unused by the others.
std::vector<std::string> DataFilesOf(const Task& task, Sentences sentences, bool essays);

}  // namespace iha::benchmarks::ruler
