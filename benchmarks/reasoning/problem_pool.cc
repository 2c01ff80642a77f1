#include "benchmarks/reasoning/problem_pool.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace iha::benchmarks {
namespace {

class JsonLines final : public ProblemPool {
 public:
  JsonLines(std::string bytes, ProblemFields fields) : bytes_(std::move(bytes)), fields_(std::move(fields)) {
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
    return {Field(object, fields_.question), Field(object, fields_.answer), Field(object, fields_.solution),
            Field(object, fields_.id)};
  }

 private:
  static std::string Field(const nlohmann::json& object, const std::string& name) {
    if (name.empty() || !object.is_object()) return "";
    const auto it = object.find(name);
    return it != object.end() && it->is_string() ? it->get<std::string>() : "";
  }

  const std::string bytes_;
  const ProblemFields fields_;
  std::vector<std::pair<size_t, size_t>> lines_;  // begin, length
};

class Bundled final : public ProblemPool {
 public:
  explicit Bundled(std::span<const BundledProblem> problems) : problems_(problems) {}
  int64_t size() const override { return static_cast<int64_t>(problems_.size()); }
  WordProblem At(int64_t row) const override {
    const BundledProblem& problem = problems_[static_cast<size_t>(row)];
    return {.question = std::string(problem.question), .answer = std::string(problem.answer), .solution = "", .id = ""};
  }

 private:
  const std::span<const BundledProblem> problems_;
};

}  // namespace

std::unique_ptr<const ProblemPool> JsonLinesPool(std::string bytes, ProblemFields fields) {
  return std::make_unique<JsonLines>(std::move(bytes), std::move(fields));
}

std::unique_ptr<const ProblemPool> BundledPool(std::span<const BundledProblem> problems) {
  return std::make_unique<Bundled>(problems);
}

}  // namespace iha::benchmarks
