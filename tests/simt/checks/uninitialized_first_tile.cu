// check: uninitialized
// what: the pipeline computes with a tile before the first one has been loaded: the load comes at the loop's end
// array: tile

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void weighted_sum(const float* in, const float* weight, float* out, int n) {
  extern __shared__ float tile[];
  int t = threadIdx.x;
  float sum = 0;
  for (int start = 0; start < n; start += blockDim.x) {
    float neighbour = tile[(t + 1) % blockDim.x];  // defect
    sum += weight[t] * neighbour;
    __syncthreads();
    tile[t] = in[start + t];
    __syncthreads();
  }
  out[t] = sum;
}

int main() {
  const int threads = 64, n = 4 * threads;
  std::vector<float> in(n, 1.0f), weight(threads, 2.0f), out(threads);
  float *d_in, *d_weight, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_weight, threads * sizeof(float)));
  CHECK(cudaMalloc(&d_out, threads * sizeof(float)));
  CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_weight, weight.data(), threads * sizeof(float), cudaMemcpyHostToDevice));
  weighted_sum<<<1, threads, threads * sizeof(float)>>>(d_in, d_weight, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, threads * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g\n", out[0]);
  for (float* p : {d_in, d_weight, d_out}) CHECK(cudaFree(p));
  return 0;
}
