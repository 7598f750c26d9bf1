/*
Sum of an array, in the seven steps that every course takes.

    nvcc -std=c++17 -arch=native reduction.cu -o reduction && ./reduction
    python -m simt run reduction.cu

version 1: interleaved, "if (t % (2 * s) == 0)": half of every warp's lanes idle from the first step on
version 2: interleaved with packed threads: whole warps work, but their addresses share banks
version 3: sequential: the upper half is added to the lower half
version 4: version 3, and each thread adds two elements while it loads
version 5: version 4 until 32 sums are left, which one warp adds by shuffles, without barriers
version 6: a grid-stride loop, shuffles in every warp, then shuffles over the warps' sums
version 7: version 6 in one launch: the block that ends last (it asks a counter, behind a fence) adds the blocks' sums
Versions 1 to 6 leave one sum a block, and a second launch of the same kernel adds those.
*/

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    cudaError_t e = (call);                                                                             \
    if (e != cudaSuccess) {                                                                             \
      printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e));                                 \
      exit(1);                                                                                          \
    }                                                                                                   \
  } while (0)

constexpr int BLOCK = 256;
constexpr int MOST_BLOCKS = 64;      // of versions 6 and 7

// ---- CPU reference ----

int sum_cpu(const int* in, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += in[i];
  return sum;
}

// ---- kernels ----

__global__ void sum1(const int* in, int* out, int n) {
  __shared__ int s[BLOCK];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int stride = 1; stride < blockDim.x; stride *= 2) {
    if (t % (2 * stride) == 0) s[t] += s[t + stride];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

__global__ void sum2(const int* in, int* out, int n) {
  __shared__ int s[BLOCK];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int stride = 1; stride < blockDim.x; stride *= 2) {
    int at = 2 * stride * t;
    if (at < blockDim.x) s[at] += s[at + stride];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

__global__ void sum3(const int* in, int* out, int n) {
  __shared__ int s[BLOCK];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
    if (t < stride) s[t] += s[t + stride];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

__device__ int warp_sum(int value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}

template <bool LAST_WARP_SHUFFLES>
__global__ void sum45(const int* in, int* out, int n) {
  __shared__ int s[BLOCK];
  int t = threadIdx.x, i = blockIdx.x * (BLOCK * 2) + t;
  s[t] = (i < n ? in[i] : 0) + (i + BLOCK < n ? in[i + BLOCK] : 0);
  __syncthreads();
  for (int stride = BLOCK / 2; stride >= (LAST_WARP_SHUFFLES ? 32 : 1); stride >>= 1) {
    if (t < stride) s[t] += s[t + stride];
    __syncthreads();
  }
  if (LAST_WARP_SHUFFLES && t < 32) {
    int sum = warp_sum(s[t]);
    if (t == 0) out[blockIdx.x] = sum;
  }
  if (!LAST_WARP_SHUFFLES && t == 0) out[blockIdx.x] = s[0];
}

// Every thread of the block must call; thread 0 gets the sum.
__device__ int block_sum(int value) {
  __shared__ int sums[BLOCK / 32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_sum(value);
  if (lane == 0) sums[warp] = value;
  __syncthreads();
  if (warp == 0) value = warp_sum(lane < BLOCK / 32 ? sums[lane] : 0);
  __syncthreads();      // the next call may write `sums`
  return value;
}

__device__ int grid_stride_sum(const int* in, int n) {
  int sum = 0;
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) sum += in[i];
  return sum;
}

__global__ void sum6(const int* in, int* out, int n) {
  int sum = block_sum(grid_stride_sum(in, n));
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__device__ unsigned blocks_done = 0;

__global__ void sum7(const int* in, volatile int* partial, int* out, int n) {
  __shared__ bool is_last;
  int sum = block_sum(grid_stride_sum(in, n));
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();      // the sum is visible before the counter says so
    is_last = atomicAdd(&blocks_done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  sum = 0;
  for (int b = threadIdx.x; b < gridDim.x; b += BLOCK) sum += partial[b];
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    *out = sum;
    blocks_done = 0;      // ready for the next launch
  }
}

// ---- host ----

struct Version {
  const char* name;
  void (*kernel)(const int*, int*, int);
  int per_block;      // elements that a block adds
};

int sum(const Version& version, const int* d_in, int* d_a, int* d_b, int n) {
  // Launch after launch, each over the sums that the last one left.
  while (true) {
    int blocks = (n + version.per_block - 1) / version.per_block;
    if (version.kernel == sum6) blocks = n > BLOCK ? min(blocks, MOST_BLOCKS) : 1;
    version.kernel<<<blocks, BLOCK>>>(d_in, d_a, n);
    CHECK(cudaGetLastError());
    if (blocks == 1) break;
    d_in = d_a;
    std::swap(d_a, d_b);
    n = blocks;
  }
  int result = 0;
  CHECK(cudaMemcpy(&result, d_a, sizeof(int), cudaMemcpyDeviceToHost));
  return result;
}

int main() {
  const Version versions[] = {{"1 interleaved, modulo", sum1, BLOCK},         {"2 interleaved, packed", sum2, BLOCK},
                              {"3 sequential", sum3, BLOCK},                  {"4 add while loading", sum45<false>, 2 * BLOCK},
                              {"5 last warp by shuffles", sum45<true>, 2 * BLOCK}, {"6 shuffles only", sum6, BLOCK}};
  int failures = 0;
  for (int n : {1, 255, 100000, 1 << 18}) {
    std::vector<int> in(n);
    for (int i = 0; i < n; i++) in[i] = (int)(i * 2654435761u >> 20) - 2048;
    int expected = sum_cpu(in.data(), n);
    int *d_in, *d_a, *d_b;
    CHECK(cudaMalloc(&d_in, n * sizeof(int)));
    CHECK(cudaMalloc(&d_a, (n / BLOCK + 1) * sizeof(int)));
    CHECK(cudaMalloc(&d_b, (n / BLOCK + 1) * sizeof(int)));
    CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    auto report = [&](const char* name, int got) {
      printf("%-24s %6d elements: sum %d %s\n", name, n, got, got == expected ? "ok" : "WRONG");
      failures += got != expected;
    };
    for (const Version& version : versions) report(version.name, sum(version, d_in, d_a, d_b, n));
    sum7<<<min((n + BLOCK - 1) / BLOCK, MOST_BLOCKS), BLOCK>>>(d_in, d_a, d_b, n);
    CHECK(cudaGetLastError());
    int result;
    CHECK(cudaMemcpy(&result, d_b, sizeof(int), cudaMemcpyDeviceToHost));
    report("7 one launch", result);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
  }
  return failures ? 1 : 0;
}
