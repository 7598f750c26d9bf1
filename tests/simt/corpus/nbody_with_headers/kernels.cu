#include "bodies.h"
#include "vec3.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#define CUDA_DIE(x)                                                                                \
  do {                                                                                             \
    const cudaError_t s = (x);                                                                     \
    if (s != cudaSuccess) std::fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(s)), std::exit(1); \
  } while (0)

int launches = 0;

namespace {

constexpr int kBlock = 64;
__constant__ float softening;

__device__ vec3<float> pull(const vec3<float> &at, const float4 &other) {
  const vec3<float> r = vec3<float>(other) - at;
  const float inverse = rsqrtf(dot(r, r) + softening);
  return (other.w * inverse * inverse * inverse) * r;
}

__device__ void move(const vec3<float> &force, float4 at, float4 v, float dt, float4 *position, float4 *velocity) {
  const vec3<float> speed = vec3<float>(v) + dt * force, place = vec3<float>(at) + dt * speed;
  *velocity = make_float4(speed.x, speed.y, speed.z, 0);
  *position = make_float4(place.x, place.y, place.z, at.w);
}

__global__ void step_plain(int n, const float4 *old, float4 *position, float4 *velocity, float dt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  vec3<float> force;
  const vec3<float> here(old[i]);
  for (int j = 0; j < n; j++) force += pull(here, old[j]);
  move(force, old[i], velocity[i], dt, &position[i], &velocity[i]);
}

__global__ void step_tiled(int n, const float4 *old, float4 *position, float4 *velocity, float dt) {
  __shared__ float4 tile[kBlock];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 own = i < n ? old[i] : make_float4(0, 0, 0, 0);
  const vec3<float> here(own);
  vec3<float> force;
  for (int start = 0; start < n; start += kBlock) {
    const int j = start + threadIdx.x;
    tile[threadIdx.x] = j < n ? old[j] : make_float4(0, 0, 0, 0);  // no mass, no pull
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kBlock; k++) force += pull(here, tile[k]);
    __syncthreads();
  }
  if (i < n) move(force, own, velocity[i], dt, &position[i], &velocity[i]);
}

}  // namespace

void simulate_on_gpu(Bodies &bodies, int steps, Method method) {
  const int n = bodies.count();
  const size_t bytes = n * sizeof(float4);
  float4 *old, *next, *velocity;
  CUDA_DIE(cudaMalloc(&old, bytes));
  CUDA_DIE(cudaMalloc(&next, bytes));
  CUDA_DIE(cudaMalloc(&velocity, bytes));
  CUDA_DIE(cudaMemcpy(old, bodies.position.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_DIE(cudaMemcpy(velocity, bodies.velocity.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_DIE(cudaMemcpyToSymbol(softening, &kSoftening, sizeof(float)));
  const auto kernel = method == Method::plain ? step_plain : step_tiled;
  for (int s = 0; s < steps; s++) {
    kernel<<<(n + kBlock - 1) / kBlock, kBlock>>>(n, old, next, velocity, kTimeStep);
    CUDA_DIE(cudaGetLastError());
    launches++;
    std::swap(old, next);
  }
  CUDA_DIE(cudaMemcpy(bodies.position.data(), old, bytes, cudaMemcpyDeviceToHost));
  CUDA_DIE(cudaMemcpy(bodies.velocity.data(), velocity, bytes, cudaMemcpyDeviceToHost));
  CUDA_DIE(cudaFree(old));
  CUDA_DIE(cudaFree(next));
  CUDA_DIE(cudaFree(velocity));
}
