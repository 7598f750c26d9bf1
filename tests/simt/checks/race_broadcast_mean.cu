// check: race
// what: the group's mean is put into shared memory by thread 0, and the others read it without waiting

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ float block_sum(float v) {
  __shared__ float warps[4];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  return warps[0] + warps[1] + warps[2] + warps[3];
}

__global__ void groupnorm(const float* x, float* y, int size, float eps) {
  __shared__ float mean, scale;
  const float* in = x + blockIdx.x * size;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < size; i += blockDim.x) sum += in[i], squares += in[i] * in[i];
  sum = block_sum(sum), squares = block_sum(squares);
  if (threadIdx.x == 0) {
    mean = sum / size, scale = rsqrtf(squares / size - sum / size * (sum / size) + eps);  // other
  }
  for (int i = threadIdx.x; i < size; i += blockDim.x) y[blockIdx.x * size + i] = (in[i] - mean) * scale;  // defect
}

int main() {
  const int groups = 3, size = 200, n = groups * size;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i % 2 ? 3.0f : 1.0f;
  float *d_x, *d_y;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMalloc(&d_y, n * sizeof(float)));
  CHECK(cudaMemcpy(d_x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  groupnorm<<<groups, 128>>>(d_x, d_y, size, 1e-5f);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.3f %.3f\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_y));
  return 0;
}
