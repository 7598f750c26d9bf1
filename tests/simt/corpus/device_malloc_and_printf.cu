// title: malloc, free and printf in kernels: per thread, per block, kept between launches, and a linked list
// features: device_malloc, device_printf, atomics, device_limits

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#define NUM_BLOCKS 5
#define CHECKED(x) \
  do { \
    cudaError_t e = (x); \
    if (e != cudaSuccess) { printf("%s: %s\nFAILED\n", #x, cudaGetErrorString(e)); exit(1); } \
  } while (0)

__global__ void mallocTest(int *ok) {
  size_t size = 123;
  char *ptr = (char *)malloc(size);
  if (ptr == NULL) return;
  memset(ptr, threadIdx.x, size);
  int sum = 0;
  for (int i = 0; i < size; i++) sum += ptr[i];
  free(ptr);
  if (sum == 123 * (int)threadIdx.x) atomicAdd(ok, 1);
}

/* One allocation for the whole block */
__global__ void blockMalloc(int *out) {
  __shared__ int *data;
  if (threadIdx.x == 0) {
    size_t size = blockDim.x * 64;
    data = (int *)malloc(size);
  }
  __syncthreads();
  if (data == NULL) return;
  int *ptr = data;
  for (int i = 0; i < 16; ++i) ptr[i * blockDim.x + threadIdx.x] = threadIdx.x + i;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 16; ++i) sum += ptr[i * blockDim.x + (threadIdx.x + 1) % blockDim.x];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) free(data);
}

/* Memory that outlives the launch */
__device__ int *dataptr[NUM_BLOCKS];

__global__ void allocmem(void) {
  if (threadIdx.x == 0) dataptr[blockIdx.x] = (int *)malloc(blockDim.x * 4);
  __syncthreads();
  if (dataptr[blockIdx.x] == NULL) return;
  dataptr[blockIdx.x][threadIdx.x] = 0;
}
__global__ void usemem(void) {
  int *ptr = dataptr[blockIdx.x];
  if (ptr != NULL) ptr[threadIdx.x] += threadIdx.x;
}
__global__ void freemem(int *result) {
  int *ptr = dataptr[blockIdx.x];
  if (threadIdx.x == 1 && ptr != NULL) result[blockIdx.x] = ptr[1] + ptr[blockDim.x - 1];
  __syncthreads();
  if (threadIdx.x == 0) free(ptr);
}

struct Node {
  int value;
  Node *next;
};

/* Threads push to the front of a list without locks. */
__global__ void push(Node **head, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Node *node = new Node;
  node->value = i * i;
  Node *old = *(Node *volatile *)head, *assumed;
  do {
    assumed = old;
    node->next = assumed;
    __threadfence();
    old = (Node *)atomicCAS((unsigned long long *)head, (unsigned long long)assumed, (unsigned long long)node);
  } while (old != assumed);
}

__global__ void pop_all(Node **head, long long *sum, int *count) {
  for (Node *node = *head; node;) {
    Node *next = node->next;
    *sum += node->value;
    *count += 1;
    delete node;
    node = next;
  }
  *head = NULL;
}

__global__ void report(const int *values, int n) {
  if (threadIdx.x == 0) {
    printf("report of %d values:", n);
    for (int i = 0; i < n; i++) printf(" %d", values[i]);
    printf("\n%s: %5.2f|%-6d|%04x|%c|%llu|%%\n", "formats", 3.14159, 42, 0xbeef, 'z', 1ull << 40);
  }
}

int main(void) {
  int *d_ok, *d_out, *d_result, ok = 0, out[NUM_BLOCKS * 64], result[NUM_BLOCKS], wrong = 0;
  size_t limit = 0;
  CHECKED(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 * 1024 * 1024));
  CHECKED(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  wrong += limit < 16 * 1024 * 1024;

  CHECKED(cudaMalloc(&d_ok, sizeof(int)));
  CHECKED(cudaMemset(d_ok, 0, sizeof(int)));
  mallocTest<<<1, 5>>>(d_ok);
  CHECKED(cudaDeviceSynchronize());
  CHECKED(cudaMemcpy(&ok, d_ok, sizeof(int), cudaMemcpyDeviceToHost));
  printf("per thread: %d of 5\n", ok);
  wrong += ok != 5;

  CHECKED(cudaMalloc(&d_out, sizeof(out)));
  blockMalloc<<<NUM_BLOCKS, 64>>>(d_out);
  CHECKED(cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost));
  for (int i = 0; i < NUM_BLOCKS * 64; i++) wrong += out[i] != 16 * ((i + 1) % 64) + 120;
  printf("per block: %d %d\n", out[0], out[63]);

  CHECKED(cudaMalloc(&d_result, sizeof(result)));
  allocmem<<<NUM_BLOCKS, 10>>>();
  usemem<<<NUM_BLOCKS, 10>>>();
  usemem<<<NUM_BLOCKS, 10>>>();
  usemem<<<NUM_BLOCKS, 10>>>();
  freemem<<<NUM_BLOCKS, 10>>>(d_result);
  CHECKED(cudaMemcpy(result, d_result, sizeof(result), cudaMemcpyDeviceToHost));
  for (int i = 0; i < NUM_BLOCKS; i++) wrong += result[i] != 30;

  Node **d_head;
  long long *d_sum, sum = 0, expected = 0;
  int *d_count, count = 0;
  CHECKED(cudaMalloc(&d_head, sizeof(Node *)));
  CHECKED(cudaMalloc(&d_sum, sizeof(long long)));
  CHECKED(cudaMalloc(&d_count, sizeof(int)));
  CHECKED(cudaMemset(d_head, 0, sizeof(Node *)));
  CHECKED(cudaMemset(d_sum, 0, sizeof(long long)));
  CHECKED(cudaMemset(d_count, 0, sizeof(int)));
  push<<<4, 96>>>(d_head, 333);
  pop_all<<<1, 1>>>(d_head, d_sum, d_count);
  CHECKED(cudaMemcpy(&sum, d_sum, sizeof(sum), cudaMemcpyDeviceToHost));
  CHECKED(cudaMemcpy(&count, d_count, sizeof(count), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 333; i++) expected += (long long)i * i;
  printf("list: %d nodes, sum %lld\n", count, sum);
  wrong += count != 333 || sum != expected;

  fflush(stdout);
  report<<<1, 32>>>(d_result, NUM_BLOCKS);
  CHECKED(cudaDeviceSynchronize());

  CHECKED(cudaFree(d_ok));
  CHECKED(cudaFree(d_out));
  CHECKED(cudaFree(d_result));
  CHECKED(cudaFree(d_head));
  CHECKED(cudaFree(d_sum));
  CHECKED(cudaFree(d_count));
  puts(wrong ? "FAILED" : "PASSED");
  return wrong != 0;
}
