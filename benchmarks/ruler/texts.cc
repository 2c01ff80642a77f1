#include "benchmarks/ruler/texts.h"

#include <utility>

#include "benchmarks/manifest.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

// The text in `slot`, read by `load` if it is not there yet.
template <class T, class Load>
absl::StatusOr<std::shared_ptr<const T>> Once(std::shared_ptr<const T>& slot, Load load) {
  if (slot == nullptr) {
    absl::StatusOr<T> loaded = load();
    if (!loaded.ok()) return loaded.status();
    slot = std::make_shared<const T>(*std::move(loaded));
  }
  return slot;
}

}  // namespace

absl::Status Texts::CheckFiles(const std::vector<std::string>& files) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& file : files) {
    if (checked_.contains(file)) continue;
    IHA_RETURN_IF_ERROR(ReadDataFile(data_root_, file).status());
    checked_.insert(file);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const WordLists>> Texts::Words() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Once(words_, [&] { return WordLists::Load(data_root_); });
}

absl::StatusOr<std::shared_ptr<const std::vector<std::string>>> Texts::EnglishWords() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Once(english_words_, [&] { return LoadEnglishWords(data_root_); });
}

absl::StatusOr<std::shared_ptr<const Haystack>> Texts::Essays(Sentences rule) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Once(essays_[rule == Sentences::kSimple], [&] { return Haystack::Essays(data_root_, rule); });
}

absl::StatusOr<std::shared_ptr<const QaData>> Texts::Qa(QaSource source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Once(qa_[source == QaSource::kHotpot], [&] { return QaData::Load(data_root_, source); });
}

}  // namespace iha::benchmarks::ruler
