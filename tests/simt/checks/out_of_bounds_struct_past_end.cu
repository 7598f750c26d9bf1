// check: out_of_bounds
// what: sorted insertion moves each particle one place on, the last one past the end of the array
// array: particles

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Particle {
  float x, y, z;
  float vx, vy, vz;
  float mass, charge;
};

__global__ void insert_in_front(Particle* particles, int count, Particle added) {
  if (threadIdx.x != 0) return;
  for (int i = count - 1; i >= 0; --i)
    particles[i + 1] = particles[i];  // defect
  particles[0] = added;
}

int main() {
  const int n = 10;
  std::vector<Particle> host(n);
  for (int i = 0; i < n; i++) host[i].mass = i;
  Particle* device;
  CHECK(cudaMalloc(&device, n * sizeof(Particle)));
  CHECK(cudaMemcpy(device, host.data(), n * sizeof(Particle), cudaMemcpyHostToDevice));
  insert_in_front<<<1, 32>>>(device, n, host[0]);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), device, n * sizeof(Particle), cudaMemcpyDeviceToHost));
  printf("%f\n", host[1].mass);
  CHECK(cudaFree(device));
}
