// narrowing.h: matrices in 16 bits where that loses nothing.
//
// Many F32 checkpoints are exports of models trained in bf16 or fp16: every value fits 16 bits. The kernels widen
// weights exactly (docs/contracts/numerics.md, NUM-2), so packing such a matrix in 16 bits changes no bit of any result
// and halves its memory. Tensors are F32, F16 or BF16 (Checkpoint::ExpectTensor has checked). Thread: any; blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/support/parallel_for.h"
#include "kernels/support/small_float.h"
#include "model/checkpoint/tensor.h"

namespace iha::model {

// The kernels' name of a float dtype.
kernels::StorageType StorageOf(checkpoint::DType dtype);

// The fp16 whose widening has the bits of `value`, if there is one. A NaN has none.
std::optional<uint16_t> ExactF16(float value);

// A type that holds every value of all these tensors bit for bit: of 16 bits if there is one. Tensors of one 16-bit
// type keep it, unread; otherwise all are read (until the first value that fits neither), and bf16 goes before fp16.
kernels::StorageType ExactStorage(std::span<const checkpoint::TensorView> tensors, kernels::ParallelFor& parallel);

// Elements begin .. begin + count - 1 as `type`, which holds them exactly. out: count * StorageBytes(type) bytes.
void StoreExactly(const checkpoint::TensorView& tensor, size_t begin, size_t count, kernels::StorageType type,
                  std::byte* out);

}  // namespace iha::model
