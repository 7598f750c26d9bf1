// title: Approximate functions, conversions, shuffles and global loads in inline PTX against plain C++
// features: inline_ptx, device_functions, warp_shuffles

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SAFE(x) if ((x) != cudaSuccess) { fprintf(stderr, "line %d failed\n", __LINE__); exit(1); }

__device__ float ex2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ float lg2(float x) { float y; asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ float rcp(float x) { float y; asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ float rsq(float x) { float y; asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ float fma_rn(float a, float b, float c) { float d; asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c)); return d; }
__device__ int to_int(float x) { int i; asm("cvt.rni.s32.f32 %0, %1;" : "=r"(i) : "f"(x)); return i; }
__device__ float to_float(int i) { float x; asm("cvt.rn.f32.s32 %0, %1;" : "=f"(x) : "r"(i)); return x; }
__device__ float load(const float *p) { float x; asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(p) : "memory"); return x; }
__device__ void store(float *p, float x) { asm volatile("st.global.f32 [%0], %1;" : : "l"(p), "f"(x) : "memory"); }

__device__ float butterfly_sum(float v) {
  for (int d = 16; d > 0; d >>= 1) {
    float o;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(o) : "f"(v), "r"(d));
    v += o;
  }
  return v;
}

/* softmax of rows of 32 by a warp each; powers and roots beside it */
__global__ void softmax(const float *in, float *out, float *extra, int *ints, int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float x = load(in + row * 32 + lane);
  float e = ex2(x * 1.4426950408889634f);
  float sum = butterfly_sum(e);
  store(out + row * 32 + lane, e * rcp(sum));
  float p = 1.0f + x * x;
  extra[row * 32 + lane] = fma_rn(rsq(p), p, ex2(0.3333333f * lg2(p)));
  ints[row * 32 + lane] = to_int(x * 10.0f) + to_int(to_float(lane) * 0.5f);
}

int main(void) {
  const int rows = 40, n = rows * 32;
  float *x = (float *)malloc(n * sizeof(float)), *y = (float *)malloc(n * sizeof(float)), *z = (float *)malloc(n * sizeof(float));
  int *k = (int *)malloc(n * sizeof(int)), *dk, wrong = 0, sum = 0;
  float *dx, *dy, *dz;
  for (int i = 0; i < n; i++) x[i] = (float)((i * 37) % 81 - 40) / 16; /* ten times of it may lie half way between two integers */
  SAFE(cudaMalloc(&dx, n * sizeof(float)));
  SAFE(cudaMalloc(&dy, n * sizeof(float)));
  SAFE(cudaMalloc(&dz, n * sizeof(float)));
  SAFE(cudaMalloc(&dk, n * sizeof(int)));
  SAFE(cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice));
  softmax<<<rows / 4, 128>>>(dx, dy, dz, dk, rows);
  SAFE(cudaGetLastError());
  SAFE(cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost));
  SAFE(cudaMemcpy(z, dz, n * sizeof(float), cudaMemcpyDeviceToHost));
  SAFE(cudaMemcpy(k, dk, n * sizeof(int), cudaMemcpyDeviceToHost));
  SAFE(cudaFree(dx)); SAFE(cudaFree(dy)); SAFE(cudaFree(dz)); SAFE(cudaFree(dk));
  double largest = 0;
  for (int r = 0; r < rows; r++) {
    double total = 0;
    for (int i = 0; i < 32; i++) total += exp((double)x[r * 32 + i]);
    for (int i = 0; i < 32; i++) {
      int at = r * 32 + i;
      double p = 1 + (double)x[at] * x[at], want = sqrt(p) + cbrt(p);
      wrong += fabs(exp((double)x[at]) / total - y[at]) > 1e-5;
      wrong += fabs(want - z[at]) > 1e-4 * want;
      wrong += k[at] != (int)nearbyint(x[at] * 10.0) + (int)nearbyint(i * 0.5);
      largest = fmax(largest, y[at]);
      sum += k[at];
    }
  }
  printf("largest probability %.3f, sum of integers %d\n", largest, sum);
  free(x); free(y); free(z); free(k);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
