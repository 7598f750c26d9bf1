// check: sound
// near: uninitialized
// what: variables without a value at first, which a loop's first turn sets and later turns read under a condition

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void maximum(const float* x, float* out, int n) {
  float largest;
  for (int i = 0; i < n; ++i) {
    if (i == 0)
      largest = x[i];
    else
      largest = fmaxf(largest, x[i]);
  }
  out[threadIdx.x] = largest;
}

__global__ void place_of_maximum(const float* x, float* out, int n) {
  int best = -1;
  float largest;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (best < 0 || x[i] > largest) {
      best = i;
      largest = x[i];
    }
  out[threadIdx.x] = best;
}

__device__ float variation(const float* x, int n) {
  float sum = 0, before;
  for (int i = 0; i < n; ++i) {
    if (i > 0) sum += fabsf(x[i] - before);
    before = x[i];
  }
  return sum;
}

__global__ void runs(const float* x, float* out, int n) {
  int count = 0, seen = 0;
  float before;
  while (seen < n) {
    if (seen > 0 && x[seen] != before) ++count;
    before = x[seen++];
  }
  out[threadIdx.x] = count + variation(x, n);
}

__global__ void by_states(const float* x, float* out, int n) {
  int state = 0;
  float word, sum = 0;
  for (int i = 0; i < n; ++i) switch (state) {
      case 0: word = x[i], state = 1; break;
      case 1: word = 2 * word, state = 2; break;
      default: sum += word, state = 0;
    }
  out[threadIdx.x] = sum;
}

int main() {
  const int n = 200;
  std::vector<float> x(n), out(32);
  for (int i = 0; i < n; ++i) x[i] = i * 7 % 31 / 4;
  float *d_x, *d_out;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, 32 * sizeof(float)));
  CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  for (auto kernel : {maximum, place_of_maximum, runs, by_states}) {
    kernel<<<1, 32>>>(d_x, d_out, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), d_out, 32 * sizeof(float), cudaMemcpyDeviceToHost));
    printf("%g\n", out[3]);
  }
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_out));
  return 0;
}
