// title: prefix sums of a block by Hillis and Steele, Blelloch with conflict-free addresses, and of any length
// features: scan, shared_memory, dynamic_shared_memory

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_BANKS 32
#define LOG_NUM_BANKS 5
#define CONFLICT_FREE_OFFSET(n) ((n) >> LOG_NUM_BANKS)
#define SECTION_SIZE 256

#define CUDA_CALL(x)                                                              \
  {                                                                               \
    cudaError_t r = (x);                                                          \
    if (r != cudaSuccess) {                                                       \
      fprintf(stderr, "%s returned %s\n", #x, cudaGetErrorName(r));               \
      abort();                                                                    \
    }                                                                             \
  }

/* Inclusive, double-buffered: no write hits what another thread still reads. */
__global__ void hillis_steele(int *g_odata, const int *g_idata, int n) {
  extern __shared__ int temp[];
  int thid = threadIdx.x;
  int pout = 0, pin = 1;
  temp[pout * n + thid] = g_idata[blockIdx.x * n + thid];
  __syncthreads();
  for (int offset = 1; offset < n; offset *= 2) {
    pout = 1 - pout;
    pin = 1 - pout;
    if (thid >= offset)
      temp[pout * n + thid] = temp[pin * n + thid] + temp[pin * n + thid - offset];
    else
      temp[pout * n + thid] = temp[pin * n + thid];
    __syncthreads();
  }
  g_odata[blockIdx.x * n + thid] = temp[pout * n + thid];
}

/* Exclusive and work-efficient: n/2 threads, an up-sweep and a down-sweep. Writes each block's total to sums. */
__global__ void blelloch(int *g_odata, const int *g_idata, int *sums, int n) {
  extern __shared__ int temp[];
  int thid = threadIdx.x, offset = 1, base = blockIdx.x * n;
  int ai = thid, bi = thid + (n / 2);
  int bankOffsetA = CONFLICT_FREE_OFFSET(ai), bankOffsetB = CONFLICT_FREE_OFFSET(bi);
  temp[ai + bankOffsetA] = g_idata[base + ai];
  temp[bi + bankOffsetB] = g_idata[base + bi];

  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (thid < d) {
      int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
      temp[b + CONFLICT_FREE_OFFSET(b)] += temp[a + CONFLICT_FREE_OFFSET(a)];
    }
    offset *= 2;
  }
  if (thid == 0) {
    int last = n - 1 + CONFLICT_FREE_OFFSET(n - 1);
    sums[blockIdx.x] = temp[last];
    temp[last] = 0;
  }
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thid < d) {
      int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
      a += CONFLICT_FREE_OFFSET(a);
      b += CONFLICT_FREE_OFFSET(b);
      int t = temp[a];
      temp[a] = temp[b];
      temp[b] += t;
    }
  }
  __syncthreads();
  g_odata[base + ai] = temp[ai + bankOffsetA];
  g_odata[base + bi] = temp[bi + bankOffsetB];
}

__global__ void add_offsets(int *data, const int *offsets, int n) {
  int base = blockIdx.x * n;
  data[base + threadIdx.x] += offsets[blockIdx.x];
  data[base + threadIdx.x + blockDim.x] += offsets[blockIdx.x];
}

/* Scans each section, then the sections' totals (recursively), then adds. The length is a multiple of a section's. */
void scan_any(int *d_out, const int *d_in, int length) {
  int blocks = (length + SECTION_SIZE - 1) / SECTION_SIZE;
  int padded = (blocks + SECTION_SIZE - 1) / SECTION_SIZE * SECTION_SIZE;
  size_t shared = (SECTION_SIZE + CONFLICT_FREE_OFFSET(SECTION_SIZE)) * sizeof(int);
  int *sums, *offsets;
  assert(length % SECTION_SIZE == 0);
  CUDA_CALL(cudaMalloc((void **)&sums, padded * sizeof(int)));
  CUDA_CALL(cudaMalloc((void **)&offsets, padded * sizeof(int)));
  CUDA_CALL(cudaMemset(sums, 0, padded * sizeof(int)));
  blelloch<<<blocks, SECTION_SIZE / 2, shared>>>(d_out, d_in, sums, SECTION_SIZE);
  CUDA_CALL(cudaGetLastError());
  if (blocks > 1) {
    scan_any(offsets, sums, padded);
    add_offsets<<<blocks, SECTION_SIZE / 2>>>(d_out, offsets, SECTION_SIZE);
    CUDA_CALL(cudaGetLastError());
  }
  CUDA_CALL(cudaFree(sums));
  CUDA_CALL(cudaFree(offsets));
}

static int differences(const int *in, const int *out, int length, int section, int inclusive) {
  int i, running = 0, wrong = 0;
  for (i = 0; i < length; i++) {
    if (i % section == 0) running = 0;
    if (inclusive) running += in[i];
    if (out[i] != running) wrong++;
    if (!inclusive) running += in[i];
  }
  return wrong;
}

int main(void) {
  const int length = SECTION_SIZE * 260; /* more sections than one block can scan: two levels of recursion */
  const int few = SECTION_SIZE * 10;
  int *in = (int *)malloc(length * sizeof(int)), *out = (int *)malloc(length * sizeof(int));
  int *d_in, *d_out, wrong, failures = 0;
  for (int i = 0; i < length; i++) in[i] = (i * 5 + 3) % 11;
  CUDA_CALL(cudaMalloc((void **)&d_in, length * sizeof(int)));
  CUDA_CALL(cudaMalloc((void **)&d_out, length * sizeof(int)));
  CUDA_CALL(cudaMemcpy(d_in, in, length * sizeof(int), cudaMemcpyHostToDevice));

  hillis_steele<<<few / SECTION_SIZE, SECTION_SIZE, 2 * SECTION_SIZE * sizeof(int)>>>(d_out, d_in, SECTION_SIZE);
  CUDA_CALL(cudaMemcpy(out, d_out, few * sizeof(int), cudaMemcpyDeviceToHost));
  wrong = differences(in, out, few, SECTION_SIZE, 1);
  printf("Hillis and Steele, 10 sections: last %d, %d wrong\n", out[few - 1], wrong);
  failures += wrong;

  scan_any(d_out, d_in, SECTION_SIZE);
  CUDA_CALL(cudaMemcpy(out, d_out, SECTION_SIZE * sizeof(int), cudaMemcpyDeviceToHost));
  wrong = differences(in, out, SECTION_SIZE, SECTION_SIZE, 0);
  printf("Blelloch, one section: last %d, %d wrong\n", out[SECTION_SIZE - 1], wrong);
  failures += wrong;

  scan_any(d_out, d_in, length);
  CUDA_CALL(cudaMemcpy(out, d_out, length * sizeof(int), cudaMemcpyDeviceToHost));
  wrong = differences(in, out, length, length, 0);
  printf("Blelloch, %d elements: last %d, %d wrong\n", length, out[length - 1], wrong);
  failures += wrong;

  CUDA_CALL(cudaFree(d_in));
  CUDA_CALL(cudaFree(d_out));
  free(in);
  free(out);
  puts(failures ? "FAILED" : "PASSED");
  return failures ? 1 : 0;
}
