// Sums and statistics of long lists: with care, running, of pairs, by one thread, by the last block, by labels.
// sizes: 14 24 (log2 of the elements)
#include "../micro/micro.h"

constexpr int VARIABLES = 8, LABELS = 16;

// Each thread keeps what rounding lost; the block's sums meet in a tree.
__global__ void careful_sums(const float* x, float* sums, int n) {
  __shared__ float part[256];
  float sum = 0.0f, lost = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[i] - lost, larger = sum + v;
    lost = (larger - sum) - v;
    sum = larger;
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

// Count, mean and squares of each block: running in each thread, then merged in shared memory.
__global__ void mean_and_squares(const float* x, float* means, float* squares, int n) {
  __shared__ float counts[128], m[128], s[128];
  int tid = threadIdx.x;
  float count = 0.0f, mean = 0.0f, square = 0.0f;
  for (int i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x) {
    count += 1.0f;
    float change = x[i] - mean;
    mean += change / count;
    square += change * (x[i] - mean);
  }
  counts[tid] = count, m[tid] = mean, s[tid] = square;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (tid < half && counts[tid] + counts[tid + half] > 0.0f) {
      float all = counts[tid] + counts[tid + half], change = m[tid + half] - m[tid];
      m[tid] += change * counts[tid + half] / all;
      s[tid] += s[tid + half] + change * change * counts[tid] * counts[tid + half] / all;
      counts[tid] = all;
    }
    __syncthreads();
  }
  if (tid == 0) means[blockIdx.x] = m[0], squares[blockIdx.x] = s[0];
}

// The smallest and the largest at once; as they are positive, they compare like whole numbers.
__global__ void smallest_and_largest(const float4* __restrict__ x, int* __restrict__ result, int n) {
  float low = INFINITY, high = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float4 v = x[i];
    low = fminf(low, fminf(fminf(v.x, v.y), fminf(v.z, v.w)));
    high = fmaxf(high, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  const int least = __reduce_min_sync(0xffffffff, __float_as_int(low));
  const int most = __reduce_max_sync(0xffffffff, __float_as_int(high));
  if (threadIdx.x % 32 == 0) {
    atomicMin(&result[0], least);
    atomicMax(&result[1], most);
  }
}

// One thread does it all.
__global__ void alone(float* x, float* result, int n) {
  float sum = 0.0f, largest = x[0];
  for (int i = 0; i < n; i++) {
    sum += x[i];
    if (x[i] > largest) largest = x[i];
  }
  result[0] = sum / n;
  result[1] = largest;
}

// The block that comes last adds up what all have left in memory.
__global__ void last_block_adds(const float* x, volatile float* sums, unsigned* ticket, float* result, int n) {
  __shared__ float warps[8];
  __shared__ bool last;
  const int tid = threadIdx.x;
  float sum = 0.0f;
  for (int i = blockIdx.x * 256 + tid; i < n; i += gridDim.x * 256) sum += x[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (tid % 32 == 0) warps[tid / 32] = sum;
  __syncthreads();
  if (tid == 0) {
    for (int w = 1; w < 8; w++) sum += warps[w];
    sums[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  sum = 0.0f;
  for (int i = tid; i < gridDim.x; i += 256) sum += sums[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (tid % 32 == 0) warps[tid / 32] = sum;
  __syncthreads();
  if (tid == 0) {
    for (int w = 1; w < 8; w++) sum += warps[w];
    *result = sum;
  }
}

// Products of each two of eight variables, 36 sums a thread in registers.
__global__ void products_of_pairs(const float* x, float* products, int samples) {
  float sums[VARIABLES * (VARIABLES + 1) / 2] = {};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < samples; i += gridDim.x * blockDim.x) {
    float v[VARIABLES];
#pragma unroll
    for (int k = 0; k < VARIABLES; k++) v[k] = x[k * samples + i];
#pragma unroll
    for (int a = 0; a < VARIABLES; a++)
#pragma unroll
      for (int b = 0; b <= a; b++) sums[a * (a + 1) / 2 + b] += v[a] * v[b];
  }
#pragma unroll
  for (int k = 0; k < VARIABLES * (VARIABLES + 1) / 2; k++) {
    float sum = sums[k];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(&products[k], sum);
  }
}

// Sums of points and how many they are, for each of 16 labels, in shared memory.
__global__ void sums_by_label(const float4* point, const int* label, float* sums, int n) {
  __shared__ float own[LABELS * 5];
  for (int i = threadIdx.x; i < LABELS * 5; i += blockDim.x) own[i] = 0.0f;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float4 p = point[i];
    int at = label[i] * 5;
    atomicAdd(&own[at], p.x);
    atomicAdd(&own[at + 1], p.y);
    atomicAdd(&own[at + 2], p.z);
    atomicAdd(&own[at + 3], p.w);
    atomicAdd(&own[at + 4], 1.0f);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < LABELS * 5; k += blockDim.x) atomicAdd(&sums[k], own[k]);
}

// Every loop written out by hand for blocks of 512, the last warp without barriers of the block.
template <int BLOCK>
__global__ void written_out(const float* x, float* sums, int n) {
  __shared__ float s[BLOCK];
  int tid = threadIdx.x, i = blockIdx.x * BLOCK * 4 + tid;
  float sum = 0.0f;
  if (i < n) sum += x[i];
  if (i + BLOCK < n) sum += x[i + BLOCK];
  if (i + 2 * BLOCK < n) sum += x[i + 2 * BLOCK];
  if (i + 3 * BLOCK < n) sum += x[i + 3 * BLOCK];
  s[tid] = sum;
  __syncthreads();
  if (BLOCK >= 512 && tid < 256) s[tid] += s[tid + 256];
  __syncthreads();
  if (BLOCK >= 256 && tid < 128) s[tid] += s[tid + 128];
  __syncthreads();
  if (BLOCK >= 128 && tid < 64) s[tid] += s[tid + 64];
  __syncthreads();
  if (tid < 32) {
    float v = s[tid] + s[tid + 32];
    v += __shfl_down_sync(0xffffffff, v, 16);
    v += __shfl_down_sync(0xffffffff, v, 8);
    v += __shfl_down_sync(0xffffffff, v, 4);
    v += __shfl_down_sync(0xffffffff, v, 2);
    v += __shfl_down_sync(0xffffffff, v, 1);
    if (tid == 0) sums[blockIdx.x] = v;
  }
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14), points = n / 4, samples = n / VARIABLES;
  float *x = memory<float>(n), *few = memory<float>(std::max(n / 512, 8192));
  std::vector<float> values(n);
  std::vector<int> labels(points);
  unsigned state = 23;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
  for (int& l : labels) l = (state = state * 1664525u + 1013904223u) >> 28;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  int* label = memory<int>(points);
  CHECK(cudaMemcpy(label, labels.data(), points * sizeof(int), cudaMemcpyHostToDevice));
  unsigned* ticket = memory<unsigned>(1);
  CHECK(cudaMemset(ticket, 0, sizeof(unsigned)));
  measure("careful", [&] { careful_sums<<<528, 256>>>(x, few, n); });
  measure("means and squares", [&] { mean_and_squares<<<1056, 128>>>(x, few, few + 4096, n); });
  measure("smallest and largest", [&] { smallest_and_largest<<<264, 512>>>((float4*)x, (int*)few, n / 4); });
  measure("one thread", [&] { alone<<<1, 1>>>(x, few, std::min(n, 8192)); });
  measure("last block", [&] { last_block_adds<<<396, 256>>>(x, few, ticket, few + 4096, n); });
  measure("pairs of variables", [&] { products_of_pairs<<<264, 128>>>(x, few, samples); });
  measure("by label", [&] { sums_by_label<<<points / 256, 256>>>((float4*)x, label, few, points); });
  measure("written out", [&] { written_out<512><<<n / 2048, 512>>>(x, few, n); });
}
