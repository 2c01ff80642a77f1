#include "benchmarks/ruler/data_files.h"

#include <fmt/format.h>

namespace iha::benchmarks::ruler {

std::vector<std::string> DataFilesOf(const Task& task, Sentences sentences, bool essays) {
  if (task.family == Family::kQa) {
    return {task.qa == QaSource::kSquad ? "ruler/qa/squad-dev-merged.json"
                                        : "ruler/qa/hotpot_dev_distractor_first100.json"};
  }
  std::vector<std::string> files;
  if (task.family == Family::kCwe || (task.family == Family::kNiah && !task.niah.uuid_keys)) {
    for (const char* list : {"noun", "adjective", "verb"}) {
      files.push_back(fmt::format("ruler/wonderwords/{}list.txt", list));
    }
  }
  if (!task.needs_essays() || !essays) return files;
  files.emplace_back(kEssays);
  if (sentences == Sentences::kSimple) return files;
  for (const char* part : {"abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt"}) {
    files.push_back(fmt::format("ruler/punkt_tab/{}", part));
  }
  return files;
}

}  // namespace iha::benchmarks::ruler
