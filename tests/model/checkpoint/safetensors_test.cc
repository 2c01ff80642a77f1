#include "model/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/model/checkpoint/test_files.h"
#include "tests/support/temp_dir.h"

namespace iha::checkpoint {
namespace {

using ::testing::HasSubstr;
using testing::SafetensorsBytes;
using testing::WriteText;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::span<const std::byte> BytesOf(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

TEST(SafetensorsTest, WriterAndReaderRoundTrip) {
  const iha::testing::TempDir dir;
  const std::string path = dir.path() + "/a.safetensors";
  const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{-0.0F, 7};
  ASSERT_TRUE(WriteSafetensors(path,
                               {{{"second", DType::kF32, {2, 3}}, BytesOf(a)},
                                {{"first", DType::kF32, {2}}, BytesOf(b)},
                                {{"empty", DType::kI64, {0, 4}}, {}}},
                               {{"format", "pt"}})
                  .ok());
  const auto file = Safetensors::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata().at("format"), "pt");
  ASSERT_EQ(file->tensors().size(), 3U);
  const TensorView* second = file->Find("second");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->shape, (std::vector<int64_t>{2, 3}));
  std::vector<float> widened(6);
  ASSERT_TRUE(WidenToF32(*second, widened).ok());
  EXPECT_EQ(widened, a);
  EXPECT_EQ(file->Find("third"), nullptr);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);  // no temporary left
}

TEST(SafetensorsTest, ReadsThroughASymbolicLinkAndAfterDroppedPages) {
  const iha::testing::TempDir dir;
  const std::vector<float> a{3};
  ASSERT_TRUE(WriteSafetensors(dir.path() + "/real", {{{"t", DType::kF32, {}}, BytesOf(a)}}).ok());
  std::filesystem::create_symlink("real", dir.path() + "/link");
  const auto file = Safetensors::Open(dir.path() + "/link");
  ASSERT_TRUE(file.ok()) << file.status();
  file->DropPages();
  std::vector<float> widened(1);
  ASSERT_TRUE(WidenToF32(*file->Find("t"), widened).ok());
  EXPECT_EQ(widened, a);
}

TEST(SafetensorsTest, WriterReplacesFilesOnly) {
  iha::testing::TempDir dir;
  const std::string pipe = dir.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, dir.path()}) {
    EXPECT_EQ(WriteSafetensors(path, {}).code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(WriteSafetensors(dir.File("new"), {}).ok());
  EXPECT_TRUE(WriteSafetensors(dir.File("new"), {}).ok());
}

TEST(SafetensorsTest, AnUnfinishedWriterLeavesNothing) {
  const iha::testing::TempDir dir;
  {
    auto writer = SafetensorsWriter::Create(dir.path() + "/a", {{"t", DType::kF32, {2}}});
    ASSERT_TRUE(writer.ok());
    const std::vector<float> one{1};
    ASSERT_TRUE(writer->Append(BytesOf(one)).ok());
    EXPECT_EQ(writer->Finish().code(), absl::StatusCode::kInternal);
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(SafetensorsTest, WhatAKilledWriterLeftIsRemovedAndALivingOnesIsNot) {
  const iha::testing::TempDir dir;
  const std::string path = dir.path() + "/a";
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(dir.path()), std::filesystem::directory_iterator());
  };
  const std::vector<float> one{1};
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto writer = SafetensorsWriter::Create(path, {{"t", DType::kF32, {2}}});
    if (writer.ok() && writer->Append(BytesOf(one)).ok()) ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(count(), 1);  // left behind
  auto living = SafetensorsWriter::Create(path, {{"t", DType::kF32, {1}}});
  ASSERT_TRUE(living.ok()) << living.status();
  EXPECT_EQ(count(), 1);
  ASSERT_TRUE(WriteSafetensors(path, {{{"t", DType::kF32, {1}}, BytesOf(one)}}).ok());
  EXPECT_EQ(count(), 2);  // the file, and the living one's
  ASSERT_TRUE(living->Append(BytesOf(one)).ok());
  EXPECT_TRUE(living->Finish().ok());
  EXPECT_EQ(count(), 1);
}

struct BadCase {
  const char* name;
  std::string bytes;
  std::vector<const char*> expected;
};

TEST(SafetensorsTest, EachDefectIsOneLineThatNamesIt) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const auto entry = [](std::string_view body) { return SafetensorsBytes(fmt::format("{{\"a\":{{{}}}}}", body), 8); };
  std::string ones;
  for (int i = 0; i < 64; ++i) ones += "1,";
  const BadCase kCases[] = {
      {"empty", "", {"truncated"}},
      {"seven bytes", "1234567", {"truncated"}},
      {"header beyond the file", SafetensorsBytes(good, 0).substr(0, 20), {"header length", "truncated"}},
      {"huge header length", std::string(8, '\xff') + "{}", {"header length 18446744073709551615"}},
      {"no JSON", SafetensorsBytes("hello", 0), {"header: no valid JSON at line 1, column 1"}},
      {"list", SafetensorsBytes("[]", 0), {"header is no JSON object"}},
      {"data cut", SafetensorsBytes(good, 7), {"tensor a", "truncated", "end at 8", "7 data bytes"}},
      {"data left over", SafetensorsBytes(good, 9), {"1 bytes after the last tensor"}},
      {"unknown dtype", entry(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), {"tensor a", "dtype F33"}},
      {"no dtype", entry(R"("shape":[2],"data_offsets":[0,8])"), {"dtype is missing"}},
      {"no shape", entry(R"("dtype":"F32","data_offsets":[0,8])"), {"shape is missing"}},
      {"negative size", entry(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), {"shape [-2]"}},
      {"fraction", entry(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), {"shape [2.0]"}},
      {"overflow", entry(R"("dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8])"), {"fits 63 bits"}},
      {"size over 63 bits", entry(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])"), {"63 bits"}},
      {"offsets and shape differ", entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), {"span 8", "take 12"}},
      {"backwards", entry(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), {"run backwards"}},
      {"three offsets", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])"), {"no pair"}},
      {"offset overflow",
       entry(R"("dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,18446744073709551615])"),
       {"truncated"}},
      {"duplicate name",
       SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                        R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                        8),
       {"header: a is there twice"}},
      {"overlap",
       SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
                        R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                        8),
       {"a and b overlap"}},
      {"gap",
       SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                        R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                        8),
       {"tensor b begins at byte 4, expected 2"}},
      {"metadata number", SafetensorsBytes(R"({"__metadata__":{"k":1}})", 0), {"__metadata__ k"}},
      {"control characters in a name",
       SafetensorsBytes("{\"a\\n\\u001b[2J\":{\"dtype\":\"F33\"}}", 0),
       {"tensor a\\n\\x1B[2J"}},
      {"deep nesting", SafetensorsBytes(std::string(100000, '['), 0), {"header: [0][0][0] is nested more than 3 deep"}},
      {"many dimensions",
       entry(R"("dtype":"F32","shape":[)" + ones + R"(2],"data_offsets":[0,8])"),
       {"header: a.shape[64] is in a list of more than 64 values"}},
  };
  const iha::testing::TempDir dir;
  const std::string path = dir.path() + "/bad.safetensors";
  for (const BadCase& bad : kCases) {
    WriteText(path, bad.bytes);
    const auto file = Safetensors::Open(path);
    ASSERT_FALSE(file.ok()) << bad.name;
    const std::string message = Message(file.status());
    EXPECT_THAT(message, HasSubstr(path)) << bad.name;
    EXPECT_EQ(message.find('\n'), std::string::npos) << bad.name;
    for (const char* expected : bad.expected) EXPECT_THAT(message, HasSubstr(expected)) << bad.name;
  }
}

TEST(SafetensorsTest, ManyTensorsTakeTimeInProportion) {
  // 200,000 took minutes when each entry made the parser walk over all entries before it.
  std::string header = "{";
  for (int i = 0; i < 200'000; ++i) {
    header += fmt::format("{}\"t{}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", i == 0 ? "" : ",", i);
  }
  const iha::testing::TempDir dir;
  WriteText(dir.File("a"), SafetensorsBytes(header + "}", 0));
  const auto start = std::chrono::steady_clock::now();
  const auto file = Safetensors::Open(dir.File("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors().size(), 200'000U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));  // under a second; sanitizers: more
}

TEST(SafetensorsTest, AStoppedWriterLeavesNothing) {
  const iha::testing::TempDir dir;
  std::atomic<bool> stop = false;
  {
    auto writer = SafetensorsWriter::Create(dir.File("a"), {{"t", DType::kF32, {2}}});
    ASSERT_TRUE(writer.ok());
    writer->StopWhen(&stop);
    const std::vector<float> one{1};
    ASSERT_TRUE(writer->Append(BytesOf(one)).ok());
    stop = true;
    EXPECT_EQ(writer->Append(BytesOf(one)).code(), absl::StatusCode::kCancelled);
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

// The kernel answers with EFAULT where a touch of the mapping would be SIGBUS.
TEST(SafetensorsTest, WhatIsTruncatedWhileItIsCopiedIsNoFullDisk) {
  const iha::testing::TempDir dir;
  const std::string source = dir.File("source");
  WriteText(source, std::string(8192, 'x'));
  const auto mapped = MappedFile::Open(source);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  std::filesystem::resize_file(source, 0);
  {
    auto writer = SafetensorsWriter::Create(dir.File("a"), {{"t", DType::kU8, {8192}}});
    ASSERT_TRUE(writer.ok());
    const absl::Status status = writer->Append(mapped->bytes());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(Message(status), HasSubstr("what is copied lost bytes while it was read"));
  }
  std::filesystem::remove(source);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(TensorTest, HalfPrecisionWidensExactly) {
  EXPECT_EQ(F16ToF32(0x3c00), 1.0F);
  EXPECT_EQ(F16ToF32(0xc000), -2.0F);
  EXPECT_EQ(F16ToF32(0x7bff), 65504.0F);
  EXPECT_EQ(F16ToF32(0x0001), 0x1p-24F);  // smallest subnormal
  EXPECT_EQ(F16ToF32(0x03ff), 1023 * 0x1p-24F);
  EXPECT_EQ(F16ToF32(0x0400), 0x1p-14F);
  EXPECT_TRUE(std::signbit(F16ToF32(0x8000)));
  EXPECT_EQ(F16ToF32(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(F16ToF32(0x7e01)));
  EXPECT_EQ(BF16ToF32(0x3f80), 1.0F);
}

TEST(TensorTest, Bf16RoundsToNearestEven) {
  EXPECT_EQ(F32ToBF16(1.0F), 0x3f80);
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // tie, to even
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x3f818000U)), 0x3f82);
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x3f808001U)), 0x3f81);
  EXPECT_EQ(F32ToBF16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(std::bit_cast<float>(0x7f800001U)))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {  // widening and rounding back changes nothing
    const float value = BF16ToF32(static_cast<uint16_t>(bits));
    if (!std::isnan(value)) {
      ASSERT_EQ(F32ToBF16(value), bits);
    }
  }
}

}  // namespace
}  // namespace iha::checkpoint
