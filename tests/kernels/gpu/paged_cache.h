// paged_cache.h: queries and a paged cache of several sequences, on the host, on a device, and as the CPU's blocks.
#pragma once

#include <cmath>
#include <numeric>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_gpu.h"
#include "kernels/support/aligned.h"
#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {

struct Sequence {
  uint32_t rows, keys;  // the last rows of the keys
};
struct PagedShape {
  uint32_t d, d_v, heads, kv_heads;
  std::vector<Sequence> sequences;
  uint32_t spare_pages = 0;  // of each sequence, which hold nothing
  // Where d_v = 2 d, pairs of key heads share values.
  [[nodiscard]] uint32_t v_heads() const { return GpuValueHeads(kv_heads, d, d_v); }
};

struct PagedInputs {
  PagedShape shape;
  Rounded q;
  std::vector<Rounded> k, v;  // of each sequence: [key][kv head][d], [key][value head][d_v]
  std::vector<int32_t> table;
  uint32_t pages = 0, rows = 0, max_rows = 0;  // pages of a sequence
};

// All of them at most 2 in magnitude; pages in a random order.
inline PagedInputs MakePaged(const PagedShape& shape, uint32_t seed = 1) {
  PagedInputs in{.shape = shape, .q = {}, .k = {}, .v = {}, .table = {}};
  for (const Sequence& s : shape.sequences) {
    in.k.push_back(RandomBF16(size_t{s.keys} * shape.kv_heads * shape.d, seed + 100, 2));
    in.v.push_back(RandomBF16(size_t{s.keys} * shape.v_heads() * shape.d_v, seed + 200, 2));
    in.pages = std::max(in.pages, (s.keys + 63) / 64 + shape.spare_pages);
    in.rows += s.rows;
    in.max_rows = std::max(in.max_rows, s.rows);
    ++seed;
  }
  in.q = RandomBF16(size_t{in.rows} * shape.heads * shape.d, seed, 2);
  in.table.resize(shape.sequences.size() * in.pages);
  std::iota(in.table.begin(), in.table.end(), 0);
  std::mt19937 bits(seed);
  for (size_t i = in.table.size(); i > 1; --i) std::swap(in.table[i - 1], in.table[bits() % i]);
  return in;
}

// Other sequences over the first sequence of `whole`: rows of its queries that end where their keys do.
inline PagedInputs PartOf(const PagedInputs& whole, const std::vector<Sequence>& sequences) {
  PagedInputs part = whole;
  part.shape.sequences = sequences;
  part.k.clear();
  part.v.clear();
  part.q = {};
  part.rows = part.max_rows = 0;
  const auto take = [](const Rounded& from, size_t begin, size_t n, Rounded& to) {
    const auto at = static_cast<ptrdiff_t>(begin), end = static_cast<ptrdiff_t>(begin + n);
    to.bits.insert(to.bits.end(), from.bits.begin() + at, from.bits.begin() + end);
    to.values.insert(to.values.end(), from.values.begin() + at, from.values.begin() + end);
  };
  const PagedShape& s = whole.shape;
  const size_t q_row = size_t{s.heads} * s.d;
  for (const auto& [rows, keys] : sequences) {
    take(whole.k[0], 0, size_t{keys} * s.kv_heads * s.d, part.k.emplace_back());
    take(whole.v[0], 0, size_t{keys} * s.v_heads() * s.d_v, part.v.emplace_back());
    take(whole.q, (keys - rows) * q_row, rows * q_row, part.q);
    part.rows += rows;
    part.max_rows = std::max(part.max_rows, rows);
  }
  part.table.resize(sequences.size() * part.pages);
  std::iota(part.table.rbegin(), part.table.rend(), 0);
  return part;
}
// The rows that a whole's output has for such a part, of `row` values each.
template <class T>
std::vector<T> RowsOfPart(const std::vector<T>& whole, const std::vector<Sequence>& sequences, size_t row) {
  std::vector<T> part;
  for (const auto& [rows, keys] : sequences) {
    part.insert(part.end(), whole.begin() + static_cast<ptrdiff_t>((keys - rows) * row),
                whole.begin() + static_cast<ptrdiff_t>(keys * row));
  }
  return part;
}

// On a device. A kernel of one thread writes what the cache holds, so that reading any other slot is an error.
class PagedOnDevice {
 public:
  PagedOnDevice(simt::Device& device, const PagedInputs& in)
      : in_(in),
        k_(device, in.table.size() * 64 * in.shape.kv_heads * in.shape.d, "k_pages"),
        v_(device, k_.size(), "v_pages"),
        q_(device, in.q.bits, "q"),
        out_(device, size_t{in.rows} * in.shape.heads * in.shape.d_v, "out"),
        table_(device, in.table, "page_table"),
        q_begin_(device, Begins(in), "q_begin"),
        kv_length_(device, Lengths(in), "kv_length") {
    for (size_t s = 0; s < in.k.size(); ++s) {
      Fill(device, k_.data(), in.k[s], in.shape.kv_heads, in.shape.d, s);
      Fill(device, v_.data(), in.v[s], in.shape.v_heads(), in.shape.d_v, s);
    }
  }

  [[nodiscard]] AttentionGpuArgs Args() {
    const PagedShape& s = in_.shape;
    return {.q = q_.data(),
            .k_pages = k_.data(),
            .v_pages = v_.data(),
            .page_table = table_.data(),
            .q_begin = q_begin_.data(),
            .kv_length = kv_length_.data(),
            .out = out_.data(),
            .sequences = static_cast<uint32_t>(s.sequences.size()),
            .max_rows = in_.max_rows,
            .pages_per_sequence = in_.pages,
            .heads = s.heads,
            .kv_heads = s.kv_heads,
            .d = s.d,
            .d_v = s.d_v,
            .scale = 1.0f / std::sqrt(static_cast<float>(s.d)),
            .max_keys = in_.pages * 64,
            .rows = in_.rows};
  }
  [[nodiscard]] std::vector<uint16_t> Out() const { return out_.ToHost(); }

 private:
  static std::vector<uint32_t> Begins(const PagedInputs& in) {
    std::vector<uint32_t> begins{0};
    for (const Sequence& s : in.shape.sequences) begins.push_back(begins.back() + s.rows);
    return begins;
  }
  static std::vector<uint32_t> Lengths(const PagedInputs& in) {
    std::vector<uint32_t> lengths;
    for (const Sequence& s : in.shape.sequences) lengths.push_back(s.keys);
    return lengths;
  }
  void Fill(simt::Device& device, uint16_t* to, const Rounded& from, uint32_t heads, uint32_t d, size_t sequence) {
    const auto report = device.Launch({.name = "fill"}, [&] {
      const ptx::Global<uint16_t> pool(to);
      for (size_t i = 0; i < from.bits.size(); ++i) {
        const size_t e = i % d, head = i / d % heads, key = i / d / heads;
        const size_t page = static_cast<size_t>(in_.table[sequence * in_.pages + key / 64]);
        ptx::Store(pool + (((page * heads + head) * 64 + key % 64) * d + e), from.bits[i]);
      }
    });
    EXPECT_TRUE(report.ok()) << report.message;
  }

  const PagedInputs& in_;
  simt::Buffer<uint16_t> k_, v_, q_, out_;
  simt::Buffer<int32_t> table_;
  simt::Buffer<uint32_t> q_begin_, kv_length_;
};

// The keys and values of sequence `s` in the blocks that the CPU's operations read: all KV heads behind each other.
class CpuBlocks {
 public:
  CpuBlocks(const PagedInputs& in, size_t s)
      : layout_{.type = StorageType::kBF16, .d = in.shape.d, .d_v = in.shape.d_v} {
    const PagedShape& shape = in.shape;
    for (uint32_t key = 0; key < shape.sequences[s].keys; ++key) {
      if (key % 64 == 0) {
        blocks_.push_back(MakeAligned<char>(shape.kv_heads * layout_.bytes()));
        pointers_.push_back(blocks_.back().get());
      }
      for (uint32_t g = 0; g < shape.kv_heads; ++g) {
        const size_t at = (size_t{key} * shape.kv_heads + g) * shape.d;
        const size_t value = (size_t{key} * shape.v_heads() + g * shape.v_heads() / shape.kv_heads) * shape.d_v;
        AppendKv(layout_, blocks_.back().get() + g * layout_.bytes(), key % 64, &in.k[s].values[at],
                 &in.v[s].values[value]);
      }
    }
  }
  [[nodiscard]] const KvLayout& layout() const { return layout_; }
  [[nodiscard]] const void* const* pointers() const { return pointers_.data(); }

 private:
  KvLayout layout_;
  std::vector<AlignedArray<char>> blocks_;
  std::vector<const void*> pointers_;
};

}  // namespace iha::kernels
