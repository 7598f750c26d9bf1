// check: sound
// near: illegal_address
// what: kernels read pinned, mapped and registered host memory and write managed memory in two streams

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__managed__ int calls;

__global__ void add(const float* a, const float* b, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
  if (i == 0) atomicAdd(&calls, 1);
}

int main() {
  const int n = 300;
  float *pinned, *mapped, *mapped_there, *sum, *registered_there;
  std::vector<float> registered(n, 3);
  CHECK(cudaMallocHost(&pinned, n * sizeof(float)));
  CHECK(cudaHostAlloc(&mapped, n * sizeof(float), cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&mapped_there, mapped, 0));
  CHECK(cudaHostRegister(registered.data(), n * sizeof(float), cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer(&registered_there, registered.data(), 0));
  CHECK(cudaMallocManaged(&sum, n * sizeof(float)));
  calls = 0;
  for (int i = 0; i < n; i++) pinned[i] = mapped[i] = i;
  cudaStream_t one, two;
  CHECK(cudaStreamCreate(&one));
  CHECK(cudaStreamCreate(&two));
  add<<<3, 128, 0, one>>>(pinned, mapped_there, sum, n);
  CHECK(cudaStreamSynchronize(one));
  add<<<3, 128, 0, two>>>(sum, registered_there, sum, n);
  CHECK(cudaStreamSynchronize(two));
  printf("%f %d\n", sum[100], calls);
  CHECK(cudaStreamDestroy(one));
  CHECK(cudaStreamDestroy(two));
  CHECK(cudaHostUnregister(registered.data()));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFreeHost(mapped));
  CHECK(cudaFree(sum));
}
