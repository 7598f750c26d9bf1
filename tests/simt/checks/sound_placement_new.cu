// check: sound
// near: uninitialized
// what: objects with virtual functions are made in place, in shared memory and in a buffer of bytes

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#include <new>

struct Shape {
  float side;
  __device__ Shape(float s) : side(s) {}
  __device__ virtual float area() const { return side; }
};
struct Square : Shape {
  __device__ Square(float s) : Shape(s) {}
  __device__ float area() const override { return side * side; }
};

__global__ void make(char* room) { new (room + threadIdx.x * sizeof(Square)) Square(threadIdx.x); }

__global__ void measure(const char* room, float* out) {
  __shared__ alignas(16) char copies[32 * sizeof(Square)];
  int t = threadIdx.x;
  const Shape* shape = (const Shape*)(room + t * sizeof(Square));
  new (copies + t * sizeof(Square)) Square(shape->area());
  __syncthreads();
  out[t] = ((const Shape*)(copies + (31 - t) * sizeof(Square)))->area();
}

int main() {
  float host[32], *out;
  char* room;
  CHECK(cudaMalloc(&room, 32 * sizeof(Square)));
  CHECK(cudaMalloc(&out, sizeof host));
  make<<<1, 32>>>(room);
  measure<<<1, 32>>>(room, out);
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%g\n", host[0]);
  CHECK(cudaFree(room));
  CHECK(cudaFree(out));
}
