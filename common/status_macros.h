// status_macros.h: early return on absl::Status errors.
//
//   IHA_RETURN_IF_ERROR(store.Open(path));
//   IHA_ASSIGN_OR_RETURN(const Tokenizer tok, Tokenizer::Load(dir));
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Names are numbered, so that one may stand inside a lambda that is an argument of another.
#define IHA_CONCAT_INNER_(a, b) a##b
#define IHA_CONCAT_(a, b) IHA_CONCAT_INNER_(a, b)

#define IHA_RETURN_IF_ERROR(expr) IHA_RETURN_IF_ERROR_(IHA_CONCAT_(iha_status_, __COUNTER__), expr)
#define IHA_RETURN_IF_ERROR_(var, expr)                   \
  do {                                                    \
    if (absl::Status var = (expr); !var.ok()) return var; \
  } while (false)

#define IHA_ASSIGN_OR_RETURN(lhs, expr) IHA_ASSIGN_OR_RETURN_(IHA_CONCAT_(iha_or_, __COUNTER__), lhs, expr)
#define IHA_ASSIGN_OR_RETURN_(var, lhs, expr)    \
  auto var = (expr);                             \
  if (!var.ok()) return std::move(var).status(); \
  lhs = *std::move(var)
