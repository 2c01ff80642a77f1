// fiber.h: a stack of its own that runs until it suspends itself; the emulator runs each CUDA thread on one.
//
// A fiber runs `entry(argument)` again and again: when entry returns the fiber suspends with done() true, and the next
// Resume starts it anew, so that one fiber serves the same thread number of every block. Resume and Suspend switch in a
// few nanoseconds (six registers on x86-64; ucontext elsewhere). Used by one OS thread at a time; Resume may not nest.
// AddressSanitizer and ThreadSanitizer are told of every switch. A fiber that is dropped while suspended leaves the
// frames on its stack undestroyed: device code keeps nothing there that owns anything.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace iha::kernels::simt {

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  // stack: `bytes` writable bytes that outlive the fiber.
  Fiber(unsigned char* stack, size_t bytes);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // What the next Resume runs; only before the first one or after done().
  void Prepare(Entry entry, void* argument);
  // Runs the fiber until it suspends. Called outside of fibers.
  void Resume();
  // Back to where Resume was called. Called on this fiber.
  void Suspend();
  [[nodiscard]] bool done() const { return done_; }

 private:
  struct Switch;  // registers and what the sanitizers want to know
  friend struct Switch;

  std::unique_ptr<Switch> switch_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  bool done_ = true;
};

// Fibers with stacks of one size, each with a page below it that may not be touched: an overflow is a fault at the
// place where it happens. Grows on demand, keeps its fibers until Clear or destruction.
class FiberPool {
 public:
  explicit FiberPool(size_t stack_bytes) : stack_bytes_(stack_bytes) {}
  ~FiberPool() { Clear(); }
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // The first n fibers exist afterwards. False if the system gives no memory for their stacks.
  [[nodiscard]] bool Reserve(size_t n);
  [[nodiscard]] Fiber& operator[](size_t i) { return *fibers_[i]; }
  // Drops all fibers, also suspended ones.
  void Clear();

 private:
  struct Mapping {
    unsigned char* begin;
    size_t bytes;
  };
  const size_t stack_bytes_;
  std::vector<Mapping> mappings_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

}  // namespace iha::kernels::simt
