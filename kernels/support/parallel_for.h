// parallel_for.h: how a kernel asks its caller for threads.
//
// Run(jobs, f) calls f(job, thread) exactly once for every job in [0, jobs), in any order and from any thread, and
// returns when all of them are done. `thread` is in [0, Threads()) and no two concurrent calls share it, so it may
// index scratch. Kernels cut their work so that no bit of the result depends on who runs which job. A job may throw
// (std::bad_alloc): Run throws what one of them threw when none runs any more; others may not have run. Not re-entrant:
// a job must not call Run of the same object. Implementations: SerialFor here, ThreadPool.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace iha::kernels {

// A view of a callable that lives at least as long as the call; no allocation.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>>>
  FunctionRef(F&& f)  // NOLINT(google-explicit-constructor): passing a lambda is the point
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

class ParallelFor {
 public:
  virtual ~ParallelFor() = default;
  [[nodiscard]] virtual int Threads() const = 0;
  virtual void Run(size_t jobs, FunctionRef<void(size_t job, int thread)> f) = 0;
};

// The caller's own thread, jobs in increasing order.
class SerialFor final : public ParallelFor {
 public:
  [[nodiscard]] int Threads() const override { return 1; }
  void Run(size_t jobs, FunctionRef<void(size_t job, int thread)> f) override {
    for (size_t job = 0; job < jobs; ++job) f(job, 0);
  }
};

}  // namespace iha::kernels
