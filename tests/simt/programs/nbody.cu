/*
N-body: every body attracts every other one; positions and velocities after some steps.

    nvcc -std=c++17 -arch=native nbody.cu -o nbody && ./nbody [bodies] [steps]
    python -m simt run nbody.cu [bodies] [steps]

version 1: each thread reads all bodies from global memory
version 2: a block reads a tile of bodies into shared memory, one each thread, and all its threads use it
A body is a float4: x, y, z and its mass, one 16-byte load. Sums of floats depend on their order and rsqrtf on the
device: results are compared with a tolerance, and printed with few digits.
*/

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    cudaError_t code = (call);                                                                          \
    if (code != cudaSuccess) {                                                                          \
      fprintf(stderr, "line %d: %s failed: %s\n", __LINE__, #call, cudaGetErrorString(code));           \
      exit(1);                                                                                          \
    }                                                                                                   \
  } while (0)

constexpr float SOFTENING = 0.01f;      // squared: two bodies in one place do not attract each other infinitely
constexpr float STEP = 0.01f;
constexpr int BLOCK = 128;

// ---- CPU reference, in double precision ----

struct Body {
  double x, y, z, mass, vx, vy, vz;
};

void step_cpu(std::vector<Body>& bodies) {
  for (Body& a : bodies) {
    double ax = 0, ay = 0, az = 0;
    for (const Body& b : bodies) {
      double dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
      double r2 = dx * dx + dy * dy + dz * dz + SOFTENING;
      double s = b.mass / (r2 * sqrt(r2));
      ax += dx * s, ay += dy * s, az += dz * s;
    }
    a.vx += ax * STEP, a.vy += ay * STEP, a.vz += az * STEP;
  }
  for (Body& a : bodies) a.x += a.vx * STEP, a.y += a.vy * STEP, a.z += a.vz * STEP;
}

// ---- kernels ----

__device__ __forceinline__ float3 attraction(float3 sum, float4 a, float4 b) {
  float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
  float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
  float s = b.w * inverse * inverse * inverse;
  return make_float3(sum.x + dx * s, sum.y + dy * s, sum.z + dz * s);
}

__device__ void kick(float4* velocities, int i, float3 a) {
  velocities[i].x += a.x * STEP;
  velocities[i].y += a.y * STEP;
  velocities[i].z += a.z * STEP;
}

__global__ void kick_global(const float4* bodies, float4* velocities, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 own = bodies[i];
  float3 a = make_float3(0, 0, 0);
  for (int j = 0; j < n; j++) a = attraction(a, own, bodies[j]);
  kick(velocities, i, a);
}

__global__ void kick_tiled(const float4* bodies, float4* velocities, int n) {
  extern __shared__ float4 tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 own = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
  float3 a = make_float3(0, 0, 0);
  for (int start = 0; start < n; start += blockDim.x) {
    int j = start + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);      // no mass, no attraction
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < blockDim.x; k++) a = attraction(a, own, tile[k]);
    __syncthreads();
  }
  if (i < n) kick(velocities, i, a);
}

__global__ void drift(float4* bodies, const float4* velocities, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bodies[i].x += velocities[i].x * STEP;
  bodies[i].y += velocities[i].y * STEP;
  bodies[i].z += velocities[i].z * STEP;
}

// ---- host ----

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 300, steps = argc > 2 ? atoi(argv[2]) : 5;
  std::vector<Body> expected(n);
  unsigned random = 42;
  auto uniform = [&] { return ((random = random * 1664525 + 1013904223) >> 8) / 8388608.0 - 1; };      // in [-1, 1)
  for (Body& b : expected) b = {(float)uniform(), (float)uniform(), (float)uniform(), 1.0 / n, 0, 0, 0};
  std::vector<float4> start(n), bodies(n), velocities(n);
  for (int i = 0; i < n; i++) start[i] = make_float4(expected[i].x, expected[i].y, expected[i].z, expected[i].mass);
  for (int s = 0; s < steps; s++) step_cpu(expected);

  float4 *d_bodies, *d_velocities;
  CHECK(cudaMalloc(&d_bodies, n * sizeof(float4)));
  CHECK(cudaMalloc(&d_velocities, n * sizeof(float4)));
  int failures = 0;
  for (int version = 1; version <= 2; version++) {
    CHECK(cudaMemcpy(d_bodies, start.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_velocities, 0, n * sizeof(float4)));
    int blocks = (n + BLOCK - 1) / BLOCK;
    for (int s = 0; s < steps; s++) {
      if (version == 1) kick_global<<<blocks, BLOCK>>>(d_bodies, d_velocities, n);
      else kick_tiled<<<blocks, BLOCK, BLOCK * sizeof(float4)>>>(d_bodies, d_velocities, n);
      CHECK(cudaGetLastError());
      drift<<<blocks, BLOCK>>>(d_bodies, d_velocities, n);
      CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpy(bodies.data(), d_bodies, n * sizeof(float4), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(velocities.data(), d_velocities, n * sizeof(float4), cudaMemcpyDeviceToHost));
    double worst = 0, energy = 0, spread = 0;
    for (int i = 0; i < n; i++) {
      const Body& e = expected[i];
      worst = std::fmax(worst, std::fabs(bodies[i].x - e.x) + std::fabs(bodies[i].y - e.y) + std::fabs(bodies[i].z - e.z));
      float4 v = velocities[i], b = bodies[i];
      energy += 0.5 * e.mass * (v.x * v.x + v.y * v.y + v.z * v.z);
      spread += b.x * b.x + b.y * b.y + b.z * b.z;
    }
    bool ok = worst < 1e-5;      // also false for a NaN
    failures += !ok;
    printf("version %d, %d bodies, %d steps: %s, kinetic energy %.3e, spread %.4f\n", version, n, steps, ok ? "ok" : "WRONG", energy, spread / n);
  }
  CHECK(cudaFree(d_bodies));
  CHECK(cudaFree(d_velocities));
  return failures;
}
