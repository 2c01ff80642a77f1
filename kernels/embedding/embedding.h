// embedding.h: rows of a table of any storage type, widened exactly to fp32.
//
// Optional `scale` multiplies each value, rounded once (Gemma); 1 leaves the bits alone. Ids are trusted to be below
// the table's row count. Single thread (a gather is bound by memory), blocks until written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/support/small_float.h"

namespace iha::kernels {

// table: row-major [..][n] of `type`; out: row-major, ldo floats between rows.
void Embed(StorageType type, const void* table, size_t n, std::span<const int32_t> ids, float scale, float* out,
           size_t ldo);
// n values of `type` from `source`, widened exactly.
void Widen(StorageType type, const void* source, size_t n, float* out);

}  // namespace iha::kernels
