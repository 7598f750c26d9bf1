// title: Volume of the unit ball in up to six dimensions, by Sobol states in kernels
// features: curand_device, quasi_random, skip_ahead, atomics
// flags: -lcurand
#include <cmath>
#include <iostream>

#include <cuda_runtime.h>
#include <curand_kernel.h>

using namespace std;

const int THREADS = 64;
const int BLOCKS = 4;
const int MAX_DIMENSIONS = 6;

void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess) {
    cerr << what << ": " << cudaGetErrorString(error) << endl;
    exit(1);
  }
}

// A thread owns a stretch of the sequence in all dimensions: states[dimension * threads + thread].
__global__ void setup_kernel(curandDirectionVectors32_t *vectors, curandStateSobol32 *states, int dimensions, int points) {
  int id = threadIdx.x + blockIdx.x * blockDim.x;
  int threads = blockDim.x * gridDim.x;
  for (int d = 0; d < dimensions; d++) {
    curand_init(vectors[d], 0, &states[d * threads + id]);
    skipahead((unsigned int)(id * points), &states[d * threads + id]);
  }
}

__global__ void generate_kernel(curandStateSobol32 *states, int dimensions, int points, unsigned int *inside) {
  int id = threadIdx.x + blockIdx.x * blockDim.x;
  int threads = blockDim.x * gridDim.x;
  curandStateSobol32 local[MAX_DIMENSIONS];
  for (int d = 0; d < dimensions; d++) local[d] = states[d * threads + id];
  unsigned int count = 0;
  for (int i = 0; i < points; i++) {
    double squares = 0;
    for (int d = 0; d < dimensions; d++) {
      double x = curand_uniform_double(&local[d]);
      squares += x * x;
    }
    if (squares <= 1.0) count++;
  }
  for (int d = 0; d < dimensions; d++) states[d * threads + id] = local[d];
  atomicAdd(inside, count);
}

double exact_volume(int dimensions) {
  return pow(M_PI, dimensions / 2.0) / tgamma(dimensions / 2.0 + 1.0);
}

int main() {
  const int threads = THREADS * BLOCKS, points = 64;
  curandDirectionVectors32_t *hostVectors, *devVectors;
  curandStateSobol32 *devStates;
  unsigned int *devInside;

  if (curandGetDirectionVectors32(&hostVectors, CURAND_DIRECTION_VECTORS_32_JOEKUO6) != CURAND_STATUS_SUCCESS) return 1;
  check(cudaMalloc((void **)&devVectors, MAX_DIMENSIONS * sizeof(curandDirectionVectors32_t)), "cudaMalloc");
  check(cudaMemcpy(devVectors, hostVectors, MAX_DIMENSIONS * sizeof(curandDirectionVectors32_t), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  check(cudaMalloc((void **)&devStates, threads * MAX_DIMENSIONS * sizeof(curandStateSobol32)), "cudaMalloc");
  check(cudaMalloc((void **)&devInside, sizeof(unsigned int)), "cudaMalloc");

  bool passed = true;
  for (int dimensions = 2; dimensions <= MAX_DIMENSIONS; dimensions += 2) {
    check(cudaMemset(devInside, 0, sizeof(unsigned int)), "cudaMemset");
    setup_kernel<<<BLOCKS, THREADS>>>(devVectors, devStates, dimensions, points);
    generate_kernel<<<BLOCKS, THREADS>>>(devStates, dimensions, points, devInside);
    check(cudaGetLastError(), "launch");
    unsigned int inside = 0;
    check(cudaMemcpy(&inside, devInside, sizeof(inside), cudaMemcpyDeviceToHost), "cudaMemcpy");
    double volume = ldexp((double)inside / (threads * points), dimensions);
    double relative = fabs(volume / exact_volume(dimensions) - 1);
    cout << dimensions << " dimensions: " << inside << " of " << threads * points << " points inside, volume " << volume
         << endl;
    if (relative > 0.02) passed = false;
  }

  cudaFree(devVectors);
  cudaFree(devStates);
  cudaFree(devInside);
  cout << (passed ? "PASSED" : "FAILED") << endl;
  return passed ? 0 : 1;
}
