// check: uninitialized
// what: the first kernel sets three of a particle's four fields, and the second one moves by the fourth
// array: all

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Particle { float x, velocity, mass, force; };

__global__ void create(Particle* all, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  all[i].x = i;
  all[i].velocity = 1;
  all[i].mass = 2;
}

__global__ void step(Particle* all, Particle* next, float* positions, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float kick = all[i].force;  // defect
  all[i].velocity += kick / all[i].mass;
  positions[i] = all[i].x + all[i].velocity;
}

int main() {
  const int n = 70;
  Particle *d_all, *d_next;
  float *d_positions;
  std::vector<float> positions(n);
  CHECK(cudaMalloc(&d_all, n * sizeof(Particle)));
  CHECK(cudaMalloc(&d_next, n * sizeof(Particle)));
  CHECK(cudaMalloc(&d_positions, n * sizeof(float)));
  create<<<3, 32>>>(d_all, n);
  CHECK(cudaGetLastError());
  step<<<3, 32>>>(d_all, d_next, d_positions, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(positions.data(), d_positions, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", positions[0], positions[n - 1]);
  CHECK(cudaFree(d_all));
  CHECK(cudaFree(d_next));
  CHECK(cudaFree(d_positions));
  return 0;
}
