#include "model/checkpoint/json_fields.h"

#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/checkpoint/json_check.h"

namespace iha::checkpoint {
namespace {

using nlohmann::json;

std::string OneOf(const std::vector<const char*>& names) { return fmt::format("{}", fmt::join(names, " or ")); }

}  // namespace

std::string Shown(std::string_view text) { return TerminalSafe(text, 200); }

std::string ShownJson(const json& value) {
  if (value.is_string()) return Shown(value.get_ref<const std::string&>());
  return Shown(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

std::string TypedJson(const json& value) {
  return value.is_string() ? fmt::format("\"{}\"", ShownJson(value)) : ShownJson(value);
}

absl::StatusOr<json> ParseJsonObject(std::string_view text, std::string_view file) {
  IHA_RETURN_IF_ERROR(CheckJson(text, file));
  json value = json::parse(text.begin(), text.end(), nullptr, false);
  if (!value.is_object()) return InvalidArgument("{}: holds no JSON object; is this the right file?", file);
  return value;
}

FieldReader::FieldReader(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

bool FieldReader::Has(const char* field) const { return object_.contains(field); }

const json* FieldReader::Find(const char* field) {
  known_.insert(field);
  const auto it = object_.find(field);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const json* FieldReader::Require(const char* field, bool has_fallback, std::string_view expected) {
  known_.insert(field);
  const auto it = object_.find(field);
  if (it != object_.end()) return &*it;
  if (!has_fallback) Fail(field, fmt::format("is missing (expected {})", expected));
  return nullptr;
}

int64_t FieldReader::Int(const char* field, std::optional<int64_t> fallback, int64_t min, int64_t max) {
  const json* value = Require(field, fallback.has_value(), "a whole number");
  if (value == nullptr) return fallback.value_or(min);
  const std::optional<int64_t> number = JsonInteger(*value);
  if (!number.has_value() || *number < min || *number > max) {
    Fail(field, fmt::format("is {}, expected a whole number from {} to {}", TypedJson(*value), min, max));
    return fallback.value_or(min);
  }
  return *number;
}

double FieldReader::Number(const char* field, std::optional<double> fallback, double min_exclusive, double max) {
  const json* value = Require(field, fallback.has_value(), "a number");
  if (value == nullptr) return fallback.value_or(max);
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number > min_exclusive && number <= max)) {
    Fail(field, fmt::format("is {}, expected a number above {} and at most {}", TypedJson(*value), min_exclusive, max));
    return fallback.value_or(max);
  }
  return number;
}

bool FieldReader::Bool(const char* field, std::optional<bool> fallback) {
  const json* value = Require(field, fallback.has_value(), "true or false");
  if (value == nullptr) return fallback.value_or(false);
  if (!value->is_boolean()) {
    Fail(field, fmt::format("is {}, expected true or false", TypedJson(*value)));
    return fallback.value_or(false);
  }
  return value->get<bool>();
}

std::string FieldReader::String(const char* field, std::optional<std::string> fallback) {
  const json* value = Require(field, fallback.has_value(), "a string");
  if (value == nullptr) return fallback.value_or("");
  if (!value->is_string()) {
    Fail(field, fmt::format("is {}, expected a string", ShownJson(*value)));
    return fallback.value_or("");
  }
  return value->get<std::string>();
}

size_t FieldReader::Choice(const char* field, const std::vector<const char*>& names, std::optional<size_t> fallback) {
  const json* value = Require(field, fallback.has_value(), OneOf(names));
  if (value == nullptr) return fallback.value_or(0);
  for (size_t i = 0; i < names.size(); ++i) {
    if (value->is_string() && value->get_ref<const std::string&>() == names[i]) return i;
  }
  Fail(field, fmt::format("is {}, expected {}", ShownJson(*value), OneOf(names)));
  return fallback.value_or(0);
}

void FieldReader::Fail(std::string_view field, std::string_view message) {
  if (status_.ok()) status_ = InvalidArgument("{}{} {}", path_, field, message);
}

void FieldReader::Merge(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

std::vector<std::string> FieldReader::Unknown() const {
  std::vector<std::string> result;
  for (const auto& [name, value] : object_.items()) {
    if (!known_.contains(name)) result.push_back(name);
  }
  return result;
}

}  // namespace iha::checkpoint
