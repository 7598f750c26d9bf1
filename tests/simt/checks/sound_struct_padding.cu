// check: sound
// near: uninitialized
// what: particles are copied whole, with the padding behind their one-byte field, which nobody ever wrote

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Particle { double x; float velocity; unsigned char kind; };  // 16 bytes, 3 of them padding

__global__ void create(Particle* all, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  all[i].x = i;
  all[i].velocity = 1;
  all[i].kind = i % 3;
}

__global__ void step(Particle* all, Particle* next, float* positions, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Particle mine = all[i];
  mine.x += mine.velocity * mine.kind;
  next[i] = mine;
  positions[i] = next[i].x;
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
