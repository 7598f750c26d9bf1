// check: sound
// near: illegal_address
// what: a buffer is freed and allocated again in each pass, and the pointer that the kernel gets is always the newest

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Growing {
  int* data = nullptr;
  int capacity = 0;
  void reserve(int wanted) {
    int* larger;
    CHECK(cudaMalloc(&larger, wanted * sizeof(int)));
    if (data) CHECK(cudaMemcpy(larger, data, capacity * sizeof(int), cudaMemcpyDeviceToDevice));
    CHECK(cudaFree(data));
    data = larger;
    capacity = wanted;
  }
};

__global__ void append(int* data, int from, int to) {
  int i = from + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < to) data[i] = i + (from ? data[from - 1] : 0);
}

int main() {
  Growing list;
  int size = 0, last;
  for (int pass = 1; pass <= 5; pass++) {
    if (size + 30 > list.capacity) list.reserve(2 * size + 30);
    append<<<1, 32>>>(list.data, size, size + 30);
    CHECK(cudaDeviceSynchronize());
    size += 30;
  }
  CHECK(cudaMemcpy(&last, list.data + size - 1, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", last);
  CHECK(cudaFree(list.data));
}
