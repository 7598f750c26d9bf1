// title: Monte-Carlo estimate of pi with one Philox sequence per thread
// features: curand_device, shared_memory, atomics
// args: 64

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <cuda_runtime.h>
#include <curand_kernel.h>

#define CUDA_CALL(x)                                          \
  do {                                                        \
    if ((x) != cudaSuccess) {                                 \
      printf("Error at %s:%d\n", __FILE__, __LINE__);         \
      return EXIT_FAILURE;                                    \
    }                                                         \
  } while (0)

__global__ void setup_kernel(curandStatePhilox4_32_10_t* state, unsigned long long seed) {
  int id = threadIdx.x + blockIdx.x * blockDim.x;
  curand_init(seed, id, 0, &state[id]);
}

__global__ void count_hits(curandStatePhilox4_32_10_t* state, int rounds, unsigned long long* hits) {
  __shared__ unsigned int partial[128];
  int id = threadIdx.x + blockIdx.x * blockDim.x;
  curandStatePhilox4_32_10_t local = state[id];
  unsigned int count = 0;
  for (int i = 0; i < rounds; i++) {
    float4 r = curand_uniform4(&local);  // two points
    // Explicitly rounded products: a fused multiply-add could decide a point on the circle differently.
    count += __fadd_rn(__fmul_rn(r.x, r.x), __fmul_rn(r.y, r.y)) <= 1.0f;
    count += __fadd_rn(__fmul_rn(r.z, r.z), __fmul_rn(r.w, r.w)) <= 1.0f;
  }
  state[id] = local;
  partial[threadIdx.x] = count;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(hits, (unsigned long long)partial[0]);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 64;
  const int blocks = 16, threads = 128, total = blocks * threads;
  curandStatePhilox4_32_10_t* states;
  unsigned long long *d_hits, hits[2];
  CUDA_CALL(cudaMalloc((void**)&states, total * sizeof(*states)));
  CUDA_CALL(cudaMalloc((void**)&d_hits, sizeof(*d_hits)));
  setup_kernel<<<blocks, threads>>>(states, 1234ULL);
  CUDA_CALL(cudaGetLastError());
  // The second run goes on where the first one stopped, so it finds other points.
  for (int run = 0; run < 2; run++) {
    CUDA_CALL(cudaMemset(d_hits, 0, sizeof(*d_hits)));
    count_hits<<<blocks, threads>>>(states, rounds, d_hits);
    CUDA_CALL(cudaGetLastError());
    CUDA_CALL(cudaMemcpy(&hits[run], d_hits, sizeof(*d_hits), cudaMemcpyDeviceToHost));
  }
  const double points = 2.0 * rounds * total;
  bool ok = hits[0] != hits[1];
  for (int run = 0; run < 2; run++) {
    double pi = 4.0 * hits[run] / points;
    double sigma = 4.0 * sqrt(M_PI / 4 * (1 - M_PI / 4) / points);
    std::cout << "run " << run << ": " << hits[run] << " of " << (long long)points << " points inside" << std::endl;
    ok = ok && fabs(pi - M_PI) < 5 * sigma;
  }
  CUDA_CALL(cudaFree(states));
  CUDA_CALL(cudaFree(d_hits));
  std::cout << (ok ? "PASSED" : "FAILED") << std::endl;
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
