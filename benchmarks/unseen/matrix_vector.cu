// A matrix times a vector, a thread, a warp or a block a row; a vector times a matrix; an outer product.
// sizes: 256 8192 (the side)
#include "../micro/micro.h"

__global__ void thread_a_row(float* A, float* x, float* y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    float sum = 0.0f;
    for (int j = 0; j < n; j++) sum += A[row * n + j] * x[j];
    y[row] = sum;
  }
}

__global__ void warp_a_row(float* A, float* x, float* y, int n) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (row >= n) return;
  float sum = 0.0f;
  for (int j = lane; j < n; j += 32) sum += A[row * n + j] * x[j];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) y[row] = sum;
}

__global__ void block_a_row(const float4* A, const float4* x, float* y, int n) {
  __shared__ float part[128];
  float sum = 0.0f;
  for (int j = threadIdx.x; j < n / 4; j += 128) {
    float4 a = A[blockIdx.x * (n / 4) + j], v = x[j];
    sum += a.x * v.x + a.y * v.y + a.z * v.z + a.w * v.w;
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

// y = x A, with 64 elements of x at a time in shared memory.
__global__ void vector_matrix(float* A, float* x, float* y, int n) {
  __shared__ float part[64];
  int column = blockIdx.x * 64 + threadIdx.x;
  float sum = 0.0f;
  for (int first = 0; first < n; first += 64) {
    part[threadIdx.x] = x[first + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < 64; k++) sum += part[k] * A[(first + k) * n + column];
    __syncthreads();
  }
  y[column] = sum;
}

__global__ void lower_triangle(float* A, float* x, float* y, int n) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  for (int j = threadIdx.x; j <= row; j += 32) sum += A[row * n + j] * x[j];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (threadIdx.x == 0) y[row] = sum;
}

__global__ void outer_product(float* x, float* y, float* A, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < n && column < n) A[row * n + column] += 0.001f * x[row] * y[column];
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 256);
  float *A = memory<float>((size_t)n * n), *x = memory<float>(n), *y = memory<float>(n);
  measure("a thread a row", [&] { thread_a_row<<<n / 128, 128>>>(A, x, y, n); });
  measure("a warp a row", [&] { warp_a_row<<<n / 8, 256>>>(A, x, y, n); });
  measure("a block a row, float4", [&] { block_a_row<<<n, 128>>>((float4*)A, (float4*)x, y, n); });
  measure("vector times matrix", [&] { vector_matrix<<<n / 64, 64>>>(A, x, y, n); });
  measure("lower triangle", [&] { lower_triangle<<<n / 4, dim3(32, 4)>>>(A, x, y, n); });
  measure("outer product", [&] { outer_product<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(x, x, A, n); });
}
