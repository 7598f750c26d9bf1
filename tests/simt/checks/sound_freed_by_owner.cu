// check: sound
// near: leak
// what: a class frees its buffer in its destructor, and buffers are moved into a vector and out of functions

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

class Buffer {
 public:
  explicit Buffer(int n) { CHECK(cudaMalloc(&data_, n * sizeof(float))); }
  Buffer(Buffer&& other) : data_(std::exchange(other.data_, nullptr)) {}
  ~Buffer() { cudaFree(data_); }
  float* get() const { return data_; }

 private:
  float* data_ = nullptr;
};

__global__ void fill(float* x, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value;
}

Buffer make(int n, float value) {
  Buffer made(n);
  fill<<<(n + 63) / 64, 64>>>(made.get(), value, n);
  return made;
}

int main() {
  std::vector<Buffer> all;
  for (int k = 1; k < 5; k++) all.push_back(make(50 * k, k));
  float last;
  CHECK(cudaMemcpy(&last, all.back().get() + 199, sizeof last, cudaMemcpyDeviceToHost));
  printf("%f\n", last);
}
