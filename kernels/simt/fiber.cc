#include "kernels/simt/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#if defined(__x86_64__)
#define IHA_SIMT_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#ifdef IHA_SIMT_OWN_SWITCH
// Saves the registers that a call must keep, stores the stack pointer to *save, continues on the stack `load`.
extern "C" void iha_simt_switch_stack(void** save, void* load);
asm(R"(
.text
.globl iha_simt_switch_stack
.hidden iha_simt_switch_stack
.type iha_simt_switch_stack, @function
iha_simt_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size iha_simt_switch_stack, .-iha_simt_switch_stack
)");
#endif

namespace iha::kernels::simt {

struct Fiber::Switch {
  unsigned char* stack = nullptr;
  size_t bytes = 0;
#ifdef IHA_SIMT_OWN_SWITCH
  void* fiber = nullptr;  // stack pointers
  void* caller = nullptr;
#else
  ucontext_t fiber = {};
  ucontext_t caller = {};
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fiber_fake = nullptr;
  void* caller_fake = nullptr;
  const void* caller_stack = nullptr;
  size_t caller_bytes = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* tsan_fiber = nullptr;
  void* tsan_caller = nullptr;
#endif

  // The fiber whose first Resume is under way: the new stack has no other way to learn it.
  static thread_local Fiber* starting;

  [[noreturn]] static void Main() {
    Fiber* self = starting;
    self->switch_->EnteredFiber();
    for (;;) {
      self->entry_(self->argument_);
      self->done_ = true;
      self->Suspend();
    }
  }

  void EnteredFiber() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fiber_fake, &caller_stack, &caller_bytes);
#endif
  }

  void Start() {
#if defined(__SANITIZE_THREAD__)
    tsan_fiber = __tsan_create_fiber(0);
#endif
#ifdef IHA_SIMT_OWN_SWITCH
    // As after a call into Main: six registers, the return address, 16 bytes of alignment minus 8.
    auto** top = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t{15});
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&Main);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    fiber = top;
#else
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = bytes;
    fiber.uc_link = nullptr;
    makecontext(&fiber, reinterpret_cast<void (*)()>(&Main), 0);
#endif
  }

  void ToFiber() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&caller_fake, stack, bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    tsan_caller = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_fiber, 0);
#endif
#ifdef IHA_SIMT_OWN_SWITCH
    iha_simt_switch_stack(&caller, fiber);
#else
    swapcontext(&caller, &fiber);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(caller_fake, nullptr, nullptr);
#endif
  }

  void ToCaller() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fiber_fake, caller_stack, caller_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(tsan_caller, 0);
#endif
#ifdef IHA_SIMT_OWN_SWITCH
    iha_simt_switch_stack(&fiber, caller);
#else
    swapcontext(&fiber, &caller);
#endif
    EnteredFiber();
  }
};

thread_local Fiber* Fiber::Switch::starting = nullptr;

Fiber::Fiber(unsigned char* stack, size_t bytes) : switch_(std::make_unique<Switch>()) {
  switch_->stack = stack;
  switch_->bytes = bytes;
  switch_->Start();
}

Fiber::~Fiber() {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(switch_->stack, switch_->bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(switch_->tsan_fiber);
#endif
}

void Fiber::Prepare(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  done_ = false;
}

void Fiber::Resume() {
  Switch::starting = this;
  switch_->ToFiber();
}

void Fiber::Suspend() { switch_->ToCaller(); }

bool FiberPool::Reserve(size_t n) {
  if (fibers_.size() >= n) return true;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t stack = (stack_bytes_ + page - 1) / page * page, stride = stack + page;
  const size_t missing = n - fibers_.size(), bytes = missing * stride;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  auto* begin = static_cast<unsigned char*>(mapped);
  mappings_.push_back({begin, bytes});
  for (size_t i = 0; i < missing; ++i) {
    unsigned char* low = begin + i * stride;
    if (mprotect(low, page, PROT_NONE) != 0) return false;
    fibers_.push_back(std::make_unique<Fiber>(low + page, stack));
  }
  return true;
}

void FiberPool::Clear() {
  fibers_.clear();
  for (const Mapping& m : mappings_) munmap(m.begin, m.bytes);
  mappings_.clear();
}

}  // namespace iha::kernels::simt
