#include <cassert>
#include <cstring>

#include "kernels/attention/attention.h"

namespace iha::kernels {
namespace {

size_t KeyIndex(const KvLayout& layout, size_t slot, size_t i) { return (slot / 16 * layout.d + i) * 16 + slot % 16; }
size_t ValueIndex(const KvLayout& layout, size_t slot, size_t i) {
  return layout.k_elements() + slot * layout.v_stride() + i;
}

float Read(StorageType type, const void* block, size_t index) {
  if (type == StorageType::kF32) return static_cast<const float*>(block)[index];
  return WidenBF16(static_cast<const uint16_t*>(block)[index]);
}

template <class T, class Round>
void Append(const KvLayout& layout, T* block, size_t slot, const float* k, const float* v, Round round) {
  T* keys = block + KeyIndex(layout, slot, 0);
  for (size_t i = 0; i < layout.d; ++i) keys[i * 16] = round(k[i]);
  T* values = block + ValueIndex(layout, slot, 0);
  for (size_t i = 0; i < layout.d_v; ++i) values[i] = round(v[i]);
  for (size_t i = layout.d_v; i < layout.v_stride(); ++i) values[i] = 0;
}

}  // namespace

void AppendKv(const KvLayout& layout, void* block, size_t slot, const float* k, const float* v) {
  assert(slot < kKeyBlock);
  if (layout.type == StorageType::kF32) {
    Append(layout, static_cast<float*>(block), slot, k, v, [](float x) { return x; });
  } else {
    assert(layout.type == StorageType::kBF16);
    Append(layout, static_cast<uint16_t*>(block), slot, k, v, RoundToBF16);
  }
}

float KeyAt(const KvLayout& layout, const void* block, size_t slot, size_t i) {
  return Read(layout.type, block, KeyIndex(layout, slot, i));
}

float ValueAt(const KvLayout& layout, const void* block, size_t slot, size_t i) {
  return Read(layout.type, block, ValueIndex(layout, slot, i));
}

}  // namespace iha::kernels
