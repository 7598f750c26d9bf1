// title: Streams of different priority, callbacks and host functions that check each part as it ends
// features: stream_priorities, callbacks, pinned_memory, streams
// args: 8

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
  {                                                                               \
    cudaError_t status = (x);                                                     \
    if (status) {                                                                 \
      fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(status));          \
      exit(1);                                                                    \
    }                                                                             \
  }

constexpr int kElements = 2048;

struct Workload {
  int id;
  int *host, *device;
  cudaStream_t stream;
  std::atomic<int> stages{0};
  bool good = false;
};

__global__ void incKernel(int* data, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += by;
}

// May not call CUDA functions: it only looks at the memory.
void CUDART_CB afterCopy(cudaStream_t, cudaError_t status, void* p) {
  Workload* w = static_cast<Workload*>(p);
  if (status == cudaSuccess && w->stages == 0) w->stages = 1;
}

void CUDART_CB atEnd(void* p) {
  Workload* w = static_cast<Workload*>(p);
  bool good = w->stages == 1;
  for (int i = 0; i < kElements; i++) good = good && w->host[i] == i + w->id * 10;
  w->good = good;
  w->stages = 2;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 8;
  int least = 0, greatest = 0;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  std::vector<Workload> loads(count);  // never resized: the callbacks hold pointers
  for (int i = 0; i < count; i++) {
    Workload& w = loads[i];
    w.id = i;
    CHECK(cudaStreamCreateWithPriority(&w.stream, cudaStreamNonBlocking, i % 2 ? greatest : least));
    int priority = 99;
    unsigned flags = 0;
    CHECK(cudaStreamGetPriority(w.stream, &priority));
    CHECK(cudaStreamGetFlags(w.stream, &flags));
    if (priority != (i % 2 ? greatest : least) || flags != cudaStreamNonBlocking) {
      puts("FAILED");
      return 1;
    }
    CHECK(cudaHostAlloc((void**)&w.host, kElements * sizeof(int), cudaHostAllocPortable));
    CHECK(cudaMalloc((void**)&w.device, kElements * sizeof(int)));
    for (int k = 0; k < kElements; k++) w.host[k] = k;
  }
  for (Workload& w : loads) {
    CHECK(cudaMemcpyAsync(w.device, w.host, kElements * sizeof(int), cudaMemcpyHostToDevice, w.stream));
    CHECK(cudaStreamAddCallback(w.stream, afterCopy, &w, 0));
    incKernel<<<kElements / 256, 256, 0, w.stream>>>(w.device, kElements, w.id * 10);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(w.host, w.device, kElements * sizeof(int), cudaMemcpyDeviceToHost, w.stream));
    CHECK(cudaLaunchHostFunc(w.stream, atEnd, &w));
  }
  int good = 0;
  for (Workload& w : loads) {
    CHECK(cudaStreamSynchronize(w.stream));
    CHECK(cudaStreamQuery(w.stream));
    good += w.good && w.stages == 2;
    CHECK(cudaFreeHost(w.host));
    CHECK(cudaFree(w.device));
    CHECK(cudaStreamDestroy(w.stream));
  }
  printf("%d of %d workloads checked by their callbacks\n", good, count);
  puts(good == count ? "PASSED" : "FAILED");
  return good == count ? 0 : 1;
}
