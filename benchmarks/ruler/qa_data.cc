#include "benchmarks/ruler/qa_data.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "benchmarks/manifest.h"
#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

using Json = nlohmann::json;

void SortSet(std::vector<std::string>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

int32_t IndexOf(const std::vector<std::string>& sorted, const std::string& text) {
  return static_cast<int32_t>(std::lower_bound(sorted.begin(), sorted.end(), text) - sorted.begin());
}

QaData ReadSquad(const Json& file) {
  QaData data;
  for (const Json& article : file.at("data")) {
    for (const Json& paragraph : article.at("paragraphs")) data.documents.push_back(paragraph.at("context"));
  }
  SortSet(data.documents);
  for (const Json& article : file.at("data")) {
    std::vector<int32_t> in_article;
    for (const Json& paragraph : article.at("paragraphs")) {
      in_article.push_back(IndexOf(data.documents, paragraph.at("context")));
    }
    for (size_t p = 0; p < in_article.size(); ++p) {
      for (const Json& item : article.at("paragraphs")[p].at("qas")) {
        if (item.value("is_impossible", false)) continue;
        QaQuestion question{.query = item.at("question"), .outputs = {}, .own = {in_article[p]}, .more = {}};
        for (const Json& answer : item.at("answers")) question.outputs.push_back(answer.at("text"));
        for (const int32_t other : in_article) {
          if (other != in_article[p]) question.more.push_back(other);
        }
        data.questions.push_back(std::move(question));
      }
    }
  }
  return data;
}

std::string HotpotDocument(const Json& titled) {
  std::string text = titled.at(0).get<std::string>() + "\n";
  for (const Json& sentence : titled.at(1)) text += sentence.get_ref<const std::string&>();
  return text;
}

QaData ReadHotpot(const Json& file) {
  QaData data;
  for (const Json& item : file) {
    for (const Json& titled : item.at("context")) data.documents.push_back(HotpotDocument(titled));
  }
  SortSet(data.documents);
  for (const Json& item : file) {
    QaQuestion question{.query = item.at("question"), .outputs = {item.at("answer")}, .own = {}, .more = {}};
    for (const Json& titled : item.at("context")) {
      question.own.push_back(IndexOf(data.documents, HotpotDocument(titled)));
    }
    data.questions.push_back(std::move(question));
  }
  return data;
}

}  // namespace

absl::StatusOr<QaData> QaData::Load(const std::string& data_root, QaSource source) {
  const std::string path =
      source == QaSource::kSquad ? "ruler/qa/squad-dev-merged.json" : "ruler/qa/hotpot_dev_distractor_first100.json";
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(data_root, path));
  IHA_ASSIGN_OR_RETURN(const Json file, ParseJson(text, path));
  try {
    return source == QaSource::kSquad ? ReadSquad(file) : ReadHotpot(file);
  } catch (const Json::exception& error) {
    return InvalidArgument("{}: not a file of its publisher's shape: {}", path, error.what());
  }
}

}  // namespace iha::benchmarks::ruler
