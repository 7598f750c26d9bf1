// title: work for the CPU between kernels: host functions and callbacks in streams, a pool of threads that waits
// features: host_functions, callbacks, streams, host_threads, std_flags
// flags: -std=c++17

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

constexpr int N_workloads = 6;
constexpr int N_elements = 1000;

#define check(x)                                                                       \
  do {                                                                                 \
    if (cudaError_t err = (x); err != cudaSuccess) {                                   \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
      std::abort();                                                                    \
    }                                                                                  \
  } while (false)

__global__ void incKernel(int* data, int N, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) data[i] += by;
}

struct heterogeneous_workload {
  int id = 0;
  int *h_data = nullptr, *d_data = nullptr;
  cudaStream_t stream{};
  bool success = false;
  std::vector<const char*> trace;
};

// All workloads are done when the count is zero.
class Countdown {
 public:
  explicit Countdown(int n) : left_(n) {}
  void arrive() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--left_ == 0) changed_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  int left_;
  std::mutex mutex_;
  std::condition_variable changed_;
};
static Countdown countdown(N_workloads);
static std::atomic<int> callbacks{0};

// A host function must not call CUDA: it hands the rest to a thread.
static std::mutex threads_mutex;
static std::vector<std::thread> threads;

static void postprocess(heterogeneous_workload* w) {
  w->success = true;
  for (int i = 0; i < N_elements; ++i)
    if (w->h_data[i] != 10 * (i + w->id) + 1 + w->id) w->success = false;
  countdown.arrive();
}

static void CUDART_CB double_on_host(void* data) {
  auto* w = static_cast<heterogeneous_workload*>(data);
  w->trace.push_back("host");
  for (int i = 0; i < N_elements; i++) w->h_data[i] *= 10;
}

static void CUDART_CB myStreamCallback(cudaStream_t stream, cudaError_t status, void* data) {
  auto* w = static_cast<heterogeneous_workload*>(data);
  if (status != cudaSuccess || stream != w->stream) std::abort();
  w->trace.push_back("callback");
  callbacks++;
  std::lock_guard<std::mutex> lock(threads_mutex);
  threads.emplace_back(postprocess, w);
}

int main() {
  std::vector<heterogeneous_workload> workloads(N_workloads);
  std::vector<std::thread> launchers;
  for (int i = 0; i < N_workloads; i++) {
    workloads[i].id = i;
    launchers.emplace_back([&w = workloads[i]] {
      check(cudaSetDevice(0));
      check(cudaStreamCreate(&w.stream));
      check(cudaMalloc(&w.d_data, N_elements * sizeof(int)));
      check(cudaHostAlloc(&w.h_data, N_elements * sizeof(int), cudaHostAllocPortable));
      for (int k = 0; k < N_elements; k++) w.h_data[k] = k;
      const size_t bytes = N_elements * sizeof(int);
      const dim3 block(256), grid((N_elements + 255) / 256);
      check(cudaMemcpyAsync(w.d_data, w.h_data, bytes, cudaMemcpyHostToDevice, w.stream));
      incKernel<<<grid, block, 0, w.stream>>>(w.d_data, N_elements, w.id);
      check(cudaMemcpyAsync(w.h_data, w.d_data, bytes, cudaMemcpyDeviceToHost, w.stream));
      check(cudaLaunchHostFunc(w.stream, double_on_host, &w));
      check(cudaMemcpyAsync(w.d_data, w.h_data, bytes, cudaMemcpyHostToDevice, w.stream));
      incKernel<<<grid, block, 0, w.stream>>>(w.d_data, N_elements, 1 + w.id);
      check(cudaGetLastError());
      check(cudaMemcpyAsync(w.h_data, w.d_data, bytes, cudaMemcpyDeviceToHost, w.stream));
      check(cudaStreamAddCallback(w.stream, myStreamCallback, &w, 0));
    });
  }
  for (auto& t : launchers) t.join();
  countdown.wait();
  for (auto& w : workloads) check(cudaStreamSynchronize(w.stream));
  for (auto& t : threads) t.join();

  bool success = callbacks == N_workloads;
  for (auto& w : workloads) {
    std::printf("workload %d: %s, then %s, last value %d\n", w.id, w.trace.at(0), w.trace.at(1),
                w.h_data[N_elements - 1]);
    success = success && w.success && w.trace.size() == 2;
    check(cudaFree(w.d_data));
    check(cudaFreeHost(w.h_data));
    check(cudaStreamDestroy(w.stream));
  }
  std::printf("%d callbacks\n%s\n", callbacks.load(), success ? "PASSED" : "FAILED");
  return success ? EXIT_SUCCESS : EXIT_FAILURE;
}
