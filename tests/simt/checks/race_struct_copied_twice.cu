// check: race
// what: the best candidate of every warp is copied to one shared record without any order
// array: best

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Candidate {
  float score;
  int row, column;
  int pad;
};

__device__ Candidate look(const float* scores, int i) { return {scores[i], i / 16, i % 16, 0}; }

__global__ void find_best(const float* scores, Candidate* result) {
  __shared__ Candidate best;
  Candidate mine = look(scores, threadIdx.x);
  if (threadIdx.x == 0) best = mine;
  __syncthreads();
  if (threadIdx.x % 32 == 5) best = mine;  // defect
  __syncthreads();
  if (threadIdx.x == 0) *result = best;
}

int main() {
  float host[128], *scores;
  Candidate* result;
  for (int i = 0; i < 128; i++) host[i] = i * 37 % 101;
  CHECK(cudaMalloc(&scores, sizeof host));
  CHECK(cudaMalloc(&result, sizeof(Candidate)));
  CHECK(cudaMemcpy(scores, host, sizeof host, cudaMemcpyHostToDevice));
  find_best<<<1, 128>>>(scores, result);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(scores));
  CHECK(cudaFree(result));
}
