// title: sum of matrices with one-, two- and three-dimensional grids and blocks
// features: thread_indexing, vector_basics

#include "cuda_runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define CHECK(call)                                                          \
  {                                                                          \
    const cudaError_t error = call;                                          \
    if (error != cudaSuccess) {                                              \
      fprintf(stderr, "Error: %s:%d, ", __FILE__, __LINE__);                 \
      fprintf(stderr, "code: %d, reason: %s\n", error, cudaGetErrorString(error)); \
      exit(1);                                                               \
    }                                                                        \
  }

double seconds() {
  struct timeval tp;
  gettimeofday(&tp, NULL);
  return (double)tp.tv_sec + (double)tp.tv_usec * 1.e-6;
}

void initialData(int *ip, int size, int seed) {
  for (int i = 0; i < size; i++) ip[i] = (int)((i * 2654435761u + seed) >> 24);
}

void sumMatrixOnHost(int *A, int *B, int *C, const int nx, const int ny) {
  int *ia = A, *ib = B, *ic = C;
  for (int iy = 0; iy < ny; iy++) {
    for (int ix = 0; ix < nx; ix++) ic[ix] = ia[ix] + ib[ix];
    ia += nx;
    ib += nx;
    ic += nx;
  }
}

// 2-D grid, 2-D block
__global__ void sumMatrixOnGPU2D(int *A, int *B, int *C, int nx, int ny) {
  unsigned int ix = threadIdx.x + blockIdx.x * blockDim.x;
  unsigned int iy = threadIdx.y + blockIdx.y * blockDim.y;
  unsigned int idx = iy * nx + ix;
  if (ix < nx && iy < ny) C[idx] = A[idx] + B[idx];
}

// 1-D grid, 1-D block: a thread adds a column
__global__ void sumMatrixOnGPU1D(int *A, int *B, int *C, int nx, int ny) {
  unsigned int ix = threadIdx.x + blockIdx.x * blockDim.x;
  if (ix < nx)
    for (int iy = 0; iy < ny; iy++) {
      int idx = iy * nx + ix;
      C[idx] = A[idx] + B[idx];
    }
}

// 2-D grid, 1-D block
__global__ void sumMatrixOnGPUMix(int *A, int *B, int *C, int nx, int ny) {
  unsigned int ix = threadIdx.x + blockIdx.x * blockDim.x;
  unsigned int iy = blockIdx.y;
  unsigned int idx = iy * nx + ix;
  if (ix < nx && iy < ny) C[idx] = A[idx] + B[idx];
}

// 3-D grid, 3-D block, flattened to one index by hand
__global__ void sumFlat3D(int *A, int *B, int *C, int total) {
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int idx = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  if (idx < total) C[idx] = A[idx] + B[idx];
}

int checkResult(const char *what, int *hostRef, int *gpuRef, const int N) {
  long long sum = 0;
  for (int i = 0; i < N; i++) {
    if (hostRef[i] != gpuRef[i]) {
      printf("%s: host %d gpu %d at %d: arrays do not match.\n", what, hostRef[i], gpuRef[i], i);
      return 0;
    }
    sum += gpuRef[i] * (i % 7 + 1LL);
  }
  printf("%-12s arrays match, checksum %lld\n", what, sum);
  return 1;
}

int main(int argc, char **argv) {
  int nx = 1 << 7, ny = (1 << 6) + 3;
  if (argc > 1) nx = atoi(argv[1]);
  if (argc > 2) ny = atoi(argv[2]);
  int nxy = nx * ny, nBytes = nxy * sizeof(int), matches = 0;
  printf("Matrix size: nx %d ny %d\n", nx, ny);

  int *h_A = (int *)malloc(nBytes), *h_B = (int *)malloc(nBytes);
  int *hostRef = (int *)malloc(nBytes), *gpuRef = (int *)malloc(nBytes);
  initialData(h_A, nxy, 1);
  initialData(h_B, nxy, 77);
  double iStart = seconds();
  sumMatrixOnHost(h_A, h_B, hostRef, nx, ny);
  fprintf(stderr, "sumMatrixOnHost elapsed %f sec\n", seconds() - iStart);

  int *d_MatA = NULL, *d_MatB = NULL, *d_MatC = NULL;
  CHECK(cudaMalloc((void **)&d_MatA, nBytes));
  CHECK(cudaMalloc((void **)&d_MatB, nBytes));
  CHECK(cudaMalloc((void **)&d_MatC, nBytes));
  CHECK(cudaMemcpy(d_MatA, h_A, nBytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_MatB, h_B, nBytes, cudaMemcpyHostToDevice));

  for (int layout = 0; layout < 4; layout++) {
    CHECK(cudaMemset(d_MatC, 0xff, nBytes));
    const char *names[] = {"grid2d", "grid1d", "mixed", "flat3d"};
    dim3 block, grid;
    iStart = seconds();
    switch (layout) {
      case 0:
        block = dim3(32, 16);
        grid = dim3((nx + block.x - 1) / block.x, (ny + block.y - 1) / block.y);
        sumMatrixOnGPU2D<<<grid, block>>>(d_MatA, d_MatB, d_MatC, nx, ny);
        break;
      case 1:
        block.x = 48;
        grid.x = (nx + block.x - 1) / block.x;
        sumMatrixOnGPU1D<<<grid, block>>>(d_MatA, d_MatB, d_MatC, nx, ny);
        break;
      case 2:
        block.x = 96;
        grid.x = (nx + block.x - 1) / block.x;
        grid.y = ny;
        sumMatrixOnGPUMix<<<grid, block>>>(d_MatA, d_MatB, d_MatC, nx, ny);
        break;
      default: {
        block = {4, 5, 6};
        int per = block.x * block.y * block.z, blocks = (nxy + per - 1) / per;
        grid = {2, 3, static_cast<unsigned>((blocks + 5) / 6)};
        sumFlat3D<<<grid, block>>>(d_MatA, d_MatB, d_MatC, nxy);
      }
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    fprintf(stderr, "%s <<<(%d,%d,%d), (%d,%d,%d)>>> elapsed %f sec\n", names[layout], grid.x, grid.y, grid.z, block.x,
            block.y, block.z, seconds() - iStart);
    memset(gpuRef, 0, nBytes);
    CHECK(cudaMemcpy(gpuRef, d_MatC, nBytes, cudaMemcpyDeviceToHost));
    matches += checkResult(names[layout], hostRef, gpuRef, nxy);
  }

  CHECK(cudaFree(d_MatA));
  CHECK(cudaFree(d_MatB));
  CHECK(cudaFree(d_MatC));
  free(h_A);
  free(h_B);
  free(hostRef);
  free(gpuRef);
  CHECK(cudaDeviceReset());
  puts(matches == 4 ? "PASSED" : "FAILED");
  return matches == 4 ? 0 : 1;
}
