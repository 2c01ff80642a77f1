#include <cassert>
#include <cstring>

#include "kernels/attention/attention.h"

namespace iha::kernels {
namespace {

size_t KeyIndex(const KvLayout& layout, size_t slot, size_t i, size_t key) {
  return key * layout.k_elements() + (slot / 16 * layout.d + i) * 16 + slot % 16;
}
size_t ValueIndex(const KvLayout& layout, size_t slot, size_t i) {
  return layout.v_begin() + slot * layout.v_stride() + i;
}

float Read(StorageType type, const void* block, size_t index) {
  if (type == StorageType::kF32) return static_cast<const float*>(block)[index];
  return WidenBF16(static_cast<const uint16_t*>(block)[index]);
}

// f(typed block, rounding to its element type).
template <class F>
void WithType(const KvLayout& layout, void* block, const F& f) {
  assert(layout.type != StorageType::kF16);
  if (layout.type == StorageType::kF32) return f(static_cast<float*>(block), [](float x) { return x; });
  f(static_cast<uint16_t*>(block), RoundToBF16);
}

}  // namespace

void StoreKey(const KvLayout& layout, void* block, size_t slot, const float* k, size_t key) {
  assert(slot < kKeyBlock && key < layout.keys);
  WithType(layout, block, [&](auto* to, auto round) {
    to += KeyIndex(layout, slot, 0, key);
    for (size_t i = 0; i < layout.d; ++i) to[i * 16] = round(k[i]);
  });
}

void StoreValue(const KvLayout& layout, void* block, size_t slot, const float* v) {
  assert(slot < kKeyBlock);
  WithType(layout, block, [&](auto* to, auto round) {
    to += ValueIndex(layout, slot, 0);
    for (size_t i = 0; i < layout.d_v; ++i) to[i] = round(v[i]);
    for (size_t i = layout.d_v; i < layout.v_stride(); ++i) to[i] = 0;
  });
}

void AppendKv(const KvLayout& layout, void* block, size_t slot, const float* k, const float* v) {
  for (size_t key = 0; key < layout.keys; ++key) StoreKey(layout, block, slot, k + key * layout.d, key);
  StoreValue(layout, block, slot, v);
}

float KeyAt(const KvLayout& layout, const void* block, size_t slot, size_t i, size_t key) {
  return Read(layout.type, block, KeyIndex(layout, slot, i, key));
}

float ValueAt(const KvLayout& layout, const void* block, size_t slot, size_t i) {
  return Read(layout.type, block, ValueIndex(layout, slot, i));
}

}  // namespace iha::kernels
