// title: Unified memory: host threads and kernels share the tasks, large ones run on the device
// features: managed_memory, streams, host_threads, prefetch
// args: 12 3

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define checkCudaErrors(e)                                                     \
  do {                                                                         \
    if (cudaError_t r = (e)) {                                                 \
      fprintf(stderr, "%s: %s\n", #e, cudaGetErrorString(r));                  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

__managed__ int tasksOnDevice = 0;

// A dense matrix-vector product in unified memory.
struct Task {
  int size, id;
  double *matrix, *vector, *result;

  Task(int n, int k) : size(n), id(k) {
    checkCudaErrors(cudaMallocManaged(&matrix, sizeof(double) * n * n));
    checkCudaErrors(cudaMallocManaged(&vector, sizeof(double) * n));
    checkCudaErrors(cudaMallocManaged(&result, sizeof(double) * n));
    for (int i = 0; i < n * n; i++) matrix[i] = (i * 7 + k) % 13;
    for (int i = 0; i < n; i++) {
      vector[i] = i % 5 - 2;
      result[i] = -1;
    }
  }
  void release() {
    checkCudaErrors(cudaFree(matrix));
    checkCudaErrors(cudaFree(vector));
    checkCudaErrors(cudaFree(result));
  }
};

__global__ void gemv(int n, const double* a, const double* x, double* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row == 0) atomicAdd(&tasksOnDevice, 1);
  if (row >= n) return;
  double sum = 0;
  for (int j = 0; j < n; j++) sum += a[row * n + j] * x[j];
  y[row] = sum;
}

static void gemvHost(int n, const double* a, const double* x, double* y) {
  for (int i = 0; i < n; i++) {
    y[i] = 0;
    for (int j = 0; j < n; j++) y[i] += a[i * n + j] * x[j];
  }
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 12, workers = argc > 2 ? atoi(argv[2]) : 3;
  std::vector<Task> tasks;
  for (int i = 0; i < count; i++) tasks.emplace_back(16 + (i * 37) % 100, i);

  std::mutex queue;
  size_t next = 0;
  int onHost = 0;
  std::vector<std::thread> team;
  for (int w = 0; w < workers; w++)
    team.emplace_back([&] {
      cudaStream_t stream;
      checkCudaErrors(cudaStreamCreate(&stream));
      for (;;) {
        Task* t = nullptr;
        {
          std::lock_guard<std::mutex> lock(queue);
          if (next == tasks.size()) break;
          t = &tasks[next++];
          if (t->size < 50) onHost++;
        }
        if (t->size < 50) {
          checkCudaErrors(cudaStreamAttachMemAsync(stream, t->result, 0, cudaMemAttachHost));
          checkCudaErrors(cudaStreamSynchronize(stream));
          gemvHost(t->size, t->matrix, t->vector, t->result);
        } else {
          gemv<<<(t->size + 31) / 32, 32, 0, stream>>>(t->size, t->matrix, t->vector, t->result);
          checkCudaErrors(cudaGetLastError());
          checkCudaErrors(cudaStreamSynchronize(stream));
        }
      }
      checkCudaErrors(cudaStreamDestroy(stream));
    });
  for (auto& t : team) t.join();
  checkCudaErrors(cudaDeviceSynchronize());

  int wrong = 0;
  double sum = 0;
  for (Task& t : tasks) {
    for (int i = 0; i < t.size; i++) {
      double want = 0;
      for (int j = 0; j < t.size; j++) want += ((i * t.size + j) * 7 + t.id) % 13 * (j % 5 - 2.0);
      wrong += t.result[i] != want;  // whole numbers
      sum += t.result[i];
    }
    t.release();
  }
  printf("%d tasks on the device, %d on the host, sum %.0f\n", tasksOnDevice, onHost, sum);
  bool ok = wrong == 0 && tasksOnDevice + onHost == count;
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
