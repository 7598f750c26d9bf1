// Small pieces put in order, merged, ranked, and searched for what is largest; the data are random.
// sizes: 14 24 (log2 of the elements)
#include "../micro/micro.h"

// A block sorts 1024 elements, a thread a pair at each step.
__global__ void bitonic(float* x, float* y) {
  __shared__ float s[1024];
  const int tid = threadIdx.x, first = blockIdx.x * 1024;
  s[tid] = x[first + tid];
  s[tid + 512] = x[first + tid + 512];
  __syncthreads();
  for (int k = 2; k <= 1024; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      int low = 2 * tid - (tid & (j - 1)), high = low + j;
      bool up = (low & k) == 0;
      float a = s[low], b = s[high];
      if ((a > b) == up) {
        s[low] = b;
        s[high] = a;
      }
      __syncthreads();
    }
  y[first + tid] = s[tid];
  y[first + tid + 512] = s[tid + 512];
}

// A block sorts 128 elements by exchanging neighbours.
__global__ void odd_even(const int* x, int* y) {
  __shared__ int s[128];
  int tid = threadIdx.x;
  x += blockIdx.x * 128, y += blockIdx.x * 128;
  s[tid] = x[tid];
  s[tid + 64] = x[tid + 64];
  __syncthreads();
  for (int step = 0; step < 128; step++) {
    int i = 2 * tid + step % 2;
    if (i + 1 < 128 && s[i] > s[i + 1]) {
      int t = s[i];
      s[i] = s[i + 1];
      s[i + 1] = t;
    }
    __syncthreads();
  }
  y[tid] = s[tid];
  y[tid + 64] = s[tid + 64];
}

// A thread sorts 16 elements by insertion, in an array of its own.
__global__ void insertion(int* x, int* y, int n) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * 16;
  if (first >= n) return;
  int v[16];
  for (int i = 0; i < 16; i++) v[i] = x[first + i];
  for (int i = 1; i < 16; i++) {
    int key = v[i], j = i - 1;
    while (j >= 0 && v[j] > key) {
      v[j + 1] = v[j];
      j--;
    }
    v[j + 1] = key;
  }
  for (int i = 0; i < 16; i++) y[first + i] = v[i];
}

// A thread sorts eight elements that lie a row apart, by exchanges that the compiler knows.
__global__ void network_of_8(const float* __restrict__ x, float* __restrict__ y, int columns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= columns) return;
  float v[8];
#pragma unroll
  for (int k = 0; k < 8; k++) v[k] = x[k * columns + i];
#pragma unroll
  for (int step = 0; step < 8; step++)
#pragma unroll
    for (int k = step % 2; k + 1 < 8; k += 2) {
      const float a = v[k], b = v[k + 1];
      v[k] = fminf(a, b);
      v[k + 1] = fmaxf(a, b);
    }
#pragma unroll
  for (int k = 0; k < 8; k++) y[k * columns + i] = v[k];
}

// The four largest of each row of 64: a thread a row.
__global__ void top_4(const float* x, float* values, int* places, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float best[4] = {-1e30f, -1e30f, -1e30f, -1e30f};
  int at[4] = {0, 0, 0, 0};
  for (int i = 0; i < 64; i++) {
    float v = x[row * 64 + i];
    if (v <= best[3]) continue;
    best[3] = v;
    at[3] = i;
    for (int k = 3; k > 0; k--)
      if (best[k] > best[k - 1]) {
        float t = best[k];
        best[k] = best[k - 1];
        best[k - 1] = t;
        int u = at[k];
        at[k] = at[k - 1];
        at[k - 1] = u;
      }
  }
  for (int k = 0; k < 4; k++) {
    values[row * 4 + k] = best[k];
    places[row * 4 + k] = at[k];
  }
}

// The place of the largest of each row of 1024: a block a row.
__global__ void arg_max(const float* x, int* places) {
  __shared__ float values[256];
  __shared__ int at[256];
  int tid = threadIdx.x;
  float best = x[blockIdx.x * 1024 + tid];
  int place = tid;
  for (int i = tid + 256; i < 1024; i += 256) {
    float v = x[blockIdx.x * 1024 + i];
    if (v > best) best = v, place = i;
  }
  values[tid] = best;
  at[tid] = place;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (tid < s) {
      if (values[tid + s] > values[tid] || (values[tid + s] == values[tid] && at[tid + s] < at[tid])) {
        values[tid] = values[tid + s];
        at[tid] = at[tid + s];
      }
    }
    __syncthreads();
  }
  if (tid == 0) places[blockIdx.x] = at[0];
}

// A block of 256 elements: each thread counts how many come before its own, and writes it there.
__global__ void by_rank(const int* x, int* y) {
  __shared__ int s[256];
  int tid = threadIdx.x, v = x[blockIdx.x * 256 + tid], rank = 0;
  s[tid] = v;
  __syncthreads();
  for (int i = 0; i < 256; i++) rank += s[i] < v || (s[i] == v && i < tid);
  y[blockIdx.x * 256 + rank] = v;
}

// Two sorted lists merged: each element looks up by halving how many of the other list come before it.
__global__ void merge_by_search(const int* __restrict__ a, const int* __restrict__ b, int* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 2 * n) return;
  const bool from_a = i < n;
  const int own = from_a ? i : i - n, v = from_a ? a[own] : b[own];
  const int* other = from_a ? b : a;
  int low = 0, high = n;
  while (low < high) {
    const int middle = (low + high) / 2, w = other[middle];
    if (from_a ? w < v : w <= v)
      low = middle + 1;
    else
      high = middle;
  }
  out[own + low] = v;
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14);
  float *x = memory<float>(n), *y = memory<float>(n);
  int *keys = memory<int>(n), *sorted = memory<int>(n), *places = memory<int>(n);
  std::vector<int> random(n), rising(n);
  std::vector<float> values(n);
  unsigned state = 7;
  for (int i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    random[i] = state >> 8;
    values[i] = state >> 8;
    rising[i] = i % (n / 2) * 5 + (state >> 30);
  }
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(keys, random.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(sorted, rising.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  measure("bitonic", [&] { bitonic<<<n / 1024, 512>>>(x, y); });
  measure("odd and even neighbours", [&] { odd_even<<<n / 128, 64>>>(keys, places); });
  measure("insertion", [&] { insertion<<<n / 16 / 128, 128>>>(keys, places, n); });
  measure("network of eight", [&] { network_of_8<<<n / 8 / 256, 256>>>(x, y, n / 8); });
  measure("four largest", [&] { top_4<<<(n / 64 + 127) / 128, 128>>>(x, y, places, n / 64); });
  measure("place of the largest", [&] { arg_max<<<n / 1024, 256>>>(x, places); });
  measure("by rank", [&] { by_rank<<<n / 256, 256>>>(keys, places); });
  measure("merge", [&] { merge_by_search<<<n / 192 + 1, 192>>>(sorted, sorted + n / 2, places, n / 2); });
}
