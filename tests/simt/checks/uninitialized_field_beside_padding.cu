// check: uninitialized
// array: points
// what: a field next to the padding of a record was never written, and is read

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct alignas(16) Point {
  float x, y, z;
};

__global__ void write(Point* points) {
  int t = threadIdx.x;
  points[t].x = points[t].y = t;
}

__global__ void sum(const Point* points, float* out) {
  int t = threadIdx.x;
  out[t] = points[t].x + points[t].z;  // defect
}

int main() {
  Point* points;
  float* out;
  CHECK(cudaMalloc(&points, 32 * sizeof(Point)));
  CHECK(cudaMalloc(&out, 32 * sizeof(float)));
  write<<<1, 32>>>(points);
  sum<<<1, 32>>>(points, out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(points));
  CHECK(cudaFree(out));
}
