// title: dot product whose blocks add their sums under a lock of atomicCAS
// features: atomics, mutex, device_structs, memory_fences

#include <stdio.h>
#include <stdlib.h>
#include <float.h>

static void HandleError(cudaError_t err, const char *file, int line) {
  if (err != cudaSuccess) {
    printf("%s in %s at line %d\n", cudaGetErrorString(err), file, line);
    exit(EXIT_FAILURE);
  }
}
#define HANDLE_ERROR(err) (HandleError(err, __FILE__, __LINE__))
#define HANDLE_NULL(a)                                                    \
  {                                                                       \
    if (a == NULL) {                                                      \
      printf("Host memory failed in %s at line %d\n", __FILE__, __LINE__); \
      exit(EXIT_FAILURE);                                                 \
    }                                                                     \
  }

struct Lock {
  int *mutex;

  Lock(void) {
    int state = 0;
    HANDLE_ERROR(cudaMalloc((void **)&mutex, sizeof(int)));
    HANDLE_ERROR(cudaMemcpy(mutex, &state, sizeof(int), cudaMemcpyHostToDevice));
  }
  void release(void) { cudaFree(mutex); }

  __device__ void lock(void) {
    while (atomicCAS(mutex, 0, 1) != 0);
    __threadfence();
  }
  __device__ void unlock(void) {
    __threadfence();
    atomicExch(mutex, 0);
  }
};

#define imin(a, b) (a < b ? a : b)

const int N = 9 * 1024;
const int threadsPerBlock = 256;
const int blocksPerGrid = imin(32, (N + threadsPerBlock - 1) / threadsPerBlock);

struct Extremes {
  float largest;
  int where;
};

__global__ void dot(Lock lock, float *a, float *b, float *c) {
  __shared__ float cache[threadsPerBlock];
  int tid = threadIdx.x + blockIdx.x * blockDim.x;
  int cacheIndex = threadIdx.x;

  float temp = 0;
  while (tid < N) {
    temp += a[tid] * b[tid];
    tid += blockDim.x * gridDim.x;
  }
  cache[cacheIndex] = temp;
  __syncthreads();

  // for reductions, threadsPerBlock must be a power of 2 because of the following code
  int i = blockDim.x / 2;
  while (i != 0) {
    if (cacheIndex < i) cache[cacheIndex] += cache[cacheIndex + i];
    __syncthreads();
    i /= 2;
  }

  if (cacheIndex == 0) {
    lock.lock();
    *c += cache[0];
    lock.unlock();
  }
}

// What no single atomic does: the largest product and its index change together.
__global__ void largest_product(Lock lock, float *a, float *b, Extremes *result) {
  __shared__ float products[threadsPerBlock];
  __shared__ int places[threadsPerBlock];
  int best = -1;
  float best_value = -FLT_MAX;
  for (int tid = threadIdx.x + blockIdx.x * blockDim.x; tid < N; tid += blockDim.x * gridDim.x)
    if (a[tid] * b[tid] > best_value) {
      best_value = a[tid] * b[tid];
      best = tid;
    }
  products[threadIdx.x] = best_value;
  places[threadIdx.x] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < blockDim.x; i++)
    if (products[i] > best_value || (products[i] == best_value && places[i] < best)) {
      best_value = products[i];
      best = places[i];
    }
  lock.lock();
  if (best_value > result->largest || (best_value == result->largest && best < result->where)) {
    result->largest = best_value;
    result->where = best;
  }
  lock.unlock();
}

int main(void) {
  float *a, *b, c = 0;
  float *dev_a, *dev_b, *dev_c;
  Extremes e = {-FLT_MAX, -1}, *dev_e;

  HANDLE_NULL((a = (float *)malloc(N * sizeof(float))));
  HANDLE_NULL((b = (float *)malloc(N * sizeof(float))));
  HANDLE_ERROR(cudaMalloc((void **)&dev_a, N * sizeof(float)));
  HANDLE_ERROR(cudaMalloc((void **)&dev_b, N * sizeof(float)));
  HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(float)));
  HANDLE_ERROR(cudaMalloc((void **)&dev_e, sizeof(Extremes)));
  for (int i = 0; i < N; i++) {
    a[i] = i % 61;
    b[i] = (i % 5) * 2 - 3;
  }
  HANDLE_ERROR(cudaMemcpy(dev_a, a, N * sizeof(float), cudaMemcpyHostToDevice));
  HANDLE_ERROR(cudaMemcpy(dev_b, b, N * sizeof(float), cudaMemcpyHostToDevice));
  HANDLE_ERROR(cudaMemcpy(dev_c, &c, sizeof(float), cudaMemcpyHostToDevice));
  HANDLE_ERROR(cudaMemcpy(dev_e, &e, sizeof(e), cudaMemcpyHostToDevice));

  Lock lock;
  dot<<<blocksPerGrid, threadsPerBlock>>>(lock, dev_a, dev_b, dev_c);
  largest_product<<<blocksPerGrid, threadsPerBlock>>>(lock, dev_a, dev_b, dev_e);
  HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
  HANDLE_ERROR(cudaMemcpy(&e, dev_e, sizeof(e), cudaMemcpyDeviceToHost));

  double sum = 0, most = -1e30;
  int where = -1;
  for (int i = 0; i < N; i++) {
    double product = (double)a[i] * b[i];
    sum += product;
    if (product > most) {
      most = product;
      where = i;
    }
  }
  printf("Does GPU value %.6g = %.6g?\n", c, sum);
  printf("largest product %g at %d\n", e.largest, e.where);
  bool right = c == sum && e.largest == most && e.where == where;

  HANDLE_ERROR(cudaFree(dev_a));
  HANDLE_ERROR(cudaFree(dev_b));
  HANDLE_ERROR(cudaFree(dev_c));
  HANDLE_ERROR(cudaFree(dev_e));
  lock.release();
  free(a);
  free(b);
  printf("%s\n", right ? "PASSED" : "FAILED");
  return right ? 0 : 1;
}
