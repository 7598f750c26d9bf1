// check: race
// what: a stage is released before it is read, so that the next tile may come into it meanwhile
// array: stage

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cooperative_groups.h>
#include <cuda/pipeline>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define B 64

__global__ void tile_sums(const float* in, float* out, int tiles) {
  __shared__ float stage[2][B];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state);
  int t = threadIdx.x;
  float sum = 0;
  for (int asked = 0, tile = 0; tile < tiles; tile++) {
    for (; asked < tiles && asked < tile + 2; asked++) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[asked % 2][t], &in[asked * B + t], sizeof(float), pipe);  // other
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    pipe.consumer_release();
    sum += stage[tile % 2][B - 1 - t];  // defect
  }
  out[t] = sum;
}

int main() {
  const int tiles = 5, n = B * tiles;
  std::vector<float> host(n), sums(B);
  for (int i = 0; i < n; i++) host[i] = i;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, B * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  tile_sums<<<1, B>>>(d_in, d_out, tiles);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), d_out, B * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g %g\n", sums[0], sums[B - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
