// title: heat on a plate with fixed heaters: two buffers in turn, and the change measured until it is small
// features: stencils, atomics, streams, events, pinned_memory

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

static const int DIM = 64;
static const float SPEED = 0.25f;

#define cu(x) cuda_or_die((x), #x, __LINE__)
static void cuda_or_die(cudaError_t e, const char* what, int line) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "%d: %s: %s\n", line, what, cudaGetErrorString(e));
  std::exit(9);
}

__global__ void copy_const_kernel(float* iptr, const float* cptr) {
  int x = threadIdx.x + blockIdx.x * blockDim.x;
  int y = threadIdx.y + blockIdx.y * blockDim.y;
  int offset = x + y * blockDim.x * gridDim.x;
  if (cptr[offset] != 0) iptr[offset] = cptr[offset];
}

__global__ void blend_kernel(float* outSrc, const float* inSrc) {
  int x = threadIdx.x + blockIdx.x * blockDim.x;
  int y = threadIdx.y + blockIdx.y * blockDim.y;
  int offset = x + y * blockDim.x * gridDim.x;

  int left = offset - 1;
  int right = offset + 1;
  if (x == 0) left++;
  if (x == DIM - 1) right--;

  int top = offset - DIM;
  int bottom = offset + DIM;
  if (y == 0) top += DIM;
  if (y == DIM - 1) bottom -= DIM;

  outSrc[offset] =
      inSrc[offset] + SPEED * (inSrc[top] + inSrc[bottom] + inSrc[left] + inSrc[right] - inSrc[offset] * 4);
}

// Positive floats are ordered as their bits are.
__global__ void largest_change(const float* a, const float* b, unsigned int* result) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float change = fabsf(a[i] - b[i]);
  for (int offset = 16; offset; offset >>= 1) change = fmaxf(change, __shfl_xor_sync(~0u, change, offset));
  if ((threadIdx.x & 31) == 0) atomicMax(result, __float_as_uint(change));
}

int main() {
  const int points = DIM * DIM;
  const size_t bytes = points * sizeof(float);
  float *heaters, *shown;
  cu(cudaMallocHost(&heaters, bytes));
  cu(cudaHostAlloc((void**)&shown, bytes, cudaHostAllocDefault));
  for (int i = 0; i < points; i++) {
    heaters[i] = 0;
    int x = i % DIM, y = i / DIM;
    if (x > 18 && x < 38 && y > 20 && y < 40) heaters[i] = 1.0f;
  }
  heaters[DIM * 6 + 6] = (1.0f + 0.0001f) / 2;
  heaters[DIM * 44 + 25] = 0.0001f;
  for (int y = 50; y < 56; y++)
    for (int x = 25; x < 30; x++) heaters[x + y * DIM] = 0.25f;

  cudaStream_t stream;
  cudaEvent_t start, stop;
  cu(cudaStreamCreate(&stream));
  cu(cudaEventCreate(&start));
  cu(cudaEventCreate(&stop));
  float *dev_in, *dev_out, *dev_const;
  unsigned int *dev_change, bits = 0;
  cu(cudaMalloc(&dev_in, bytes));
  cu(cudaMalloc(&dev_out, bytes));
  cu(cudaMalloc(&dev_const, bytes));
  cu(cudaMalloc(&dev_change, sizeof(unsigned int)));
  cu(cudaMemcpyAsync(dev_const, heaters, bytes, cudaMemcpyHostToDevice, stream));
  cu(cudaMemcpyAsync(dev_in, heaters, bytes, cudaMemcpyHostToDevice, stream));

  dim3 blocks(DIM / 16, DIM / 16), threads(16, 16);
  int steps = 0;
  float change = 1;
  cu(cudaEventRecord(start, stream));
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 4; i++, steps++) {
      copy_const_kernel<<<blocks, threads, 0, stream>>>(dev_in, dev_const);
      blend_kernel<<<blocks, threads, 0, stream>>>(dev_out, dev_in);
      std::swap(dev_in, dev_out);
    }
    cu(cudaMemsetAsync(dev_change, 0, sizeof(unsigned int), stream));
    largest_change<<<points / 128, 128, 0, stream>>>(dev_in, dev_out, dev_change);
    cu(cudaGetLastError());
    cu(cudaMemcpyAsync(&bits, dev_change, sizeof(bits), cudaMemcpyDeviceToHost, stream));
    cu(cudaStreamSynchronize(stream));
    float next = *reinterpret_cast<float*>(&bits);
    std::printf("after %d steps: change %s\n", steps, next < change ? "is smaller" : "is not smaller");
    change = next;
  }
  cu(cudaMemcpyAsync(shown, dev_in, bytes, cudaMemcpyDeviceToHost, stream));
  cu(cudaEventRecord(stop, stream));
  cu(cudaEventSynchronize(stop));
  float ms = -1;
  cu(cudaEventElapsedTime(&ms, start, stop));
  std::fprintf(stderr, "%.1f ms\n", ms);

  std::vector<double> now(heaters, heaters + points), next(points);
  double expected_change = 0;
  for (int step = 0; step < steps; step++) {
    for (int i = 0; i < points; i++)
      if (heaters[i] != 0) now[i] = heaters[i];
    for (int y = 0; y < DIM; y++)
      for (int x = 0; x < DIM; x++) {
        auto at = [&](int u, int v) { return now[std::clamp(v, 0, DIM - 1) * DIM + std::clamp(u, 0, DIM - 1)]; };
        next[y * DIM + x] =
            at(x, y) + 0.25 * (at(x, y - 1) + at(x, y + 1) + at(x - 1, y) + at(x + 1, y) - 4 * at(x, y));
      }
    expected_change = 0;
    for (int i = 0; i < points; i++) expected_change = std::fmax(expected_change, std::fabs(now[i] - next[i]));
    now.swap(next);
  }
  double worst = 0, mean = 0;
  for (int i = 0; i < points; i++) {
    worst = std::fmax(worst, std::fabs(now[i] - shown[i]));
    mean += shown[i] / points;
  }
  bool ok = worst < 1e-4 && std::fabs(change - expected_change) < 1e-4 && ms >= 0;
  std::printf("mean temperature %.4f, last change %.3f\n", mean, change);

  cu(cudaFree(dev_in));
  cu(cudaFree(dev_out));
  cu(cudaFree(dev_const));
  cu(cudaFree(dev_change));
  cu(cudaEventDestroy(start));
  cu(cudaEventDestroy(stop));
  cu(cudaStreamDestroy(stream));
  cu(cudaFreeHost(heaters));
  cu(cudaFreeHost(shown));
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
