// check: sound
// near: uninitialized
// what: records are written field by field and copied whole, with the padding between and behind their fields

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Particle {
  char kind;
  double mass;
  int cell;
};
struct alignas(16) Point {
  float x, y, z;
};

__global__ void write(Particle* particles, Point* points) {
  int t = threadIdx.x;
  Particle mine;
  mine.kind = 1;
  mine.mass = 0.5 * t;
  mine.cell = t;
  particles[t] = mine;
  points[t].x = points[t].y = t;
  points[t].z = 1;
}

__global__ void copy(const Particle* particles, const Point* points, Particle* more, Point* others) {
  int t = threadIdx.x;
  Particle one = particles[31 - t];
  more[t] = one;
  others[t] = points[31 - t];
}

int main() {
  Particle host[32], *particles;
  Point *points;
  CHECK(cudaMalloc(&particles, 64 * sizeof(Particle)));
  CHECK(cudaMalloc(&points, 64 * sizeof(Point)));
  write<<<1, 32>>>(particles, points);
  copy<<<1, 32>>>(particles, points, particles + 32, points + 32);
  CHECK(cudaMemcpy(host, particles + 32, sizeof host, cudaMemcpyDeviceToHost));
  printf("%d %g\n", host[0].cell, host[0].mass);
  CHECK(cudaFree(particles));
  CHECK(cudaFree(points));
}
