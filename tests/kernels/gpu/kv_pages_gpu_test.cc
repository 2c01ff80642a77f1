#include "kernels/attention/kv_pages_gpu.h"

#include <numeric>

#include "kernels/attention/attention_gpu.h"
#include "tests/kernels/gpu/grid.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t d, d_v, kv_heads;
  [[nodiscard]] uint32_t v_heads() const { return GpuValueHeads(kv_heads, d, d_v); }
};
std::string Name(const Case& c) {
  return "d " + std::to_string(c.d) + "/" + std::to_string(c.d_v) + " KV heads " + std::to_string(c.kv_heads);
}

// Bits that no kernel rounds: of any pattern, NaN and infinities among them.
std::vector<uint16_t> Patterns(size_t n, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<uint16_t> x(n);
  for (uint16_t& v : x) v = static_cast<uint16_t>(bits());
  return x;
}

constexpr uint16_t kUnwritten = 0xFFFF;  // what buffers hold at first
struct Append {
  Case c;
  uint32_t pages = 0;  // of a sequence
  std::vector<uint32_t> sequence, position;
  std::vector<int32_t> table;
  std::vector<uint16_t> k, v;
};

// `rows` new rows of each sequence behind `before` that it has, the second one a page further on.
Append MakeAppend(const Case& c, uint32_t sequences, uint32_t rows, uint32_t before, uint32_t seed) {
  Append in{c, (before + rows + 63) / 64 + 2, {}, {}, {}, {}, {}};
  for (uint32_t s = 0; s < sequences; ++s) {
    for (uint32_t r = 0; r < rows; ++r) {
      in.sequence.push_back(s);
      in.position.push_back(before + r + (s == 1 ? 64 : 0));
    }
  }
  in.table.resize(size_t{sequences} * in.pages);
  std::iota(in.table.begin(), in.table.end(), 0);
  std::mt19937 bits(seed);
  for (size_t i = in.table.size(); i > 1; --i) std::swap(in.table[i - 1], in.table[bits() % i]);
  in.k = Patterns(in.sequence.size() * c.kv_heads * c.d, seed + 1);
  in.v = Patterns(in.sequence.size() * c.v_heads() * c.d_v, seed + 2);
  return in;
}

void ExpectAppended(simt::Device& device, const Append& in) {
  const Case& c = in.c;
  simt::Buffer<uint16_t> k_pages(device, in.table.size() * 64 * c.kv_heads * c.d, "k_pages"),
      v_pages(device, in.table.size() * 64 * c.v_heads() * c.d_v, "v_pages"), k(device, in.k, "k"),
      v(device, in.v, "v");
  simt::Buffer<uint32_t> sequence(device, in.sequence, "row_sequence"), position(device, in.position, "positions");
  simt::Buffer<int32_t> table(device, in.table, "page_table");
  const auto rows = static_cast<uint32_t>(in.sequence.size());
  ASSERT_EQ(KvAppendGpu({.pages = {k_pages.data(), v_pages.data(), c.kv_heads, c.d, c.d_v},
                         .k = k.data(),
                         .v = v.data(),
                         .row_sequence = sequence.data(),
                         .positions = position.data(),
                         .page_table = table.data(),
                         .pages_per_sequence = in.pages,
                         .rows = rows},
                        &device),
            0)
      << device.report().message;
  std::vector<uint16_t> want_k(k_pages.size(), kUnwritten), want_v(v_pages.size(), kUnwritten);
  KvAppendRef({.pages = {want_k.data(), want_v.data(), c.kv_heads, c.d, c.d_v},
               .k = in.k.data(),
               .v = in.v.data(),
               .row_sequence = in.sequence.data(),
               .positions = in.position.data(),
               .page_table = in.table.data(),
               .pages_per_sequence = in.pages,
               .rows = rows});
  EXPECT_EQ(k_pages.ToHost(), want_k);
  EXPECT_EQ(v_pages.ToHost(), want_v);
  // A row is read and written once; each of 128 threads reads its sequence, position and page.
  const uint64_t bytes = (in.k.size() + in.v.size()) * 2;
  EXPECT_EQ(device.report().counters.global_read_bytes, bytes + uint64_t{rows} * 128 * 12);
  EXPECT_EQ(device.report().counters.global_written_bytes, bytes);
}

constexpr std::array<std::array<uint32_t, 2>, 5> kSizes{{{64, 64}, {64, 128}, {128, 128}, {128, 256}, {256, 256}}};
constexpr std::array<uint32_t, 4> kHeads{1, 4, 9, 20};
Case CaseOf(const std::vector<size_t>& row) {
  const auto [d, d_v] = kSizes[row[0]];
  return {d, d_v, kHeads[row[1]] * d_v / d};
}

// Every pair of: head sizes, KV heads, sequences, new rows (P of a token, chunks, pages), rows before them.
TEST(KvPagesGpu, GridOfAppends) {
  const std::array<uint32_t, 3> sequences{1, 2, 5};
  const std::array<uint32_t, 6> rows{1, 3, 20, 63, 64, 65}, before{0, 1, 63, 64, 127, 236};
  OverGrid(grid_share::kNone, {5, 4, 3, 6, 6}, [&](const std::vector<size_t>& row, uint32_t number) {
    const Append in = MakeAppend(CaseOf(row), sequences[row[2]], rows[row[3]], before[row[4]], number);
    return [in](simt::Device& device) {
      SCOPED_TRACE(Name(in.c));
      ExpectAppended(device, in);
    };
  });
}

struct Copy {
  Case c;
  std::vector<uint16_t> k, v;  // pages
  std::vector<int32_t> pairs;
};
void ExpectCopied(simt::Device& device, const Copy& in) {
  const Case& c = in.c;
  simt::Buffer<uint16_t> k_pages(device, in.k.size(), "k_pages"), v_pages(device, in.v.size(), "v_pages");
  std::copy(in.k.begin(), in.k.end(), k_pages.data());
  std::copy(in.v.begin(), in.v.end(), v_pages.data());
  device.Find(k_pages.data())->MarkWritten();
  device.Find(v_pages.data())->MarkWritten();
  simt::Buffer<int32_t> pairs(device, in.pairs, "pairs");
  const auto count = static_cast<uint32_t>(in.pairs.size() / 2);
  ASSERT_EQ(
      KvCopyGpu(
          {.pages = {k_pages.data(), v_pages.data(), c.kv_heads, c.d, c.d_v}, .pairs = pairs.data(), .count = count},
          &device),
      0)
      << device.report().message;
  const size_t k_page = size_t{c.kv_heads} * 64 * c.d, v_page = size_t{c.v_heads()} * 64 * c.d_v;
  std::vector<uint16_t> want_k = in.k, want_v = in.v;
  KvCopyRef(
      {.pages = {want_k.data(), want_v.data(), c.kv_heads, c.d, c.d_v}, .pairs = in.pairs.data(), .count = count});
  EXPECT_EQ(k_pages.ToHost(), want_k);
  EXPECT_EQ(v_pages.ToHost(), want_v);
  // A page is read and written once; each of 4 blocks of 128 threads a pair reads both numbers.
  EXPECT_EQ(device.report().counters.global_read_bytes, count * ((k_page + v_page) * 2 + 4 * 128 * 8));
  EXPECT_EQ(device.report().counters.global_written_bytes, count * (k_page + v_page) * 2);
}

// Every pair of: head sizes, KV heads, pages copied.
TEST(KvPagesGpu, GridOfCopies) {
  const std::array<std::vector<int32_t>, 3> pairs{{{2, 0}, {0, 3, 2, 1}, {4, 5, 4, 1, 2, 0}}};
  OverGrid(grid_share::kNone, {5, 4, 3}, [&](const std::vector<size_t>& row, uint32_t number) {
    const Case c = CaseOf(row);
    const Copy in{c, Patterns(size_t{6} * c.kv_heads * 64 * c.d, number),
                  Patterns(size_t{6} * c.v_heads() * 64 * c.d_v, number + 100), pairs[row[2]]};
    return [in](simt::Device& device) {
      SCOPED_TRACE(Name(in.c));
      ExpectCopied(device, in);
    };
  });
}

TEST(KvPagesGpu, InEverySchedule) {
  const Append append = MakeAppend({64, 128, 4}, 3, 20, 50, 1);
  const Copy copy{{64, 64, 2}, Patterns(6 * 2 * 64 * 64, 1), Patterns(6 * 2 * 64 * 64, 2), {0, 3, 2, 1}};
  ForEachSchedule([&](simt::Device& device) {
    ExpectAppended(device, append);
    ExpectCopied(device, copy);
  });
}

TEST(KvPagesGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(KvAppendGpu({.pages = {nullptr, nullptr, 1, 60, 60}, .rows = 1}, &device), 1);
  EXPECT_EQ(KvAppendGpu({.pages = {nullptr, nullptr, 3, 64, 128}, .rows = 1}, &device), 1);
  EXPECT_EQ(KvCopyGpu({.pages = {nullptr, nullptr, 0, 64, 64}, .count = 1}, &device), 1);
  EXPECT_EQ(KvAppendGpu({.pages = {nullptr, nullptr, 1, 64, 64}, .rows = 0}, &device), 0);
}

}  // namespace
}  // namespace iha::kernels
