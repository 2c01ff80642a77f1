#include "tests/model/device/cuda/fake_cudart.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace iha::model::testing {
namespace {

std::unique_ptr<FakeCuda>& Slot() {
  static auto slot = std::make_unique<FakeCuda>();
  return slot;
}

// What was captured, and what it became.
struct FakeGraph {
  std::vector<std::function<void()>> work;
};

// Whether the call fails; counts it.
cudaError_t Call(const char* name) {
  FakeCuda& f = Fake();
  const int nth = ++f.calls[name];
  return f.failing == name && nth >= f.failing_from ? f.error : cudaSuccess;
}

bool Inside(const std::map<std::byte*, size_t>& memory, const void* at, size_t bytes) {
  for (const auto& [begin, size] : memory) {
    const auto* p = static_cast<const std::byte*>(at);
    if (p >= begin && bytes <= size && static_cast<size_t>(p - begin) <= size - bytes) return true;
  }
  return false;
}

void* New(std::set<void*>& all) {
  void* const one = new int(0);
  all.insert(one);
  return one;
}

void* NewOnDevice(size_t bytes) {
  auto* const begin = static_cast<std::byte*>(::operator new(bytes));
  std::memset(begin, 0xFF, bytes);
  Fake().device_memory[begin] = bytes;
  Fake().used += bytes;
  return begin;
}

cudaError_t Delete(std::set<void*>& all, void* one, const char* what) {
  if (all.erase(one) == 0) {
    Fake().mistakes.push_back(what);
    return cudaErrorInvalidResourceHandle;
  }
  delete static_cast<int*>(one);
  return cudaSuccess;
}

}  // namespace

void FakeCuda::Drain() {
  if (!queue.empty()) waits++;
  for (auto& work : std::exchange(queue, {})) work();
}

FakeCuda& Fake() { return *Slot(); }
void ResetFake() { Slot() = std::make_unique<FakeCuda>(); }

}  // namespace iha::model::testing

using iha::model::testing::Call;
using iha::model::testing::Delete;
using iha::model::testing::Fake;
using iha::model::testing::FakeGraph;
using iha::model::testing::Inside;
using iha::model::testing::New;
using iha::model::testing::NewOnDevice;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = Fake().devices;
  return Fake().count_error;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = Fake().driver;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= Fake().devices) return cudaErrorInvalidDevice;
  *value = attribute == cudaDevAttrComputeCapabilityMajor         ? Fake().architecture / 10
           : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? Fake().max_shared_bytes
                                                                  : Fake().architecture % 10;
  return Call("cudaDeviceGetAttribute");
}
cudaError_t cudaSetDevice(int device) {
  Fake().current_device = device;
  return Call("cudaSetDevice");
}
cudaError_t cudaGetDevice(int* device) {
  *device = Fake().current_device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  properties->totalGlobalMem = Fake().memory;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice             ? "no CUDA-capable device is detected"
         : error == cudaErrorMemoryAllocation   ? "out of memory"
         : error == cudaErrorIllegalAddress     ? "an illegal memory access was encountered"
         : error == cudaErrorInsufficientDriver ? "CUDA driver version is insufficient for CUDA runtime version"
                                                : "some error";
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaErrorOther";
}
cudaError_t cudaGetLastError() {
  Call("cudaGetLastError");
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  if (const cudaError_t error = Call("cudaStreamCreateWithFlags")) return error;
  *stream = static_cast<cudaStream_t>(New(Fake().streams));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return Delete(Fake().streams, stream, "stream"); }
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  Fake().Drain();
  return Call("cudaStreamSynchronize");
}
cudaError_t cudaDeviceSynchronize() {
  Fake().Drain();
  return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  if (const cudaError_t error = Call("cudaMemPoolCreate")) return error;
  if (props->location.type != cudaMemLocationTypeDevice) Fake().mistakes.push_back("pool of another place");
  *pool = static_cast<cudaMemPool_t>(New(Fake().pools));
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return Call("cudaMemPoolSetAttribute"); }
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return Delete(Fake().pools, pool, "pool"); }
cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  if (const cudaError_t error = Call("cudaMallocFromPoolAsync")) return error;
  if (Fake().pools.count(pool) == 0 || Fake().streams.count(stream) == 0) return cudaErrorInvalidValue;
  if (bytes == 0) return cudaErrorInvalidValue;
  if (Fake().capturing) Fake().mistakes.push_back("an allocation becomes part of the graph");
  if (Fake().used + bytes > Fake().memory) return cudaErrorMemoryAllocation;
  *memory = NewOnDevice(bytes);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (const cudaError_t error = Call("cudaMalloc")) return error;
  if (Fake().used + Fake().kept + bytes > Fake().memory) return cudaErrorMemoryAllocation;
  *memory = NewOnDevice(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (const cudaError_t error = Call("cudaFree")) return error;
  Fake().Drain();
  const auto at = Fake().device_memory.find(static_cast<std::byte*>(memory));
  if (at == Fake().device_memory.end()) return cudaErrorInvalidValue;
  Fake().used -= at->second;
  ::operator delete(at->first);
  Fake().device_memory.erase(at);
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  *static_cast<uint64_t*>(value) =
      attribute == cudaMemPoolAttrReservedMemCurrent ? Fake().used + Fake().kept : Fake().used;
  return Call("cudaMemPoolGetAttribute");
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t keep) {
  if (const cudaError_t error = Call("cudaMemPoolTrimTo")) return error;
  Fake().kept = std::min(Fake().kept, keep);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  if (Fake().capturing) Fake().mistakes.push_back("a free becomes part of the graph");
  Fake().queue.push_back([memory] {
    const auto at = Fake().device_memory.find(static_cast<std::byte*>(memory));
    if (at == Fake().device_memory.end()) {
      Fake().mistakes.push_back("freed what is no allocation");
      return;
    }
    Fake().used -= at->second;
    ::operator delete(at->first);
    Fake().device_memory.erase(at);
  });
  return Call("cudaFreeAsync");
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = Fake().memory;
  *free = Fake().memory - Fake().used - Fake().kept;
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  if (const cudaError_t error = Call("cudaMallocHost")) return error;
  auto* const begin = static_cast<std::byte*>(::operator new(bytes));
  Fake().pinned[begin] = bytes;
  *memory = begin;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  if (Fake().pinned.erase(static_cast<std::byte*>(memory)) == 0) Fake().mistakes.push_back("freed what is not pinned");
  ::operator delete(memory);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  if (const cudaError_t error = Call("cudaEventCreateWithFlags")) return error;
  *event = static_cast<cudaEvent_t>(New(Fake().events));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return Delete(Fake().events, event, "event"); }
// Of an event: how much of the queue lies before it.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  auto* const records = reinterpret_cast<int*>(event);
  ++*records;
  Fake().queue.push_back([records] {
    --*records;
    Fake().passed[records] = Fake().milliseconds;
  });
  return Call("cudaEventRecord");
}
// Only as far as it must: what lies behind the event stays undone.
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  auto* const records = reinterpret_cast<int*>(event);
  size_t done = 0;
  while (*records > 0 && done < Fake().queue.size()) Fake().queue[done++]();
  Fake().queue.erase(Fake().queue.begin(), Fake().queue.begin() + static_cast<std::ptrdiff_t>(done));
  if (done > 0) Fake().waits++;
  return Call("cudaEventSynchronize");
}
// There is one stream, in whose order all is.
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned int) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return *reinterpret_cast<int*>(event) > 0 ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (const cudaError_t error = Call("cudaEventElapsedTime")) return error;
  const auto from = Fake().passed.find(begin), to = Fake().passed.find(end);
  if (from == Fake().passed.end() || to == Fake().passed.end()) return cudaErrorNotReady;
  *milliseconds = to->second - from->second;
  return cudaSuccess;
}
// Device to device stands for a kernel.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  const bool up = kind == cudaMemcpyHostToDevice, down = kind == cudaMemcpyDeviceToHost;
  if (Fake().capturing && (up || down)) Fake().mistakes.push_back("a copy of the host's becomes part of the graph");
  Fake().Enqueue([=] {
    const auto& device = Fake().device_memory;
    const auto& pinned = Fake().pinned;
    if (!Inside(down ? pinned : device, to, bytes) || !Inside(up ? pinned : device, from, bytes)) {
      Fake().mistakes.push_back(up ? "upload outside of memory" : "download outside of memory");
      return;
    }
    std::memcpy(to, from, bytes);
    if (!up && !down) Fake().milliseconds++;
  });
  return Call("cudaMemcpyAsync");
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode mode) {
  if (const cudaError_t error = Call("cudaStreamBeginCapture")) return error;
  // Any other mode forbids cudaMalloc meanwhile.
  if (Fake().capturing || mode != cudaStreamCaptureModeRelaxed) Fake().mistakes.push_back("capture");
  Fake().capturing = true;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = Fake().capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  if (!Fake().capturing) Fake().mistakes.push_back("end of no capture");
  Fake().capturing = false;
  auto* const made = new FakeGraph{std::exchange(Fake().captured, {})};
  if (const cudaError_t error = Call("cudaStreamEndCapture")) {
    delete made;
    return error;
  }
  Fake().graphs.insert(made);
  *graph = reinterpret_cast<cudaGraph_t>(made);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t error = Call("cudaGraphInstantiate")) return error;
  auto* const made = new FakeGraph(*reinterpret_cast<FakeGraph*>(graph));
  Fake().executables.insert(made);
  *executable = reinterpret_cast<cudaGraphExec_t>(made);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (Fake().graphs.erase(graph) == 0) return cudaErrorInvalidValue;
  delete reinterpret_cast<FakeGraph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (Fake().executables.erase(executable) == 0) return cudaErrorInvalidValue;
  delete reinterpret_cast<FakeGraph*>(executable);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const auto& work : reinterpret_cast<FakeGraph*>(executable)->work) Fake().Enqueue(work);
  return Call("cudaGraphLaunch");
}

}  // extern "C"
