// word_cache.h: ids of words met before. A fixed table: a new word takes the place of the one in its slot.
//
// Thread: any. Neither call ever waits: a slot that another thread holds counts as a miss.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace iha::tokenizer {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 64;

  WordCache() : slots_(kSlots) {}

  // Appends the ids of `word` and returns true if it is known.
  bool Find(std::string_view word, size_t hash, std::vector<int32_t>* ids) {
    Slot& slot = slots_[hash % kSlots];
    const std::unique_lock<std::mutex> lock(locks_[hash % kLocks], std::try_to_lock);
    if (!lock.owns_lock() || slot.word != word) return false;
    ids->insert(ids->end(), slot.ids.begin(), slot.ids.end());
    return true;
  }
  void Store(std::string_view word, size_t hash, const std::vector<int32_t>& ids) {
    Slot& slot = slots_[hash % kSlots];
    const std::unique_lock<std::mutex> lock(locks_[hash % kLocks], std::try_to_lock);
    if (!lock.owns_lock()) return;
    slot.word = word;
    slot.ids = ids;
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 14;
  static constexpr size_t kLocks = 64;  // divides kSlots: a slot always has the same lock
  struct Slot {
    std::string word;  // "" is no word
    std::vector<int32_t> ids;
  };
  std::vector<Slot> slots_;
  std::array<std::mutex, kLocks> locks_;
};

}  // namespace iha::tokenizer
