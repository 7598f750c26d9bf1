// Many small matrices: products of 4 x 4 and 16 x 16, and inverses of 3 x 3.
// sizes: 8 17 (log2 of the number of 16 x 16 matrices; of the others there are 16 times as many)
#include "../micro/micro.h"

__global__ void products_4x4(float* A, float* B, float* C, int count) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= count) return;
  float* a = A + m * 16;
  float* b = B + m * 16;
  float* c = C + m * 16;
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 4; j++) {
      float sum = 0.0f;
      for (int k = 0; k < 4; k++) sum += a[i * 4 + k] * b[k * 4 + j];
      c[i * 4 + j] = sum;
    }
  }
}

__global__ void products_16x16(float* A, float* B, float* C) {
  __shared__ float a[16][16], b[16][16];
  int i = threadIdx.y, j = threadIdx.x;
  size_t at = blockIdx.x * (size_t)256 + i * 16 + j;
  a[i][j] = A[at];
  b[i][j] = B[at];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 16; k++) sum += a[i][k] * b[k][j];
  C[at] = sum;
}

// The inverse of A + I.
__global__ void inverses_3x3(const float* A, float* B, int count) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= count) return;
  float a = A[m * 9] + 1.0f, b = A[m * 9 + 1], c = A[m * 9 + 2];
  float d = A[m * 9 + 3], e = A[m * 9 + 4] + 1.0f, f = A[m * 9 + 5];
  float g = A[m * 9 + 6], h = A[m * 9 + 7], i = A[m * 9 + 8] + 1.0f;
  float determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
  B[m * 9] = (e * i - f * h) / determinant;
  B[m * 9 + 1] = (c * h - b * i) / determinant;
  B[m * 9 + 2] = (b * f - c * e) / determinant;
  B[m * 9 + 3] = (f * g - d * i) / determinant;
  B[m * 9 + 4] = (a * i - c * g) / determinant;
  B[m * 9 + 5] = (c * d - a * f) / determinant;
  B[m * 9 + 6] = (d * h - e * g) / determinant;
  B[m * 9 + 7] = (b * g - a * h) / determinant;
  B[m * 9 + 8] = (a * e - b * d) / determinant;
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 8), small = 16 * n;
  float *A = memory<float>((size_t)n * 256), *B = memory<float>((size_t)n * 256), *C = memory<float>((size_t)n * 256);
  measure("4 x 4, a thread each", [&] { products_4x4<<<small / 128, 128>>>(A, B, C, small); });
  measure("16 x 16, a block each", [&] { products_16x16<<<n, dim3(16, 16)>>>(A, B, C); });
  measure("inverses of 3 x 3", [&] { inverses_3x3<<<small / 256, 256>>>(A, B, small); });
}
