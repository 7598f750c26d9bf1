// title: matrix product with a struct of width, height and stride, by sub-matrices in shared memory
// features: shared_memory, matmul_tiled, device_structs
// args: 4 3 5

#include <cstdio>
#include <cstdlib>
#include <cmath>

// Matrices are stored in row-major order: M(row, col) = *(M.elements + row * M.stride + col)
typedef struct {
  int width;
  int height;
  int stride;
  float* elements;
} Matrix;

#define BLOCK_SIZE 16

#define cudaErrchk(ans) \
  { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char* file, int line, bool abort = true) {
  if (code != cudaSuccess) {
    fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
    if (abort) exit(code);
  }
}

__device__ float GetElement(const Matrix A, int row, int col) { return A.elements[row * A.stride + col]; }

__device__ void SetElement(Matrix A, int row, int col, float value) { A.elements[row * A.stride + col] = value; }

// The BLOCK_SIZE x BLOCK_SIZE sub-matrix of A that is col sub-matrices right of and row sub-matrices below the corner.
__device__ Matrix GetSubMatrix(Matrix A, int row, int col) {
  Matrix Asub;
  Asub.width = BLOCK_SIZE;
  Asub.height = BLOCK_SIZE;
  Asub.stride = A.stride;
  Asub.elements = &A.elements[A.stride * BLOCK_SIZE * row + BLOCK_SIZE * col];
  return Asub;
}

__global__ void MatMulSimple(Matrix A, Matrix B, Matrix C) {
  float Cvalue = 0;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  for (int e = 0; e < A.width; ++e) Cvalue += A.elements[row * A.width + e] * B.elements[e * B.width + col];
  C.elements[row * C.width + col] = Cvalue;
}

__global__ void MatMulKernel(Matrix A, Matrix B, Matrix C) {
  int blockRow = blockIdx.y;
  int blockCol = blockIdx.x;
  Matrix Csub = GetSubMatrix(C, blockRow, blockCol);
  float Cvalue = 0;
  int row = threadIdx.y;
  int col = threadIdx.x;

  for (int m = 0; m < (A.width / BLOCK_SIZE); ++m) {
    Matrix Asub = GetSubMatrix(A, blockRow, m);
    Matrix Bsub = GetSubMatrix(B, m, blockCol);
    __shared__ float As[BLOCK_SIZE][BLOCK_SIZE];
    __shared__ float Bs[BLOCK_SIZE][BLOCK_SIZE];
    As[row][col] = GetElement(Asub, row, col);
    Bs[row][col] = GetElement(Bsub, row, col);
    __syncthreads();
    for (int e = 0; e < BLOCK_SIZE; ++e) Cvalue += As[row][e] * Bs[e][col];
    __syncthreads();
  }
  SetElement(Csub, row, col, Cvalue);
}

// All dimensions are multiples of BLOCK_SIZE.
void MatMul(const Matrix A, const Matrix B, Matrix C, bool shared) {
  Matrix d_A;
  d_A.width = d_A.stride = A.width;
  d_A.height = A.height;
  size_t size = A.width * A.height * sizeof(float);
  cudaErrchk(cudaMalloc(&d_A.elements, size));
  cudaErrchk(cudaMemcpy(d_A.elements, A.elements, size, cudaMemcpyHostToDevice));
  Matrix d_B;
  d_B.width = d_B.stride = B.width;
  d_B.height = B.height;
  size = B.width * B.height * sizeof(float);
  cudaErrchk(cudaMalloc(&d_B.elements, size));
  cudaErrchk(cudaMemcpy(d_B.elements, B.elements, size, cudaMemcpyHostToDevice));
  Matrix d_C;
  d_C.width = d_C.stride = C.width;
  d_C.height = C.height;
  size = C.width * C.height * sizeof(float);
  cudaErrchk(cudaMalloc(&d_C.elements, size));

  dim3 dimBlock(BLOCK_SIZE, BLOCK_SIZE);
  dim3 dimGrid(B.width / dimBlock.x, A.height / dimBlock.y);
  if (shared)
    MatMulKernel<<<dimGrid, dimBlock>>>(d_A, d_B, d_C);
  else
    MatMulSimple<<<dimGrid, dimBlock>>>(d_A, d_B, d_C);
  cudaErrchk(cudaPeekAtLastError());
  cudaErrchk(cudaMemcpy(C.elements, d_C.elements, size, cudaMemcpyDeviceToHost));

  cudaFree(d_A.elements);
  cudaFree(d_B.elements);
  cudaFree(d_C.elements);
}

Matrix newMatrix(int height, int width, int seed) {
  Matrix m;
  m.height = height;
  m.width = m.stride = width;
  m.elements = (float*)malloc(width * height * sizeof(float));
  srand(seed);
  for (int i = 0; i < height; i++)
    for (int j = 0; j < width; j++) m.elements[i * width + j] = (float)((i * 13 + j * 7 + seed) % 17 - 8) / 4;
  return m;
}

int main(int argc, char* argv[]) {
  int a = argc > 1 ? atoi(argv[1]) : 4, b = argc > 2 ? atoi(argv[2]) : 3, c = argc > 3 ? atoi(argv[3]) : 5;
  Matrix A = newMatrix(a * BLOCK_SIZE, b * BLOCK_SIZE, 3), B = newMatrix(b * BLOCK_SIZE, c * BLOCK_SIZE, 5);
  Matrix C = newMatrix(a * BLOCK_SIZE, c * BLOCK_SIZE, 0);

  bool ok = true;
  for (int shared = 0; shared < 2; shared++) {
    MatMul(A, B, C, shared);
    double largest = 0, trace = 0;
    for (int i = 0; i < C.height; i++)
      for (int j = 0; j < C.width; j++) {
        double s = 0;
        for (int k = 0; k < A.width; k++) s += (double)A.elements[i * A.width + k] * B.elements[k * B.width + j];
        largest = fmax(largest, fabs(s - C.elements[i * C.width + j]));
        if (i == j) trace += C.elements[i * C.width + j];
      }
    printf("%s: %d x %d times %d x %d, trace %.3f, largest error %.3f\n", shared ? "shared" : "simple", A.height,
           A.width, B.height, B.width, trace, largest);
    ok = ok && largest < 1e-3;
  }
  free(A.elements);
  free(B.elements);
  free(C.elements);
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return !ok;
}
