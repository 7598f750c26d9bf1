// check: out_of_bounds
// what: a block of 96 threads copies 96 bodies to a shared tile of 64
// array: tile

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

constexpr int TILE = 64;
struct Body { double position[3]; double mass; };

__global__ void attract(const Body* bodies, double* pull, int n) {
  __shared__ Body tile[TILE];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) tile[threadIdx.x] = bodies[i];  // defect
  __syncthreads();
  double sum = 0;
  for (int k = 0; k < TILE; k++) sum += tile[k].mass * tile[k].position[0];
  if (i < n) pull[i] = sum;
}

int main() {
  const int n = 96;
  std::vector<Body> host(n, {{1, 2, 3}, 1});
  std::vector<double> result(n);
  Body* bodies;
  double* pull;
  CHECK(cudaMalloc(&bodies, n * sizeof(Body)));
  CHECK(cudaMalloc(&pull, n * sizeof(double)));
  CHECK(cudaMemcpy(bodies, host.data(), n * sizeof(Body), cudaMemcpyHostToDevice));
  attract<<<1, 96>>>(bodies, pull, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result.data(), pull, n * sizeof(double), cudaMemcpyDeviceToHost));
  printf("%f\n", result[0]);
  CHECK(cudaFree(bodies));
  CHECK(cudaFree(pull));
}
