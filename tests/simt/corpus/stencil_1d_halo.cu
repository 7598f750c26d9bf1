// title: one-dimensional stencil of radius 4 with halo in shared memory and coefficients in constant memory
// features: stencils, constant_memory, shared_memory

#include <stdio.h>
#include <stdlib.h>

#define RADIUS 4
#define BDIM 128

// FD coefficients
#define a0 0.00000f
#define a1 0.80000f
#define a2 -0.20000f
#define a3 0.03809f
#define a4 -0.00357f

#define CHECK(call)                                                                         \
  do {                                                                                      \
    cudaError_t err = call;                                                                 \
    if (err != cudaSuccess) {                                                               \
      printf("%s in %s at line %d\n", cudaGetErrorString(err), __FILE__, __LINE__);         \
      exit(EXIT_FAILURE);                                                                   \
    }                                                                                       \
  } while (0)

__constant__ float coef[RADIUS + 1];

void setup_coef_constant(void) {
  const float h_coef[] = {a0, a1, a2, a3, a4};
  CHECK(cudaMemcpyToSymbol(coef, h_coef, (RADIUS + 1) * sizeof(float)));
}

__global__ void stencil_1d(float *in, float *out, int N) {
  __shared__ float smem[BDIM + 2 * RADIUS];
  int idx = blockIdx.x * blockDim.x + threadIdx.x;

  while (idx < N) {
    int sidx = threadIdx.x + RADIUS;
    smem[sidx] = in[idx];
    if (threadIdx.x < RADIUS) {
      smem[sidx - RADIUS] = in[idx - RADIUS];
      smem[sidx + BDIM] = in[idx + BDIM];
    }
    __syncthreads();
    float tmp = 0.0f;
#pragma unroll
    for (int i = 1; i <= RADIUS; i++) tmp += coef[i] * (smem[sidx + i] - smem[sidx - i]);
    out[idx] = tmp;
    __syncthreads();
    idx += gridDim.x * blockDim.x;
  }
}

__global__ void stencil_1d_read_only(float *in, float *out, int N, const float *__restrict__ dcoef) {
  __shared__ float smem[BDIM + 2 * RADIUS];
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= N) return;
  int sidx = threadIdx.x + RADIUS;
  smem[sidx] = __ldg(in + idx);
  if (threadIdx.x < RADIUS) {
    smem[sidx - RADIUS] = __ldg(&in[idx - RADIUS]);
    smem[sidx + BDIM] = __ldg(&in[idx + BDIM]);
  }
  __syncthreads();
  float tmp = 0.0f;
  for (int i = 1; i <= RADIUS; i++) tmp += dcoef[i] * (smem[sidx + i] - smem[sidx - i]);
  out[idx] = tmp;
}

int compare(const float *in, const float *out, int n, const char *name) {
  const double c[] = {a0, a1, a2, a3, a4};
  double worst = 0, sum = 0;
  for (int i = 0; i < n; i++) {
    double expected = 0;
    for (int r = 1; r <= RADIUS; r++) expected += c[r] * ((double)in[i + r] - in[i - r]);
    double difference = expected - out[i];
    if (difference < 0) difference = -difference;
    if (difference > worst) worst = difference;
    sum += out[i];
  }
  printf("%s: sum %.2f, within tolerance: %s\n", name, sum, worst < 1e-3 ? "yes" : "no");
  return worst < 1e-3;
}

int main(int argc, char **argv) {
  int isize = 1 << 12;  // a multiple of BDIM
  size_t nBytes = (isize + 2 * RADIUS) * sizeof(float);
  float *h_in = (float *)malloc(nBytes), *gpuRef = (float *)malloc(nBytes);
  for (int i = 0; i < isize + 2 * RADIUS; i++) h_in[i] = (float)((i * i) % 97) / 10.0f;

  float *d_in, *d_out, *d_coef;
  CHECK(cudaMalloc((void **)&d_in, nBytes));
  CHECK(cudaMalloc((void **)&d_out, nBytes));
  CHECK(cudaMalloc((void **)&d_coef, (RADIUS + 1) * sizeof(float)));
  CHECK(cudaMemcpy(d_in, h_in, nBytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, nBytes));
  setup_coef_constant();
  CHECK(cudaMemcpyFromSymbol(gpuRef, coef, 2 * sizeof(float), sizeof(float)));
  printf("coefficients 1 and 2: %.2f %.2f\n", gpuRef[0], gpuRef[1]);
  void *address;
  CHECK(cudaGetSymbolAddress(&address, coef));
  CHECK(cudaMemcpy(d_coef, address, (RADIUS + 1) * sizeof(float), cudaMemcpyDeviceToDevice));

  dim3 block(BDIM, 1), grid(isize / block.x / 4, 1);
  stencil_1d<<<grid, block>>>(d_in + RADIUS, d_out + RADIUS, isize);
  CHECK(cudaMemcpy(gpuRef, d_out, nBytes, cudaMemcpyDeviceToHost));
  int good = compare(h_in + RADIUS, gpuRef + RADIUS, isize, "constant ");

  CHECK(cudaMemset(d_out, 0, nBytes));
  stencil_1d_read_only<<<isize / BDIM, block>>>(d_in + RADIUS, d_out + RADIUS, isize, d_coef);
  CHECK(cudaMemcpy(gpuRef, d_out, nBytes, cudaMemcpyDeviceToHost));
  good &= compare(h_in + RADIUS, gpuRef + RADIUS, isize, "read-only");

  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  CHECK(cudaFree(d_coef));
  free(h_in);
  free(gpuRef);
  CHECK(cudaDeviceReset());
  printf(good ? "PASSED\n" : "FAILED\n");
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
