#include "benchmarks/reasoning/problem_pool.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace iha::benchmarks {
namespace {

class JsonLines final : public ProblemPool {
 public:
  JsonLines(std::string bytes, std::string question_field, std::string answer_field)
      : bytes_(std::move(bytes)), question_field_(std::move(question_field)), answer_field_(std::move(answer_field)) {
    for (size_t begin = 0; begin < bytes_.size();) {
      size_t end = bytes_.find('\n', begin);
      if (end == std::string::npos) end = bytes_.size();
      if (end > begin) lines_.emplace_back(begin, end - begin);
      begin = end + 1;
    }
  }

  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }

  WordProblem At(int64_t row) const override {
    const auto [begin, length] = lines_[static_cast<size_t>(row)];
    const auto object = nlohmann::json::parse(std::string_view(bytes_).substr(begin, length), nullptr, false);
    return {Field(object, question_field_), Field(object, answer_field_)};
  }

 private:
  static std::string Field(const nlohmann::json& object, const std::string& name) {
    if (!object.is_object()) return "";
    const auto it = object.find(name);
    return it != object.end() && it->is_string() ? it->get<std::string>() : "";
  }

  const std::string bytes_;
  const std::string question_field_;
  const std::string answer_field_;
  std::vector<std::pair<size_t, size_t>> lines_;  // begin, length
};

class Bundled final : public ProblemPool {
 public:
  explicit Bundled(std::span<const BundledProblem> problems) : problems_(problems) {}
  int64_t size() const override { return static_cast<int64_t>(problems_.size()); }
  WordProblem At(int64_t row) const override {
    const BundledProblem& problem = problems_[static_cast<size_t>(row)];
    return {std::string(problem.question), std::string(problem.answer)};
  }

 private:
  const std::span<const BundledProblem> problems_;
};

}  // namespace

std::unique_ptr<const ProblemPool> JsonLinesPool(std::string bytes, std::string question_field,
                                                 std::string answer_field) {
  return std::make_unique<JsonLines>(std::move(bytes), std::move(question_field), std::move(answer_field));
}

std::unique_ptr<const ProblemPool> BundledPool(std::span<const BundledProblem> problems) {
  return std::make_unique<Bundled>(problems);
}

}  // namespace iha::benchmarks
