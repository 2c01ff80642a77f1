// A thread's accesses to shared and global memory, and its asynchronous copies.
#include <algorithm>
#include <cstring>

#include "kernels/simt/block.h"

namespace iha::kernels::simt {
namespace {

std::string Bytes(int64_t offset, uint32_t bytes) {
  return "bytes " + std::to_string(offset) + ".." + std::to_string(offset + bytes - 1);
}

const char* Verb(Block::Access access) {
  switch (access) {
    case Block::Access::kRead:
      return "reads";
    case Block::Access::kWrite:
      return "writes";
    case Block::Access::kAtomic:
      return "updates";
  }
  return "";
}

std::string Explain(const SharedShadow::Conflict& c, const std::string& doing, const std::string& other) {
  switch (c.kind) {
    case ErrorKind::kUninitialised:
      return doing + ", of which byte " + std::to_string(c.offset) + " was never written";
    case ErrorKind::kAsyncCopy:
      return doing + " while the cp.async of " + other + " at " + ToString(c.site) + " to byte " +
             std::to_string(c.offset) + " has not been waited for";
    default:
      return doing + "; no barrier lies between this and the " + c.other + " of byte " + std::to_string(c.offset) +
             " by " + other + " at " + ToString(c.site);
  }
}

}  // namespace

unsigned char* Block::Shared(Access access, int64_t offset, uint32_t bytes, uint32_t alignment, const Site& site,
                             uint32_t lane_number) {
  if (offset < 0 || offset + bytes > static_cast<int64_t>(config_.shared_bytes)) {
    FailLane(lane_number, ErrorKind::kOutOfBounds, site,
             std::string(Verb(access)) + " shared " + Bytes(offset, bytes) + ", the block has " +
                 std::to_string(config_.shared_bytes));
  }
  if (offset % alignment != 0) {
    FailLane(lane_number, ErrorKind::kMisaligned, site,
             std::string(Verb(access)) + " shared " + Bytes(offset, bytes) + ", expected a multiple of " +
                 std::to_string(alignment));
  }
  (access == Access::kRead ? report_.counters.shared_read_bytes : report_.counters.shared_written_bytes) += bytes;
  if (device_.options().check_shared) {
    const SharedShadow::Who who{warp(), lane_number};
    const uint32_t at = static_cast<uint32_t>(offset);
    const SharedShadow::Result found = access == Access::kRead    ? shadow_.Read(at, bytes, who, site)
                                       : access == Access::kWrite ? shadow_.Write(at, bytes, who, site)
                                                                  : shadow_.Atomic(at, bytes, who, site);
    if (found) {
      FailLane(lane_number, found->kind, site,
               Explain(*found, std::string(Verb(access)) + " shared " + Bytes(offset, bytes), Describe(found->who)));
    }
  }
  return shared_.get() + offset;
}

void Block::Global(Access access, Allocation* from, const void* address, uint32_t bytes, uint32_t alignment,
                   const Site& site) {
  const auto value = reinterpret_cast<uintptr_t>(address);
  const std::string_view verb = Verb(access);
  if (from == nullptr) Fail(ErrorKind::kOutOfBounds, site, std::string(verb) + " global memory through a null pointer");
  const int64_t offset = static_cast<int64_t>(value - from->begin());
  if (!from->Holds(value, bytes)) {
    Fail(ErrorKind::kOutOfBounds, site,
         std::string(verb) + " " + Bytes(offset, bytes) + " of " + from->name() + ", which has " +
             std::to_string(from->bytes()));
  }
  if (value % alignment != 0) {
    Fail(ErrorKind::kMisaligned, site,
         std::string(verb) + " " + Bytes(offset, bytes) + " of " + from->name() + ", expected a multiple of " +
             std::to_string(alignment));
  }
  if (access != Access::kRead && !from->writable()) {
    Fail(ErrorKind::kOutOfBounds, site, std::string(verb) + " " + from->name() + ", which is read-only");
  }
  Counters& c = report_.counters;
  if (access == Access::kAtomic) {
    ++c.global_atomics;
  } else {
    (access == Access::kRead ? c.global_read_bytes : c.global_written_bytes) += bytes;
  }
  if (!device_.options().check_global) return;
  const auto kind = access == Access::kRead    ? Allocation::Access::kRead
                    : access == Access::kWrite ? Allocation::Access::kWrite
                                               : Allocation::Access::kAtomic;
  Allocation::Conflict conflict;
  if (from->Touch(static_cast<size_t>(offset), bytes, kind, serial_, first_serial_, &conflict)) return;
  const std::string doing = std::string(verb) + " " + Bytes(offset, bytes) + " of " + from->name();
  if (conflict.kind == ErrorKind::kUninitialised) {
    Fail(conflict.kind, site, doing + ", of which byte " + std::to_string(conflict.offset) + " was never written");
  }
  Fail(conflict.kind, site,
       doing + ", which block number " + std::to_string(conflict.other - first_serial_) + " of this launch " +
           (conflict.other_writes ? "wrote" : "read") + ": blocks have no order");
}

void Block::Copy(int64_t offset, Allocation* from, const void* source, uint32_t bytes, uint32_t valid,
                 const Site& site) {
  if (offset < 0 || offset + bytes > static_cast<int64_t>(config_.shared_bytes)) {
    Fail(ErrorKind::kOutOfBounds, site,
         "copies to shared " + Bytes(offset, bytes) + ", the block has " + std::to_string(config_.shared_bytes));
  }
  if (offset % bytes != 0) {
    Fail(ErrorKind::kMisaligned, site,
         "copies to shared " + Bytes(offset, bytes) + ", expected a multiple of " + std::to_string(bytes));
  }
  if (valid > bytes) Fail(ErrorKind::kOutOfBounds, site, "copies more bytes than the cp.async has");
  if (valid > 0) {
    if (reinterpret_cast<uintptr_t>(source) % bytes != 0) {
      Fail(ErrorKind::kMisaligned, site, "copies from an address that is no multiple of " + std::to_string(bytes));
    }
    Global(Access::kRead, from, source, valid, 1, site);
  }
  report_.counters.shared_written_bytes += bytes;
  const SharedShadow::Who who = thread_->who;
  const uint32_t at = static_cast<uint32_t>(offset);
  if (device_.options().check_shared) {
    if (const SharedShadow::Result found = shadow_.IssueCopy(at, bytes, who, site)) {
      Fail(found->kind, site, Explain(*found, "copies to shared " + Bytes(offset, bytes), Describe(found->who)));
    }
  }
  thread_->copies.push_back({thread_->copy_group, at, bytes, valid, static_cast<const unsigned char*>(source), site});
  if (device_.options().copies == CopyMode::kEager) {
    std::memset(shared_.get() + at, 0, bytes);
    if (valid > 0) std::memcpy(shared_.get() + at, source, valid);
  }
}

void Block::WaitCopies(uint32_t pending_groups) {
  std::vector<AsyncCopy>& copies = thread_->copies;
  const auto landed = [&](const AsyncCopy& c) {
    return c.group < thread_->copy_group && thread_->copy_group - c.group > pending_groups;
  };
  size_t n = 0;
  for (; n < copies.size() && landed(copies[n]); ++n) {
    const AsyncCopy& c = copies[n];
    if (device_.options().copies == CopyMode::kLazy) {
      std::memset(shared_.get() + c.offset, 0, c.bytes);
      if (c.valid > 0) std::memcpy(shared_.get() + c.offset, c.source, c.valid);
    }
    if (device_.options().check_shared) shadow_.LandCopy(c.offset, c.bytes, thread_->who);
  }
  copies.erase(copies.begin(), copies.begin() + static_cast<ptrdiff_t>(n));
}

}  // namespace iha::kernels::simt
