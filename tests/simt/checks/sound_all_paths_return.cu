// check: sound
// near: uninitialized
// what: functions whose last statement is no return, although all ways through them return

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

enum class Kind { first, second };

__device__ float weight(Kind kind) {
  switch (kind) {
    case Kind::first: return 0.25f;
    case Kind::second: return 0.75f;
  }
}

__host__ __device__ constexpr int digits(int n) {
  for (int count = 1;; ++count) {
    n /= 10;
    if (n == 0) return count;
  }
}

struct Range {
  int from, to;
  __device__ Range(int from, int to) : from{from}, to(to) {
    if (to < from) this->to = from;
  }
  __device__ ~Range() { from = to = 0; }
  __device__ void widen(int by) { to += by; }
  __device__ auto shrink() { --to; }
  __device__ int size() const {
    if (to > from) {
      return to - from;
    } else {
      return 0;
    }
  }
};

template <class T> __device__ Range pair_of(T a, T b) {
  return Range{static_cast<int>(a), static_cast<int>(b)};
}

static_assert(digits(1234) == 4);

__global__ void weigh(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Range range = pair_of(i % 5, 3);
  range.widen(2);
  range.shrink();
  auto twice = [](float v) { if (v > 100) return v; else return 2 * v; };
  x[i] = twice(x[i]) * weight(i % 2 ? Kind::first : Kind::second) + range.size() + digits(i);
}

int main() {
  const int n = 300;
  std::vector<float> x(n, 4.0f);
  float* d_x;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  weigh<<<(n + 127) / 128, 128>>>(d_x, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(x.data(), d_x, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g\n", x[7]);
  CHECK(cudaFree(d_x));
  return 0;
}
