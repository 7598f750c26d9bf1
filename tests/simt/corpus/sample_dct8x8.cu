// title: DCT of 8x8 blocks, quantisation and the way back
// features: shared_memory, constant_memory, inline_functions
// args: 64 48

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#define BLOCK_SIZE 8

#define CUDA_SAFE_CALL(call)                                                                    \
  {                                                                                             \
    cudaError err = call;                                                                       \
    if (cudaSuccess != err) {                                                                   \
      fprintf(stderr, "Cuda error in file '%s' in line %i : %s.\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
      exit(EXIT_FAILURE);                                                                       \
    }                                                                                           \
  }

__constant__ float c_basis[BLOCK_SIZE * BLOCK_SIZE];  // row k: the k-th cosine
__constant__ short c_quant[BLOCK_SIZE * BLOCK_SIZE] = {
    16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,  14, 13, 16, 24, 40,
    57, 69, 56, 14, 17,  22,  29,  51,  87, 80, 62, 18, 22,  37,  56,  68,  109, 103, 77, 24, 35,
    55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};

// dst = B src B^T of every block (forward), or B^T src B (inverse).
template <bool Inverse>
__global__ void dct8(float* dst, const float* src, int stride) {
  __shared__ float block[BLOCK_SIZE][BLOCK_SIZE], half[BLOCK_SIZE][BLOCK_SIZE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int at = (blockIdx.y * BLOCK_SIZE + ty) * stride + blockIdx.x * BLOCK_SIZE + tx;
  block[ty][tx] = src[at];
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < BLOCK_SIZE; k++) sum += (Inverse ? c_basis[k * 8 + ty] : c_basis[ty * 8 + k]) * block[k][tx];
  half[ty][tx] = sum;
  __syncthreads();
  sum = 0.0f;
#pragma unroll
  for (int k = 0; k < BLOCK_SIZE; k++) sum += half[ty][k] * (Inverse ? c_basis[k * 8 + tx] : c_basis[tx * 8 + k]);
  dst[at] = sum;
}

__global__ void quantize(float* coefficients, int stride, int* zeros) {
  int at = (blockIdx.y * BLOCK_SIZE + threadIdx.y) * stride + blockIdx.x * BLOCK_SIZE + threadIdx.x;
  float q = c_quant[threadIdx.y * BLOCK_SIZE + threadIdx.x];
  float level = rintf(coefficients[at] / q);
  coefficients[at] = level * q;
  int flat = __syncthreads_count(level == 0.0f);
  if (threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(zeros, flat);
}

int main(int argc, char** argv) {
  int w = argc > 1 ? atoi(argv[1]) : 64, h = argc > 2 ? atoi(argv[2]) : 48;
  w = w / 8 * 8, h = h / 8 * 8;
  float basis[64];
  for (int k = 0; k < 8; k++)
    for (int n = 0; n < 8; n++)
      basis[k * 8 + n] = (float)(sqrt((k ? 2.0 : 1.0) / 8) * cos((2 * n + 1) * k * 3.14159265358979323846 / 16));
  CUDA_SAFE_CALL(cudaMemcpyToSymbol(c_basis, basis, sizeof(basis)));

  size_t bytes = (size_t)w * h * sizeof(float);
  float *img = (float*)malloc(bytes), *freq = (float*)malloc(bytes), *back = (float*)malloc(bytes);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++)
      img[y * w + x] = (float)(100.0 * sin(x * 0.11) * cos(y * 0.07) + ((x * 5 + y * 3) % 7) - 3);
  float *d_a, *d_b;
  int *d_zeros, zeros = 0;
  CUDA_SAFE_CALL(cudaMalloc((void**)&d_a, bytes));
  CUDA_SAFE_CALL(cudaMalloc((void**)&d_b, bytes));
  CUDA_SAFE_CALL(cudaMalloc((void**)&d_zeros, sizeof(int)));
  CUDA_SAFE_CALL(cudaMemset(d_zeros, 0, sizeof(int)));
  CUDA_SAFE_CALL(cudaMemcpy(d_a, img, bytes, cudaMemcpyHostToDevice));
  dim3 grid(w / 8, h / 8), threads(8, 8);
  dct8<false><<<grid, threads>>>(d_b, d_a, w);
  CUDA_SAFE_CALL(cudaGetLastError());
  CUDA_SAFE_CALL(cudaMemcpy(freq, d_b, bytes, cudaMemcpyDeviceToHost));
  quantize<<<grid, threads>>>(d_b, w, d_zeros);
  dct8<true><<<grid, threads>>>(d_a, d_b, w);
  CUDA_SAFE_CALL(cudaGetLastError());
  CUDA_SAFE_CALL(cudaMemcpy(back, d_a, bytes, cudaMemcpyDeviceToHost));
  CUDA_SAFE_CALL(cudaMemcpy(&zeros, d_zeros, sizeof(int), cudaMemcpyDeviceToHost));

  double worst = 0, energy = 0, energyFreq = 0, mse = 0;
  for (int by = 0; by < h; by += 8)
    for (int bx = 0; bx < w; bx += 8)
      for (int k = 0; k < 8; k++)
        for (int l = 0; l < 8; l++) {
          double sum = 0;
          for (int y = 0; y < 8; y++)
            for (int x = 0; x < 8; x++)
              sum += img[(by + y) * w + bx + x] * cos((2 * y + 1) * k * M_PI / 16) * cos((2 * x + 1) * l * M_PI / 16);
          sum *= sqrt((k ? 2.0 : 1.0) / 8) * sqrt((l ? 2.0 : 1.0) / 8);
          worst = fmax(worst, fabs(sum - freq[(by + k) * w + bx + l]));
        }
  for (int i = 0; i < w * h; i++) {
    energy += (double)img[i] * img[i];
    energyFreq += (double)freq[i] * freq[i];
    mse += pow((double)img[i] - back[i], 2) / (w * h);
  }
  printf("%d x %d: energy %.0f before, %.0f after\n", w, h, energy / 1000, energyFreq / 1000);
  printf("PSNR above 30 dB: %s, more than 3/4 of the coefficients are 0: %s\n", 10 * log10(200.0 * 200.0 / mse) > 30 ? "yes" : "no",
         zeros > 3 * w * h / 4 ? "yes" : "no");
  CUDA_SAFE_CALL(cudaFree(d_a));
  CUDA_SAFE_CALL(cudaFree(d_b));
  CUDA_SAFE_CALL(cudaFree(d_zeros));
  free(img);
  free(freq);
  free(back);
  bool passed = worst < 1e-2 && mse < 100 && fabs(energy - energyFreq) < 1e-4 * energy;
  printf("%s\n", passed ? "PASSED" : "FAILED");
  return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
