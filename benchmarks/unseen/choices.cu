// Which is smallest, largest, among the first few: a thread, a warp, a block a row; peaks, gates, radix selection.
// sizes: 64 16384 (rows of 1024 floats)
#include "../micro/micro.h"

constexpr int WIDTH = 1024, EXPERTS = 64, K = 8;

// A thread a row.
__global__ void argmin_rows(float* x, int* place, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int least = 0;
  for (int i = 1; i < WIDTH; i++)
    if (x[row * WIDTH + i] < x[row * WIDTH + least]) least = i;
  place[row] = least;
}

// Value and place packed into 64 bits; the block's threads meet at one atomic in shared memory.
__global__ void argmin_packed(const float* x, int* place) {
  __shared__ unsigned long long best;
  if (threadIdx.x == 0) best = ~0ull;
  __syncthreads();
  unsigned long long own = ~0ull;
  for (int i = threadIdx.x; i < WIDTH; i += blockDim.x) {
    unsigned long long packed = (unsigned long long)__float_as_uint(x[blockIdx.x * WIDTH + i]) << 32 | i;
    own = packed < own ? packed : own;
  }
  atomicMin(&best, own);
  __syncthreads();
  if (threadIdx.x == 0) place[blockIdx.x] = (int)(best & 0xffffffff);
}

// Over the middle of three dimensions, as the largest class of each pixel.
__global__ void argmax_middle(const float* __restrict__ x, long long* __restrict__ place, int middle, int inner,
                              int total) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const float* from = x + (size_t)(i / inner) * middle * inner + i % inner;
  float largest = from[0];
  int at = 0;
  for (int k = 1; k < middle; k++) {
    const float v = from[k * inner];
    if (v > largest) {
      largest = v;
      at = k;
    }
  }
  place[i] = at;
}

// The eight largest of 256 elements, kept in order in an array of the thread's own.
__global__ void top_8_thread(const float* x, float* largest, int lists) {
  int list = blockIdx.x * blockDim.x + threadIdx.x;
  if (list >= lists) return;
  float best[K];
  for (int k = 0; k < K; k++) best[k] = -INFINITY;
  for (int i = 0; i < 256; i++) {
    float v = x[i * lists + list];
    if (v <= best[K - 1]) continue;
    int at = K - 1;
    while (at > 0 && best[at - 1] < v) {
      best[at] = best[at - 1];
      at--;
    }
    best[at] = v;
  }
  for (int k = 0; k < K; k++) largest[k * lists + list] = best[k];
}

// The two best of 64 experts for each token, and how much each counts: a warp a token.
__global__ void two_experts(const float2* __restrict__ scores, int2* __restrict__ chosen, float2* __restrict__ weight,
                            int tokens) {
  const int token = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (token >= tokens) return;
  float2 own = scores[token * 32 + lane];
  float best[2];
  int place[2];
#pragma unroll
  for (int turn = 0; turn < 2; turn++) {
    float v = fmaxf(own.x, own.y);
    int at = own.x >= own.y ? 2 * lane : 2 * lane + 1;
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(0xffffffff, v, offset);
      const int other_at = __shfl_xor_sync(0xffffffff, at, offset);
      if (other > v || (other == v && other_at < at)) v = other, at = other_at;
    }
    best[turn] = v;
    place[turn] = at;
    if (at == 2 * lane) own.x = -INFINITY;
    if (at == 2 * lane + 1) own.y = -INFINITY;
  }
  const float second = __expf(best[1] - best[0]);
  if (lane == 0) {
    chosen[token] = make_int2(place[0], place[1]);
    weight[token] = make_float2(1.0f / (1.0f + second), second / (1.0f + second));
  }
}

// The element of a row that 100 others are not smaller than, eight bits after eight bits: a block a row.
__global__ void radix_select(const unsigned* x, unsigned* selected) {
  __shared__ int counts[256];
  __shared__ unsigned prefix;
  __shared__ int wanted;
  int tid = threadIdx.x;
  if (tid == 0) prefix = 0, wanted = 100;
  for (int shift = 24; shift >= 0; shift -= 8) {
    counts[tid] = 0;
    __syncthreads();
    unsigned known = prefix;
    for (int i = tid; i < WIDTH; i += 256) {
      unsigned v = x[blockIdx.x * WIDTH + i];
      if (shift == 24 || v >> (shift + 8) == known) atomicAdd(&counts[v >> shift & 255], 1);
    }
    __syncthreads();
    if (tid == 0) {
      int digit = 255, left = wanted;
      while (digit > 0 && counts[digit] <= left) left -= counts[digit--];
      wanted = left;
      prefix = known << 8 | digit;
    }
    __syncthreads();
  }
  if (tid == 0) selected[blockIdx.x] = prefix;
}

// Elements larger than the four on each side; the rest becomes zero.
__global__ void peaks(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bool peak = true;
  for (int k = -4; k <= 4; k++) {
    if (k == 0 || i + k < 0 || i + k >= n) continue;
    if (x[i + k] > x[i]) {
      peak = false;
      break;
    }
  }
  y[i] = peak ? x[i] : 0.0f;
}

// Does a row have an element beyond a limit? Its threads vote at a barrier, and stop at the first that has.
__global__ void any_beyond(const float* x, int* found, float limit) {
  int any = 0;
  for (int first = 0; first < WIDTH && !any; first += blockDim.x)
    any = __syncthreads_or(x[blockIdx.x * WIDTH + first + threadIdx.x] > limit);
  if (threadIdx.x == 0) found[blockIdx.x] = any;
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 64), n = rows * WIDTH;
  float *x = memory<float>(n), *y = memory<float>(n), *weight = memory<float>(n / 16);
  std::vector<float> values(n);
  unsigned state = 14;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  int* place = (int*)y;
  measure("smallest, a thread a row", [&] { argmin_rows<<<(rows + 127) / 128, 128>>>(x, place, rows); });
  measure("smallest, packed", [&] { argmin_packed<<<rows, 128>>>(x, place); });
  measure("largest of the middle", [&] { argmax_middle<<<n / 32 / 128, 128>>>(x, (long long*)y, 32, 2048, n / 32); });
  measure("eight largest", [&] { top_8_thread<<<n / 256 / 64, 64>>>(x, y, n / 256); });
  const int tokens = n / EXPERTS;
  measure("two experts", [&] { two_experts<<<tokens / 8, 256>>>((float2*)x, (int2*)y, (float2*)weight, tokens); });
  measure("radix selection", [&] { radix_select<<<rows, 256>>>((unsigned*)x, (unsigned*)y); });
  measure("peaks", [&] { peaks<<<n / 256, 256>>>(x, y, n); });
  measure("any beyond", [&] { any_beyond<<<rows, 256>>>(x, place, 0.998f); });
}
