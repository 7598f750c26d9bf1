// title: Odd-even transposition sort of many short rows, one row a warp, and of one long row with a flag
// features: warp_shuffles, warp_votes, mapped_memory, volatile

#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define ASSERT_OK(x) if ((x) != cudaSuccess) { fprintf(stderr, "failed in line %d\n", __LINE__); return 2; }

/* 32 values in the registers of a warp: in odd rounds lane 1 meets lane 2, in even rounds lane 0 meets lane 1 */
__global__ void sort_rows(int *x, int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  if (row >= rows) return;
  int v = x[row * 32 + lane];
  for (int round = 0; round < 32; round++) {
    int partner = (lane & 1) == (round & 1) ? lane + 1 : lane - 1;
    int inside = partner >= 0 && partner < 32;
    int other = __shfl_sync(0xffffffffu, v, inside ? partner : lane);
    if (inside) v = lane < partner ? min(v, other) : max(v, other);
  }
  x[row * 32 + lane] = v;
}

__global__ void round_of_sort(int *x, int n, int odd, volatile int *changed) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + odd;
  int swap = 0;
  if (i + 1 < n) {
    int a = x[i], b = x[i + 1];
    if (a > b) {
      x[i] = b;
      x[i + 1] = a;
      swap = 1;
    }
  }
  int any = __any_sync(0xffffffffu, swap);
  if (any && (threadIdx.x & 31) == 0) atomicExch((int *)changed, 1);
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void) {
  const int rows = 37, n = 300;
  int size = rows * 32, i, wrong = 0, rounds = 0;
  int *x = (int *)malloc(size * sizeof(int)), *want = (int *)malloc(size * sizeof(int)), *d, *flag, *d_flag;
  for (i = 0; i < size; i++) want[i] = x[i] = (i * 7919 + 13) % 1009;
  ASSERT_OK(cudaSetDeviceFlags(cudaDeviceMapHost));
  ASSERT_OK(cudaMalloc((void **)&d, size * sizeof(int)));
  ASSERT_OK(cudaMemcpy(d, x, size * sizeof(int), cudaMemcpyHostToDevice));
  sort_rows<<<(rows + 3) / 4, 128>>>(d, rows);
  ASSERT_OK(cudaGetLastError());
  ASSERT_OK(cudaMemcpy(x, d, size * sizeof(int), cudaMemcpyDeviceToHost));
  for (i = 0; i < rows; i++) qsort(want + 32 * i, 32, sizeof(int), compare);
  for (i = 0; i < size; i++) wrong += x[i] != want[i];
  printf("%d rows sorted, row 3 from %d to %d\n", rows, x[96], x[127]);

  /* The flag lies in the host's memory and the device writes it there. */
  ASSERT_OK(cudaHostAlloc((void **)&flag, sizeof(int), cudaHostAllocMapped));
  ASSERT_OK(cudaHostGetDevicePointer((void **)&d_flag, flag, 0));
  for (i = 0; i < n; i++) want[i] = x[i] = i < 20 ? 19 - i : i; /* nearly sorted: few rounds */
  ASSERT_OK(cudaMemcpy(d, x, n * sizeof(int), cudaMemcpyHostToDevice));
  do {
    *flag = 0;
    round_of_sort<<<(n / 2 + 63) / 64, 64>>>(d, n, 0, d_flag);
    round_of_sort<<<(n / 2 + 63) / 64, 64>>>(d, n, 1, d_flag);
    ASSERT_OK(cudaGetLastError());
    ASSERT_OK(cudaDeviceSynchronize());
    rounds++;
  } while (*flag && rounds < n);
  ASSERT_OK(cudaMemcpy(x, d, n * sizeof(int), cudaMemcpyDeviceToHost));
  qsort(want, n, sizeof(int), compare);
  for (i = 0; i < n; i++) wrong += x[i] != want[i];
  printf("%d double rounds for %d values\n", rounds, n);
  wrong += rounds > 12;
  ASSERT_OK(cudaFree(d));
  ASSERT_OK(cudaFreeHost(flag));
  free(x);
  free(want);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
