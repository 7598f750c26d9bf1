// Single operators: products of transposed, thin and triangular matrices, a diagonal, pooling, sums along rows, a norm.
// sizes: 64 1024 (the side of square matrices; other shapes follow from it)
#include "../micro/micro.h"

constexpr int INNER = 32, CUBE = 32, OUT = CUBE / 2;

// C = A^T B^T: A is K x M, B is N x K.
__global__ void matmul_both_transposed(const float* A, const float* B, float* C, int M, int N, int K) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= M || col >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; k++) sum += A[k * M + row] * B[col * K + k];
  C[row * N + col] = sum;
}

// A long matrix of few columns times a wide one of few rows: most of the work is to write the result.
__global__ void matmul_small_inner(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                                   int M, int N) {
  const int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  if (row >= M || col >= N) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < INNER; k++) sum += A[row * INNER + k] * B[k * N + col];
  C[row * N + col] = sum;
}

// diag(A) B: a row of blocks a row of the matrix, two elements a thread.
__global__ void diagonal_times_matrix(const float* a, const float2* B, float2* C, int cols2) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (col >= cols2) return;
  float2 v = B[row * cols2 + col];
  float scale = a[row];
  C[row * cols2 + col] = make_float2(v.x * scale, v.y * scale);
}

// The product of two upper triangular matrices: tiles that hold only zeros are left out.
__global__ void upper_times_upper_tiles(const float* A, const float* B, float* C, int n) {
  __shared__ float a[16][16], b[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int t = blockIdx.y; t <= blockIdx.x; t++) {
    a[ty][tx] = A[row * n + t * 16 + tx];
    b[ty][tx] = B[(t * 16 + ty) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += a[ty][k] * b[k][tx];
    __syncthreads();
  }
  C[row * n + col] = row <= col ? sum : 0.0f;
}

// The largest of windows of 3 x 3 x 3 in steps of two, with a border.
__global__ void maxpool_3d(const float* x, float* y, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int ow = i % OUT, oh = i / OUT % OUT, od = i / (OUT * OUT) % OUT, volume = i / (OUT * OUT * OUT);
  float best = -INFINITY;
  for (int d = od * 2 - 1; d <= od * 2 + 1; d++)
    for (int h = oh * 2 - 1; h <= oh * 2 + 1; h++)
      for (int w = ow * 2 - 1; w <= ow * 2 + 1; w++)
        if (d >= 0 && d < CUBE && h >= 0 && h < CUBE && w >= 0 && w < CUBE)
          best = fmaxf(best, x[((volume * CUBE + d) * CUBE + h) * CUBE + w]);
  y[i] = best;
}

// Sums along rows: a block a row, in pieces of 256 with a carry from piece to piece.
__global__ void cumsum_pieces(const float* x, float* y, int cols) {
  __shared__ float warp_sums[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float* in = x + (size_t)blockIdx.x * cols;
  float* out = y + (size_t)blockIdx.x * cols;
  float carry = 0.0f;
  for (int start = 0; start < cols; start += 256) {
    const int i = start + threadIdx.x;
    float v = i < cols ? in[i] : 0.0f;
    for (int offset = 1; offset < 32; offset *= 2) {
      const float before = __shfl_up_sync(0xffffffff, v, offset);
      if (lane >= offset) v += before;
    }
    if (lane == 31) warp_sums[warp] = v;
    __syncthreads();
    float before = carry;
    for (int w = 0; w < 8; w++) {
      if (w < warp) before += warp_sums[w];
      carry += warp_sums[w];
    }
    if (i < cols) out[i] = before + v;
    __syncthreads();
  }
}

// The mean of max(0, 1 - prediction * target); there is a target for each column.
__global__ void hinge_loss(const float* predictions, const float* targets, float* loss, int cols, int n) {
  __shared__ float partial[256];
  int tid = threadIdx.x;
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x)
    sum += fmaxf(0.0f, 1.0f - predictions[i] * targets[i % cols]);
  partial[tid] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (tid < s) partial[tid] += partial[tid + s];
    __syncthreads();
  }
  if (tid == 0) atomicAdd(loss, partial[0] / n);
}

// Frobenius norm, second step: every element divided by the root of the sum of squares.
__global__ void divide_by_norm(const float* x, const float* sum_of_squares, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / sqrtf(*sum_of_squares);
}

int main(int argc, char** argv) {
  const int side = size_of_run(argc, argv, 64), rows = side * 4, cols = side * 6, n = rows * cols;
  float *x = memory<float>(n), *z = memory<float>(n), *y = memory<float>(n), *one = memory<float>(1);
  std::vector<float> values(n);
  unsigned state = 45;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  std::reverse(values.begin(), values.end());
  CHECK(cudaMemcpy(z, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  measure("both transposed",
          [&] { matmul_both_transposed<<<dim3(side / 16, side / 16), dim3(16, 16)>>>(x, z, y, side, side, side); });
  measure("inner side of 32",
          [&] { matmul_small_inner<<<dim3(cols / 32, rows / 32), dim3(32, 32)>>>(x, z, y, rows, cols); });
  measure("diagonal times matrix", [&] {
    diagonal_times_matrix<<<dim3((cols / 2 + 255) / 256, rows), 256>>>(x, (float2*)z, (float2*)y, cols / 2);
  });
  measure("upper times upper, tiles",
          [&] { upper_times_upper_tiles<<<dim3(side / 16, side / 16), dim3(16, 16)>>>(x, z, y, side); });
  const int pooled = n / (CUBE * CUBE * CUBE) * OUT * OUT * OUT;
  measure("largest of cubes of 27", [&] { maxpool_3d<<<(pooled + 127) / 128, 128>>>(x, y, pooled); });
  measure("sums along rows, pieces", [&] { cumsum_pieces<<<rows, 256>>>(x, y, cols); });
  measure("hinge loss", [&] { hinge_loss<<<std::min(n / 1024, 1024), 256>>>(x, z, one, cols, n); });
  measure("divide by the norm", [&] { divide_by_norm<<<(n + 1023) / 1024, 1024>>>(x, one, y, n); });
}
