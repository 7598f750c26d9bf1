// Reductions as students hand them in: log-sum-exp, softmax, smallest, largest, mean, norms and dot products of rows.
// sizes: 64 6144 (rows of 2048 floats; 32 of them are an image of 64 channels of 32 x 32 as well)
#include "../micro/micro.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;
constexpr int COLS = 2048, CHANNELS = 64, PIXELS = 32 * 32;

// Over channels, a thread a pixel; the sum is a careful one.
__global__ void logsumexp_kahan(const float* x, float* y, int C, int pixels, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const float* in = x + i / pixels * C * pixels + i % pixels;
  float top = -INFINITY;
  for (int c = 0; c < C; c++) top = fmaxf(top, in[c * pixels]);
  float sum = 0.0f, lost = 0.0f;
  for (int c = 0; c < C; c++) {
    float term = expf(in[c * pixels] - top) - lost;
    float next = sum + term;
    lost = next - sum - term;
    sum = next;
  }
  y[i] = top + logf(sum);
}

// A warp a row: the largest and then the sum by shuffles that leave them in all lanes.
__global__ void logsumexp_warp_row(const float* __restrict__ x, float* __restrict__ y, int rows) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* in = x + (size_t)row * COLS;
  float top = -INFINITY;
  for (int i = lane; i < COLS; i += 32) top = fmaxf(top, in[i]);
  for (int mask = 16; mask > 0; mask /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, mask));
  float sum = 0.0f;
  for (int i = lane; i < COLS; i += 32) sum += __expf(in[i] - top);
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffff, sum, mask);
  if (lane == 0) y[row] = top + logf(sum);
}

// A block a row, eight elements a thread in registers.
__global__ void softmax_registers(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float partial[256];
  const int tid = threadIdx.x;
  const float* in = x + (size_t)blockIdx.x * COLS;
  float v[8], top = -INFINITY, sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    v[j] = in[tid + j * 256];
    top = fmaxf(top, v[j]);
  }
  partial[tid] = top;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (tid < s) partial[tid] = fmaxf(partial[tid], partial[tid + s]);
    __syncthreads();
  }
  top = partial[0];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 8; j++) {
    v[j] = expf(v[j] - top);
    sum += v[j];
  }
  partial[tid] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (tid < s) partial[tid] += partial[tid + s];
    __syncthreads();
  }
  const float scale = 1.0f / partial[0];
#pragma unroll
  for (int j = 0; j < 8; j++) y[(size_t)blockIdx.x * COLS + tid + j * 256] = v[j] * scale;
}

// Where each column is smallest: 32 columns a block, every eighth row a thread.
__global__ void argmin_columns(const float* x, int* where, int rows, int cols) {
  __shared__ float s_value[8][32];
  __shared__ int s_row[8][32];
  int col = blockIdx.x * 32 + threadIdx.x;
  float best = INFINITY;
  int best_row = 0;
  for (int r = threadIdx.y; r < rows; r += 8) {
    float v = x[r * cols + col];
    if (v < best) {
      best = v;
      best_row = r;
    }
  }
  s_value[threadIdx.y][threadIdx.x] = best;
  s_row[threadIdx.y][threadIdx.x] = best_row;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int k = 1; k < 8; k++) {
      float v = s_value[k][threadIdx.x];
      int r = s_row[k][threadIdx.x];
      if (v < best || (v == best && r < best_row)) {
        best = v;
        best_row = r;
      }
    }
    where[col] = best_row;
  }
}

// The largest of all: the order of floats that are not negative is that of their bits.
__global__ void largest_magnitude(const float* x, int* result, int n) {
  float top = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) top = fmaxf(top, fabsf(x[i]));
  for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_down_sync(0xffffffff, top, offset));
  if (threadIdx.x % 32 == 0) atomicMax(result, __float_as_int(top));
}

// Means of planes: a cooperative group of 32 threads has one plane.
__global__ void mean_cooperative(const float* x, float* mean, int planes) {
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(cg::this_thread_block());
  int plane = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (plane >= planes) return;
  float sum = 0.0f;
  for (int i = tile.thread_rank(); i < PIXELS; i += tile.size()) sum += x[plane * PIXELS + i];
  for (int offset = tile.size() / 2; offset > 0; offset /= 2) sum += tile.shfl_down(sum, offset);
  if (tile.thread_rank() == 0) mean[plane] = sum / PIXELS;
}

// Norms of rows: sixteen lanes a row, four elements a load.
__global__ void row_norms_16_lanes(const float4* __restrict__ x, float* __restrict__ norms, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 16, lane = threadIdx.x % 16;
  float sum = 0.0f;
  if (row < rows)
    for (int i = lane; i < COLS / 4; i += 16) {
      const float4 v = x[(size_t)row * (COLS / 4) + i];
      sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
  for (int offset = 8; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset, 16);
  if (lane == 0 && row < rows) norms[row] = sqrtf(sum);
}

// Dot products of the rows of two matrices, added up in double precision.
__global__ void row_dots_double(const float* a, const float* b, float* dots, int cols) {
  __shared__ double partial[128];
  double sum = 0.0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    sum += (double)a[blockIdx.x * cols + i] * b[blockIdx.x * cols + i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) dots[blockIdx.x] = partial[0];
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 64), n = rows * COLS, pixels = n / CHANNELS, planes = n / PIXELS;
  float *x = memory<float>(n), *z = memory<float>(n), *y = memory<float>(n);
  int* where = memory<int>(COLS);
  std::vector<float> values(n);
  unsigned state = 43;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  std::reverse(values.begin(), values.end());
  CHECK(cudaMemcpy(z, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(where, 0, COLS * sizeof(int)));
  measure("log-sum-exp of channels, careful",
          [&] { logsumexp_kahan<<<(pixels + 255) / 256, 256>>>(x, y, CHANNELS, PIXELS, pixels); });
  measure("log-sum-exp, a warp a row", [&] { logsumexp_warp_row<<<(rows + 3) / 4, 128>>>(x, y, rows); });
  measure("softmax, eight in registers", [&] { softmax_registers<<<rows, 256>>>(x, y); });
  measure("smallest of columns", [&] { argmin_columns<<<COLS / 32, dim3(32, 8)>>>(x, where, rows, COLS); });
  measure("largest magnitude", [&] { largest_magnitude<<<std::min(n / 1024, 528), 512>>>(x, where, n); });
  measure("means, cooperative groups", [&] { mean_cooperative<<<(planes + 7) / 8, 256>>>(x, y, planes); });
  measure("norms, sixteen lanes a row", [&] { row_norms_16_lanes<<<(rows + 3) / 4, 64>>>((float4*)x, y, rows); });
  measure("dot products of rows in double", [&] { row_dots_double<<<rows, 128>>>(x, z, y, COLS); });
}
