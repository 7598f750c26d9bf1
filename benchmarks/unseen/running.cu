// What runs along a row or a column: sums and largest so far, recurrences, and sums over long lists in three kernels.
// sizes: 64 16384 (rows)
#include "../micro/micro.h"

constexpr int WIDTH = 1024, SHORT = 128;

// A thread a row, neighbours a row apart.
__global__ void sums_by_thread(float* x, float* y, int rows, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < width; i++) {
    sum += x[row * width + i];
    y[row * width + i] = sum;
  }
}

// A block a row, 128 elements at a time; the sum so far is carried along.
__global__ void sums_by_block(const float* x, float* y) {
  __shared__ float warps[4];
  __shared__ float carry;
  int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  if (tid == 0) carry = 0.0f;
  __syncthreads();
  for (int first = 0; first < WIDTH; first += 128) {
    float v = x[blockIdx.x * WIDTH + first + tid];
    for (int offset = 1; offset < 32; offset *= 2) {
      float before = __shfl_up_sync(0xffffffff, v, offset);
      if (lane >= offset) v += before;
    }
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    v += carry;
    for (int w = 0; w < warp; w++) v += warps[w];
    y[blockIdx.x * WIDTH + first + tid] = v;
    __syncthreads();
    if (tid == 127) carry = v;
    __syncthreads();
  }
}

// From the end of the row to its start: a warp a row, four elements a lane.
__global__ void sums_from_the_end(const float4* __restrict__ x, float4* __restrict__ y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const int at = row * (SHORT / 4) + lane;
  float4 v = x[at];
  v.z += v.w, v.y += v.z, v.x += v.y;
  float sum = v.x;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const float after = __shfl_down_sync(0xffffffff, sum, offset);
    if (lane + offset < 32) sum += after;
  }
  const float after = sum - v.x;
  y[at] = make_float4(v.x + after, v.y + after, v.z + after, v.w + after);
}

// The largest so far down each column, and where it was.
__global__ void largest_so_far(const float* x, float* y, long long* places, int rows) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  x += (size_t)blockIdx.y * rows * WIDTH + column;
  y += (size_t)blockIdx.y * rows * WIDTH + column;
  places += (size_t)blockIdx.y * rows * WIDTH + column;
  float largest = -INFINITY;
  long long place = 0;
  for (int row = 0; row < rows; row++) {
    float v = x[row * WIDTH];
    if (v >= largest) {
      largest = v;
      place = row;
    }
    y[row * WIDTH] = largest;
    places[row * WIDTH] = place;
  }
}

// A gated recurrence of each channel over time: a thread a channel of a sequence.
__global__ void recurrence(const float* __restrict__ x, const float* __restrict__ gate, float* __restrict__ y,
                           int steps) {
  const int channel = blockIdx.x * blockDim.x + threadIdx.x;
  size_t i = (size_t)blockIdx.y * steps * WIDTH + channel;
  float h = 0.0f;
#pragma unroll 4
  for (int t = 0; t < steps; t++, i += WIDTH) {
    const float g = gate[i];
    h = g * h + (1.0f - g) * x[i];
    y[i] = h;
  }
}

// Sums over a list, first kernel: a sum for each 2048 elements.
__global__ void sums_of_parts(const int* x, int* sums) {
  __shared__ int part[256];
  int tid = threadIdx.x, sum = 0;
  for (int k = 0; k < 8; k++) sum += x[blockIdx.x * 2048 + k * 256 + tid];
  part[tid] = sum;
  for (int s = 128; s > 0; s /= 2) {
    __syncthreads();
    if (tid < s) part[tid] += part[tid + s];
  }
  if (tid == 0) sums[blockIdx.x] = part[0];
}

// Second kernel: one block makes of them the sums of what comes before, 1024 at a time.
__global__ void sums_before_parts(const int* sums, int* before, int n) {
  __shared__ int part[1024];
  int carry = 0;
  for (int first = 0; first < n; first += 1024) {
    int i = first + threadIdx.x;
    part[threadIdx.x] = i < n ? sums[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < 1024; offset *= 2) {
      int v = threadIdx.x >= offset ? part[threadIdx.x - offset] : 0;
      __syncthreads();
      part[threadIdx.x] += v;
      __syncthreads();
    }
    if (i < n) before[i] = carry + part[threadIdx.x] - sums[i];
    carry += part[1023];
    __syncthreads();
  }
}

// Third kernel: the sums within each part, of eight elements a thread, on top of what comes before.
__global__ void sums_within_parts(const int4* x, const int* before, int4* y) {
  __shared__ int warps[8];
  int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  int at = blockIdx.x * 512 + tid * 2;
  int4 a = x[at], b = x[at + 1];
  a.y += a.x, a.z += a.y, a.w += a.z;
  b.x += a.w, b.y += b.x, b.z += b.y, b.w += b.z;
  int sum = b.w;
  for (int offset = 1; offset < 32; offset *= 2) {
    int v = __shfl_up_sync(0xffffffff, sum, offset);
    if (lane >= offset) sum += v;
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  int start = before[blockIdx.x] + sum - b.w;
  for (int w = 0; w < warp; w++) start += warps[w];
  y[at] = make_int4(a.x + start, a.y + start, a.z + start, a.w + start);
  y[at + 1] = make_int4(b.x + start, b.y + start, b.z + start, b.w + start);
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 64), n = rows * WIDTH, parts = n / 2048;
  float *x = memory<float>(n), *gate = memory<float>(n), *y = memory<float>(n);
  long long* places = memory<long long>(n);
  int *counts = memory<int>(n), *made = memory<int>(n), *sums = memory<int>(parts), *before = memory<int>(parts);
  CHECK(cudaMemset(counts, 0, n * sizeof(int)));
  CHECK(cudaMemset(sums, 0, parts * sizeof(int)));
  measure("sums, a thread a row", [&] { sums_by_thread<<<(n / SHORT + 63) / 64, 64>>>(x, y, n / SHORT, SHORT); });
  measure("sums, a block a row", [&] { sums_by_block<<<rows, 128>>>(x, y); });
  measure("sums from the end", [&] { sums_from_the_end<<<n / SHORT / 8, 256>>>((float4*)x, (float4*)y, n / SHORT); });
  measure("largest so far", [&] { largest_so_far<<<dim3(WIDTH / 128, rows / 64), 128>>>(x, y, places, 64); });
  measure("recurrence", [&] { recurrence<<<dim3(WIDTH / 64, 16), 64>>>(x, gate, y, rows / 16); });
  measure("sums of parts", [&] { sums_of_parts<<<parts, 256>>>(counts, sums); });
  measure("sums before parts", [&] { sums_before_parts<<<1, 1024>>>(sums, before, parts); });
  measure("sums within parts", [&] { sums_within_parts<<<parts, 256>>>((int4*)counts, before, (int4*)made); });
}
