// title: Inline PTX: lane numbers, masks, bit fields, carries, selection and predicates
// features: inline_ptx, warp_votes

#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define CHECK(c) if ((c) != cudaSuccess) { printf("CUDA error, line %d\n", __LINE__); exit(1); }

__device__ __forceinline__ unsigned lane_id() {
  unsigned r;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(r));
  return r;
}

__device__ __forceinline__ unsigned lanemask_lt() {
  unsigned r;
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(r));
  return r;
}

__device__ unsigned bfe(unsigned x, unsigned pos, unsigned len) {
  unsigned r;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(pos), "r"(len));
  return r;
}

__device__ unsigned bfi(unsigned field, unsigned into, unsigned pos, unsigned len) {
  unsigned r;
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(field), "r"(into), "r"(pos), "r"(len));
  return r;
}

/* 64-bit sum from 32-bit halves */
__device__ void add_wide(unsigned a0, unsigned a1, unsigned b0, unsigned b1, unsigned *lo, unsigned *hi) {
  asm("{\n\t"
      "add.cc.u32 %0, %2, %4;\n\t"
      "addc.u32 %1, %3, %5;\n\t"
      "}"
      : "=r"(*lo), "=r"(*hi)
      : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
}

__device__ int clamp_ptx(int x, int low, int high) {
  int r;
  asm("{\n\t"
      ".reg .pred p;\n\t"
      ".reg .s32 t;\n\t"
      "max.s32 t, %1, %2;\n\t"
      "setp.gt.s32 p, t, %3;\n\t"
      "selp.s32 %0, %3, t, p;\n\t"
      "}"
      : "=r"(r) : "r"(x), "r"(low), "r"(high));
  return r;
}

__device__ unsigned prmt(unsigned a, unsigned b, unsigned selector) {
  unsigned r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
  return r;
}

struct Row { unsigned lane, rank, field, merged, lo, hi, swapped; int clamped; unsigned long long product; };

__global__ void probe(const unsigned *x, Row *rows, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = i < n ? x[i] : 0;
  unsigned odd = __ballot_sync(0xffffffffu, v & 1);
  if (i >= n) return;
  Row r;
  r.lane = lane_id();
  r.rank = __popc(odd & lanemask_lt()); /* odd values in the lanes below */
  r.field = bfe(v, 5, 9);
  r.merged = bfi(v, 0xabcdef01u, 8, 12);
  add_wide(v, 1, ~v / 3, i, &r.lo, &r.hi);
  r.clamped = clamp_ptx((int)v, -1000000, 1000000);
  r.swapped = prmt(v, 0, 0x0123);
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(r.product) : "r"(v), "r"(0x9e3779b9u));
  rows[i] = r;
}

int main() {
  const int n = 1000;
  unsigned *x = (unsigned *)malloc(n * sizeof(unsigned)), *dx;
  Row *rows = (Row *)malloc(n * sizeof(Row)), *drows;
  unsigned s = 99;
  for (int i = 0; i < n; i++) x[i] = s = s * 1103515245u + 12345u, x[i] ^= x[i] >> 15;
  CHECK(cudaMalloc(&dx, n * sizeof(unsigned)));
  CHECK(cudaMalloc(&drows, n * sizeof(Row)));
  CHECK(cudaMemcpy(dx, x, n * sizeof(unsigned), cudaMemcpyHostToDevice));
  probe<<<(n + 127) / 128, 128>>>(dx, drows, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(rows, drows, n * sizeof(Row), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(dx));
  CHECK(cudaFree(drows));
  int wrong = 0;
  unsigned hash = 0;
  for (int i = 0; i < n; i++) {
    unsigned v = x[i], rank = 0;
    for (int j = i / 32 * 32; j < i; j++) rank += x[j] & 1;
    unsigned long long sum = (v + (1ull << 32)) + (~v / 3 + ((unsigned long long)i << 32));
    int c = (int)v < -1000000 ? -1000000 : (int)v > 1000000 ? 1000000 : (int)v;
    unsigned swapped = v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24;
    const Row *r = &rows[i];
    wrong += r->lane != (unsigned)i % 32;
    wrong += r->rank != rank;
    wrong += r->field != (v >> 5 & 511);
    wrong += r->merged != ((0xabcdef01u & ~0xfff00u) | (v & 0xfff) << 8);
    wrong += r->lo != (unsigned)sum || r->hi != (unsigned)(sum >> 32);
    wrong += r->clamped != c;
    wrong += r->swapped != swapped;
    wrong += r->product != v * 0x9e3779b9ull;
    hash = hash * 31 + r->merged + r->lo + r->rank;
  }
  printf("hash %08x, %d differences\n", hash, wrong);
  free(x);
  free(rows);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
