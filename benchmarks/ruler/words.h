// words.h: the word lists of wonderwords 3.0.1, and the two sorted lists that RULER makes of them.
//
// Immutable; thread: any. Errors of Load: those of ReadDataFile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace iha::benchmarks::ruler {

// The sorted set of all ADJECTIVE-NOUN, of which there are millions: made by index, never listed.
//
// All keys of one adjective are a block, and blocks are in order of "ADJECTIVE-". Only where that begins another
// adjective (blue, blue-eyed) two blocks interleave: these few are merged when the list is made.
class KeyList {
 public:
  KeyList(const std::vector<std::string>& adjectives, const std::vector<std::string>& nouns);

  int64_t size() const { return size_; }
  std::string At(int64_t index) const;  // 0 <= index < size()

 private:
  struct Group {
    int64_t begin = 0;                // index of its first key
    std::string prefix;               // "ADJECTIVE-": the group is prefix + each noun, unless
    std::vector<std::string> merged;  // these are its keys
  };
  std::vector<std::string> nouns_;  // sorted, distinct
  std::vector<Group> groups_;
  int64_t size_ = 0;
};

struct WordLists {
  static absl::StatusOr<WordLists> Load(const std::string& data_root);

  KeyList keys;                    // of niah
  std::vector<std::string> words;  // of cwe: the sorted set of nouns, adjectives and verbs
};

// The values of english_words.json in their order, which cwe samples from where `words` are too few. NotFound: the data
// root has no such file (it may lack it).
absl::StatusOr<std::vector<std::string>> LoadEnglishWords(const std::string& data_root);
// list(json.loads(text).values()) of an object of words; `where` begins messages. InvalidArgument: anything else.
absl::StatusOr<std::vector<std::string>> WordsOfObject(std::string_view json, std::string_view where);

}  // namespace iha::benchmarks::ruler
