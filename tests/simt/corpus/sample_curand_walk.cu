// title: Random walks on a lattice, the same with XORWOW and MRG32k3a through a template
// features: curand_device, templates, managed_memory, atomics

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include <curand_kernel.h>

static void must(cudaError_t code, int line) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(code));
  std::exit(1);
}
#define MUST(x) must((x), __LINE__)

struct Tally {
  long long steps, distance2, origin;
  int histogram[4];
};

// Each walker makes as many unit steps in one of four directions, drawn from the upper bits of a random word.
template <typename State>
__global__ void walk(Tally* tally, int walkers, int steps, unsigned long long seed) {
  for (int w = blockIdx.x * blockDim.x + threadIdx.x; w < walkers; w += gridDim.x * blockDim.x) {
    State rng;
    curand_init(seed, w, 0, &rng);
    int x = 0, y = 0, returned = 0, local[4] = {0, 0, 0, 0};
    for (int s = 0; s < steps; s++) {
      unsigned int bits = curand(&rng) >> 29;  // both generators give at least 31 good bits
      int dir = bits & 3;
      local[dir]++;
      x += dir == 0 ? 1 : dir == 1 ? -1 : 0;
      y += dir == 2 ? 1 : dir == 3 ? -1 : 0;
      returned += x == 0 && y == 0;
    }
    atomicAdd((unsigned long long*)&tally->steps, (unsigned long long)steps);
    atomicAdd((unsigned long long*)&tally->distance2, (unsigned long long)(x * x + y * y));
    atomicAdd((unsigned long long*)&tally->origin, (unsigned long long)returned);
    for (int d = 0; d < 4; d++) atomicAdd(&tally->histogram[d], local[d]);
  }
}

template <typename State>
bool simulate(const char* name, int walkers, int steps) {
  Tally* tally;
  MUST(cudaMallocManaged(&tally, sizeof(Tally)));
  *tally = Tally{};
  walk<State><<<8, 64>>>(tally, walkers, steps, 2024);
  MUST(cudaGetLastError());
  MUST(cudaDeviceSynchronize());
  double mean = (double)tally->distance2 / walkers;  // expected: the number of steps
  double sigma = steps * 1.0 / std::sqrt((double)walkers);
  bool ok = tally->steps == (long long)walkers * steps && std::fabs(mean - steps) < 5 * sigma;
  double expected = walkers * (double)steps / 4;
  int sum = 0;
  for (int n : tally->histogram) {
    ok = ok && std::fabs(n - expected) < 5 * std::sqrt(expected * 0.75);
    sum += n;
  }
  ok = ok && sum == walkers * steps;
  std::printf("%-10s mean squared distance %.2f, %lld visits of the origin, %d %d %d %d\n", name, mean, tally->origin,
              tally->histogram[0], tally->histogram[1], tally->histogram[2], tally->histogram[3]);
  MUST(cudaFree(tally));
  return ok;
}

int main() {
  const int walkers = 1000, steps = 100;
  bool ok = simulate<curandStateXORWOW_t>("XORWOW", walkers, steps);
  ok = simulate<curandStateMRG32k3a_t>("MRG32k3a", walkers, steps) && ok;
  ok = simulate<curandStatePhilox4_32_10_t>("Philox", walkers, steps) && ok;
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
