// status_macros.h: early return on absl::Status errors.
//
//   IHA_RETURN_IF_ERROR(store.Open(path));
//   IHA_ASSIGN_OR_RETURN(const Tokenizer tok, Tokenizer::Load(dir));
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define IHA_RETURN_IF_ERROR(expr)                                                 \
  do {                                                                            \
    if (absl::Status iha_status_ = (expr); !iha_status_.ok()) return iha_status_; \
  } while (false)

#define IHA_CONCAT_INNER_(a, b) a##b
#define IHA_CONCAT_(a, b) IHA_CONCAT_INNER_(a, b)
#define IHA_ASSIGN_OR_RETURN(lhs, expr) IHA_ASSIGN_OR_RETURN_(IHA_CONCAT_(iha_or_, __LINE__), lhs, expr)
#define IHA_ASSIGN_OR_RETURN_(var, lhs, expr)    \
  auto var = (expr);                             \
  if (!var.ok()) return std::move(var).status(); \
  lhs = *std::move(var)
