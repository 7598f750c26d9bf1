// Reductions as courses teach them, one step after the other: sums, largest elements and dot products of long lists.
// sizes: 14 25 (log2 of the elements)
#include "../micro/micro.h"

// In place in global memory; the threads whose number the stride divides go on.
__global__ void max_interleaved_global(float* data, float* largest) {
  int tid = threadIdx.x;
  float* block = data + blockIdx.x * blockDim.x;
  for (int stride = 1; stride < blockDim.x; stride *= 2) {
    if (tid % (2 * stride) == 0) block[tid] = fmaxf(block[tid], block[tid + stride]);
    __syncthreads();
  }
  if (tid == 0) largest[blockIdx.x] = block[0];
}

// The first threads go on, but with interleaved addresses.
__global__ void sum_interleaved_indices(const int* g_idata, int* g_odata) {
  extern __shared__ int sdata[];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  sdata[tid] = g_idata[i];
  __syncthreads();
  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    unsigned int index = 2 * s * tid;
    if (index < blockDim.x) sdata[index] += sdata[index + s];
    __syncthreads();
  }
  if (tid == 0) atomicAdd(g_odata, sdata[0]);
}

// Sequential addresses, one element a thread.
__global__ void max_sequential(const float* x, float* y, int n) {
  __shared__ float s[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : -INFINITY;
  __syncthreads();
  for (int half = 64; half > 0; half >>= 1) {
    if (threadIdx.x < half) s[threadIdx.x] = max(s[threadIdx.x], s[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}

// Two elements are added while they are loaded; the last warp is written out.
template <unsigned int blockSize>
__global__ void sum_first_add_unrolled(const int* g_idata, int* g_odata) {
  __shared__ int sdata[blockSize];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * (blockSize * 2) + tid;
  sdata[tid] = g_idata[i] + g_idata[i + blockSize];
  __syncthreads();
  if (blockSize >= 512) {
    if (tid < 256) sdata[tid] += sdata[tid + 256];
    __syncthreads();
  }
  if (blockSize >= 256) {
    if (tid < 128) sdata[tid] += sdata[tid + 128];
    __syncthreads();
  }
  if (tid < 64) sdata[tid] += sdata[tid + 64];
  __syncthreads();
  if (tid < 32) {
    int sum = sdata[tid] + sdata[tid + 32];
    sum += __shfl_down_sync(0xffffffff, sum, 16);
    sum += __shfl_down_sync(0xffffffff, sum, 8);
    sum += __shfl_down_sync(0xffffffff, sum, 4);
    sum += __shfl_down_sync(0xffffffff, sum, 2);
    sum += __shfl_down_sync(0xffffffff, sum, 1);
    if (tid == 0) g_odata[blockIdx.x] = sum;
  }
}

// A fixed grid goes through both lists; the products of a thread are added before the tree.
__global__ void dot_float(float* a, float* b, float* c, int n) {
  __shared__ float cache[256];
  int tid = threadIdx.x + blockIdx.x * blockDim.x;
  int cacheIndex = threadIdx.x;
  float temp = 0;
  while (tid < n) {
    temp += a[tid] * b[tid];
    tid += blockDim.x * gridDim.x;
  }
  cache[cacheIndex] = temp;
  __syncthreads();
  int i = blockDim.x / 2;
  while (i != 0) {
    if (cacheIndex < i) cache[cacheIndex] += cache[cacheIndex + i];
    __syncthreads();
    i /= 2;
  }
  if (cacheIndex == 0) c[blockIdx.x] = cache[0];
}

// Four products a thread and step; warps by shuffles, then an atomic a block.
__global__ void dot_int4(const int4* __restrict__ a, const int4* __restrict__ b, int* __restrict__ result, int n) {
  __shared__ int warps[32];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const int4 p = a[i], q = b[i];
    sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < blockDim.x / 32 ? warps[lane] : 0;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (lane == 0) atomicAdd(result, sum);
  }
}

// In steps of the whole grid, then an atomic a warp.
__global__ void sum_atomic_per_warp(const float* x, float* result, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += x[i];
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffff, sum, mask);
  if ((threadIdx.x & 31) == 0) atomicAdd(result, sum);
}

// The second kernel: one block takes what the blocks of the first one found.
__global__ void max_of_partials(const float* partial, float* result, int count) {
  __shared__ float s[1024];
  float v = -INFINITY;
  for (int i = threadIdx.x; i < count; i += blockDim.x) v = fmaxf(v, partial[i]);
  s[threadIdx.x] = v;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) *result = s[0];
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14);
  float *x = memory<float>(n), *y = memory<float>(n), *partial = memory<float>(n / 128);
  int *a = memory<int>(n), *b = memory<int>(n), *sums = memory<int>(n / 128);
  std::vector<float> values(n);
  std::vector<int> numbers(n);
  unsigned state = 21;
  for (int i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (state >> 8) / 8388608.0f - 1.0f;
    numbers[i] = int((state >> 16) % 9) - 4;
  }
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(y, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(a, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(sums, 0, n / 128 * sizeof(int)));
  measure("max, interleaved in global", [&] { max_interleaved_global<<<n / 256, 256>>>(y, partial); });
  measure("int sum, interleaved indices",
          [&] { sum_interleaved_indices<<<n / 512, 512, 512 * sizeof(int)>>>(a, sums); });
  measure("max, sequential", [&] { max_sequential<<<n / 128, 128>>>(x, partial, n); });
  measure("int sum, add during load", [&] { sum_first_add_unrolled<256><<<n / 512, 256>>>(a, sums); });
  measure("dot product, tree", [&] { dot_float<<<std::min(n / 256, 512), 256>>>(x, y, partial, n); });
  measure("dot product of int4", [&] { dot_int4<<<std::min(n / 4096, 264), 1024>>>((int4*)a, (int4*)b, sums, n / 4); });
  measure("sum, an atomic a warp", [&] { sum_atomic_per_warp<<<std::min(n / 256, 1056), 256>>>(x, partial, n); });
  measure("max of partial results", [&] { max_of_partials<<<1, 1024>>>(partial, y, n / 128); });
}
