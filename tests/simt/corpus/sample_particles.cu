// title: Particles in a box: sorted into the cells of a grid, collisions of neighbours
// features: atomics, constant_memory, structs, vector_operators
// args: 512 8

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_ASSERT_OK(x)                                                                     \
  {                                                                                           \
    cudaError_t st = (x);                                                                     \
    if (st != cudaSuccess) {                                                                  \
      fprintf(stderr, "%s failed in line %d: %s\n", #x, __LINE__, cudaGetErrorString(st));    \
      exit(1);                                                                                \
    }                                                                                         \
  }

struct SimParams {
  int particles, grid;  // grid^3 cells
  float cell, radius, spring, damping, dt, gravity;
};
__constant__ SimParams params;

__host__ __device__ inline float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
__host__ __device__ inline float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
__host__ __device__ inline float3 operator*(float3 a, float s) { return make_float3(a.x * s, a.y * s, a.z * s); }
__host__ __device__ inline float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

__device__ int3 cellOf(float3 p) {
  return make_int3(min(max((int)floorf(p.x / params.cell), 0), params.grid - 1),
                   min(max((int)floorf(p.y / params.cell), 0), params.grid - 1),
                   min(max((int)floorf(p.z / params.cell), 0), params.grid - 1));
}
__device__ int hashOf(int3 c) { return (c.z * params.grid + c.y) * params.grid + c.x; }

__global__ void countCells(const float3* pos, int* counts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < params.particles) atomicAdd(&counts[hashOf(cellOf(pos[i]))], 1);
}

__global__ void scanCells(const int* counts, int* starts, int cells) {
  __shared__ int sums[256];
  int per = (cells + 255) / 256, first = threadIdx.x * per, sum = 0;
  for (int c = first; c < min(first + per, cells); c++) sum += counts[c];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    int v = threadIdx.x >= d ? sums[threadIdx.x - d] : 0;
    __syncthreads();
    sums[threadIdx.x] += v;
    __syncthreads();
  }
  int at = sums[threadIdx.x] - sum;
  for (int c = first; c < min(first + per, cells); c++) {
    starts[c] = at;
    at += counts[c];
  }
  if (threadIdx.x == 255) starts[cells] = sums[255];
}

// A cell's particles keep the order of their numbers, so that sums do not depend on the order of threads.
__global__ void fillCells(const float3* pos, const int* starts, int* members, int cells) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cells || starts[c] == starts[c + 1]) return;
  int at = starts[c];
  for (int i = 0; i < params.particles; i++)
    if (hashOf(cellOf(pos[i])) == c) members[at++] = i;
}

__global__ void collide(const float3* pos, const float3* vel, float3* newVel, const int* starts, const int* members, int* contacts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= params.particles) return;
  int3 c = cellOf(pos[i]);
  float3 force = make_float3(0, 0, 0);
  int touching = 0;
  for (int z = max(c.z - 1, 0); z <= min(c.z + 1, params.grid - 1); z++)
    for (int y = max(c.y - 1, 0); y <= min(c.y + 1, params.grid - 1); y++)
      for (int x = max(c.x - 1, 0); x <= min(c.x + 1, params.grid - 1); x++) {
        int h = hashOf(make_int3(x, y, z));
        for (int k = starts[h]; k < starts[h + 1]; k++) {
          int j = members[k];
          if (j == i) continue;
          float3 d = pos[j] - pos[i];
          float dist = sqrtf(dot(d, d));
          if (dist < 2 * params.radius) {
            float3 n = d * (1 / dist);
            force = force + n * (-params.spring * (2 * params.radius - dist)) + (vel[j] - vel[i]) * params.damping;
            touching++;
          }
        }
      }
  newVel[i] = vel[i] + force;
  contacts[i] = touching;
}

__global__ void integrate(float3* pos, float3* vel) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= params.particles) return;
  float3 v = vel[i], p;
  v.y -= params.gravity * params.dt;
  p = pos[i] + v * params.dt;
  float top = params.grid * params.cell - params.radius;
  if (p.x < params.radius) p.x = params.radius, v.x *= -0.5f;
  if (p.y < params.radius) p.y = params.radius, v.y *= -0.5f;
  if (p.z < params.radius) p.z = params.radius, v.z *= -0.5f;
  if (p.x > top) p.x = top, v.x *= -0.5f;
  if (p.y > top) p.y = top, v.y *= -0.5f;
  if (p.z > top) p.z = top, v.z *= -0.5f;
  pos[i] = p;
  vel[i] = v;
}

struct Vec { double x, y, z; };

int main(int argc, char** argv) {
  SimParams h = {argc > 1 ? atoi(argv[1]) : 512, 8, 0.125f, 0.0625f, 0.5f, 0.02f, 0.01f, 1.0f};
  const int steps = argc > 2 ? atoi(argv[2]) : 8, n = h.particles, cells = h.grid * h.grid * h.grid;
  std::vector<float3> pos(n), vel(n);
  for (int i = 0; i < n; i++) {
    auto u = [&](int k) { return (float)((i * k + i * i * 3) % 1999) / 1999 * 0.8f + 0.1f; };
    pos[i] = make_float3(u(17), u(59) * 0.5f + 0.06f, u(101));
    vel[i] = make_float3(0, 0, (i % 3 - 1) * 0.1f);
  }
  float3 *dp, *dv, *dw;
  int *counts, *starts, *members, *contacts;
  CUDA_ASSERT_OK(cudaMemcpyToSymbol(params, &h, sizeof h));
  CUDA_ASSERT_OK(cudaMalloc(&dp, n * sizeof(float3)));
  CUDA_ASSERT_OK(cudaMalloc(&dv, n * sizeof(float3)));
  CUDA_ASSERT_OK(cudaMalloc(&dw, n * sizeof(float3)));
  CUDA_ASSERT_OK(cudaMalloc(&counts, cells * sizeof(int)));
  CUDA_ASSERT_OK(cudaMalloc(&starts, (cells + 1) * sizeof(int)));
  CUDA_ASSERT_OK(cudaMalloc(&members, n * sizeof(int)));
  CUDA_ASSERT_OK(cudaMalloc(&contacts, n * sizeof(int)));
  CUDA_ASSERT_OK(cudaMemcpy(dp, pos.data(), n * sizeof(float3), cudaMemcpyHostToDevice));
  CUDA_ASSERT_OK(cudaMemcpy(dv, vel.data(), n * sizeof(float3), cudaMemcpyHostToDevice));
  const int threads = 64, blocks = (n + threads - 1) / threads;
  std::vector<int> first(n);
  std::vector<float3> got(n);
  for (int s = 0; s < steps; s++) {
    CUDA_ASSERT_OK(cudaMemset(counts, 0, cells * sizeof(int)));
    countCells<<<blocks, threads>>>(dp, counts);
    scanCells<<<1, 256>>>(counts, starts, cells);
    fillCells<<<(cells + threads - 1) / threads, threads>>>(dp, starts, members, cells);
    collide<<<blocks, threads>>>(dp, dv, dw, starts, members, contacts);
    integrate<<<blocks, threads>>>(dp, dw);
    CUDA_ASSERT_OK(cudaGetLastError());
    std::swap(dv, dw);
    if (s == 0) {
      CUDA_ASSERT_OK(cudaMemcpy(first.data(), contacts, n * sizeof(int), cudaMemcpyDeviceToHost));
      CUDA_ASSERT_OK(cudaMemcpy(got.data(), dv, n * sizeof(float3), cudaMemcpyDeviceToHost));
    }
  }
  std::vector<float3> last(n);
  CUDA_ASSERT_OK(cudaMemcpy(last.data(), dp, n * sizeof(float3), cudaMemcpyDeviceToHost));
  void* all[] = {dp, dv, dw, counts, starts, members, contacts};
  for (void* p : all) CUDA_ASSERT_OK(cudaFree(p));

  int wrong = 0, pairs = 0, outside = 0;
  double worst = 0;
  for (int i = 0; i < n; i++) {
    Vec f = {vel[i].x, vel[i].y - (double)h.gravity * h.dt, vel[i].z};
    int touching = 0;
    for (int j = 0; j < n; j++) {
      double x = (double)pos[j].x - pos[i].x, y = (double)pos[j].y - pos[i].y, z = (double)pos[j].z - pos[i].z;
      double d = sqrt(x * x + y * y + z * z);
      if (j == i || d >= 2 * h.radius) continue;
      double push = -h.spring * (2 * h.radius - d) / d;
      f.x += push * x + h.damping * ((double)vel[j].x - vel[i].x);
      f.y += push * y + h.damping * ((double)vel[j].y - vel[i].y);
      f.z += push * z + h.damping * ((double)vel[j].z - vel[i].z);
      touching++;
    }
    wrong += touching != first[i];
    pairs += touching;
    bool wall = fabs(got[i].x - f.x) > 1e-4 || fabs(got[i].y - f.y) > 1e-4 || fabs(got[i].z - f.z) > 1e-4;
    if (wall) outside++;  // a wall turned it round: it moves at half the speed
    if (!wall) worst = fmax(worst, fabs(got[i].y - f.y));
    float3 p = last[i];
    float top = h.grid * h.cell;
    wrong += !(p.x > 0 && p.x < top && p.y > 0 && p.y < top && p.z > 0 && p.z < top);
  }
  printf("%d particles, %d contacts at the start, %d touched a wall\n", n, pairs / 2, outside);
  bool ok = wrong == 0 && pairs > 0 && outside < n / 2;
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
