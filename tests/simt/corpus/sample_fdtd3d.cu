// title: FDTD in three dimensions: a stencil of radius 4, tile in shared memory, the column in registers
// features: shared_memory, constant_memory, launch_bounds, loop_unrolling
// args: 32 20 16 3

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <cuda_runtime.h>

#define RADIUS 4
#define BLOCK_X 16
#define BLOCK_Y 8

#define CHK(e)                                                                             \
  {                                                                                        \
    cudaError_t const r = (e);                                                             \
    if (r != cudaSuccess) {                                                                \
      std::cerr << "CUDA error: " << cudaGetErrorString(r) << " at " << __LINE__ << '\n';  \
      std::exit(EXIT_FAILURE);                                                             \
    }                                                                                      \
  }

__constant__ float stencil[RADIUS + 1];

// The volume has RADIUS zero cells on every side. A block marches along z.
__launch_bounds__(BLOCK_X* BLOCK_Y) __global__
    void FiniteDifferences3D(float* output, const float* input, const int dimx, const int dimy, const int dimz) {
  __shared__ float tile[BLOCK_Y + 2 * RADIUS][BLOCK_X + 2 * RADIUS];
  const int x = blockIdx.x * BLOCK_X + threadIdx.x, y = blockIdx.y * BLOCK_Y + threadIdx.y;
  const int strideY = dimx + 2 * RADIUS, strideZ = strideY * (dimy + 2 * RADIUS);
  const int tx = threadIdx.x + RADIUS, ty = threadIdx.y + RADIUS;
  const bool valid = x < dimx && y < dimy;
  int at = (y + RADIUS) * strideY + x + RADIUS;  // in plane 0
  float behind[RADIUS], infront[RADIUS], current = 0;
  for (int k = 0; k < RADIUS; k++) behind[k] = infront[k] = 0;
  if (valid) {
    for (int k = RADIUS - 2; k >= 0; k--, at += strideZ) behind[k] = input[at];  // behind[0] is the nearest
    current = input[at];
    at += strideZ;
    for (int k = 0; k < RADIUS; k++, at += strideZ) infront[k] = input[at];
  }
  int out = (y + RADIUS) * strideY + x + RADIUS + (RADIUS - 1) * strideZ;
#pragma unroll 3
  for (int iz = 0; iz < dimz; iz++) {
    for (int k = RADIUS - 1; k > 0; k--) behind[k] = behind[k - 1];
    behind[0] = current;
    current = infront[0];
#pragma unroll
    for (int k = 0; k < RADIUS - 1; k++) infront[k] = infront[k + 1];
    if (valid) infront[RADIUS - 1] = input[at];
    at += strideZ;
    out += strideZ;
    __syncthreads();
    const float* plane = input + (iz + RADIUS) * strideZ;
    for (int k = threadIdx.y * BLOCK_X + threadIdx.x; k < (BLOCK_X + 2 * RADIUS) * (BLOCK_Y + 2 * RADIUS); k += BLOCK_X * BLOCK_Y) {
      int cx = k % (BLOCK_X + 2 * RADIUS), cy = k / (BLOCK_X + 2 * RADIUS);
      int gx = blockIdx.x * BLOCK_X + cx, gy = blockIdx.y * BLOCK_Y + cy;
      tile[cy][cx] = gx < strideY && gy < dimy + 2 * RADIUS ? plane[gy * strideY + gx] : 0.0f;
    }
    __syncthreads();
    float value = stencil[0] * current;
#pragma unroll
    for (int k = 1; k <= RADIUS; k++)
      value += stencil[k] * (infront[k - 1] + behind[k - 1] + tile[ty - k][tx] + tile[ty + k][tx] + tile[ty][tx - k] + tile[ty][tx + k]);
    if (valid) output[out] = value;
  }
}

int main(int argc, char** argv) {
  int dim[3] = {32, 20, 16}, steps = 3;
  for (int i = 0; i < 3 && i + 1 < argc; i++) dim[i] = std::atoi(argv[i + 1]);
  if (argc > 4) steps = std::atoi(argv[4]);
  const int ox = dim[0] + 2 * RADIUS, oy = dim[1] + 2 * RADIUS, oz = dim[2] + 2 * RADIUS;
  const size_t volume = (size_t)ox * oy * oz;
  std::vector<float> start(volume, 0.0f), got(volume);
  auto at = [&](int x, int y, int z) { return ((size_t)(z + RADIUS) * oy + y + RADIUS) * ox + x + RADIUS; };
  for (int z = 0; z < dim[2]; z++)
    for (int y = 0; y < dim[1]; y++)
      for (int x = 0; x < dim[0]; x++) start[at(x, y, z)] = (float)((x * 31 + y * 17 + z * 7) % 23) / 23;
  float coefficients[RADIUS + 1] = {0.3f, 0.06f, 0.03f, 0.015f, 0.0075f};
  CHK(cudaMemcpyToSymbol(stencil, coefficients, sizeof coefficients));
  float *a, *b;
  CHK(cudaMalloc((void**)&a, volume * sizeof(float)));
  CHK(cudaMalloc((void**)&b, volume * sizeof(float)));
  CHK(cudaMemcpy(a, start.data(), volume * sizeof(float), cudaMemcpyHostToDevice));
  CHK(cudaMemset(b, 0, volume * sizeof(float)));
  dim3 block(BLOCK_X, BLOCK_Y), grid((dim[0] + BLOCK_X - 1) / BLOCK_X, (dim[1] + BLOCK_Y - 1) / BLOCK_Y);
  for (int t = 0; t < steps; t++) {
    FiniteDifferences3D<<<grid, block>>>(b, a, dim[0], dim[1], dim[2]);
    CHK(cudaGetLastError());
    std::swap(a, b);
  }
  CHK(cudaMemcpy(got.data(), a, volume * sizeof(float), cudaMemcpyDeviceToHost));
  CHK(cudaFree(a));
  CHK(cudaFree(b));
  std::vector<double> u(start.begin(), start.end()), next(volume, 0.0);
  for (int t = 0; t < steps; t++) {
    for (int z = 0; z < dim[2]; z++)
      for (int y = 0; y < dim[1]; y++)
        for (int x = 0; x < dim[0]; x++) {
          double v = coefficients[0] * u[at(x, y, z)];
          for (int k = 1; k <= RADIUS; k++)
            v += coefficients[k] * (u[at(x - k, y, z)] + u[at(x + k, y, z)] + u[at(x, y - k, z)] + u[at(x, y + k, z)] +
                                    u[at(x, y, z - k)] + u[at(x, y, z + k)]);
          next[at(x, y, z)] = v;
        }
    u.swap(next);
  }
  double worst = 0, sum = 0;
  for (size_t i = 0; i < volume; i++) worst = std::max(worst, std::fabs(u[i] - got[i])), sum += got[i];
  std::printf("%d x %d x %d, %d steps: sum %.1f\n", dim[0], dim[1], dim[2], steps, sum);
  std::puts(worst < 1e-4 ? "PASSED" : "FAILED");
  return worst < 1e-4 ? 0 : 1;
}
