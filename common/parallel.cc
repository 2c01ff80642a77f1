#include "common/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace iha {

void InParallel(size_t count, size_t width, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min(count, width); t++) others.emplace_back(take);
  take();
  for (std::thread& thread : others) thread.join();
}

}  // namespace iha
