// texts.h: the texts that are not ours, read from the data root when a task first needs them and then shared.
//
// Thread: any. Blocking on the first use of a text. Errors: those of ReadDataFile, with the file's name.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/ruler/haystack.h"
#include "benchmarks/ruler/qa_data.h"
#include "benchmarks/ruler/words.h"

namespace iha::benchmarks::ruler {

class Texts {
 public:
  explicit Texts(std::string data_root) : data_root_(std::move(data_root)) {}

  // That the files are there, each as published. Reads each file once.
  absl::Status CheckFiles(const std::vector<std::string>& files);
  absl::StatusOr<std::shared_ptr<const WordLists>> Words();
  // NotFound: the data root lacks english_words.json.
  absl::StatusOr<std::shared_ptr<const std::vector<std::string>>> EnglishWords();
  absl::StatusOr<std::shared_ptr<const Haystack>> Essays(Sentences rule);
  absl::StatusOr<std::shared_ptr<const QaData>> Qa(QaSource source);

 private:
  const std::string data_root_;
  std::mutex mutex_;
  std::set<std::string> checked_;
  std::shared_ptr<const WordLists> words_;
  std::shared_ptr<const std::vector<std::string>> english_words_;
  std::shared_ptr<const Haystack> essays_[2];  // by rule
  std::shared_ptr<const QaData> qa_[2];        // by source
};

}  // namespace iha::benchmarks::ruler
