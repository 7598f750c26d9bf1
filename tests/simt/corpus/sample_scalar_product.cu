// title: Scalar products of vector pairs and a matrix-vector product, several kernels for each
// features: shared_memory, warp_shuffles, restrict, vector_types, read_only_cache

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CU(call)                                                            \
  if ((call) != cudaSuccess) {                                              \
    printf("CUDA: %s\n", cudaGetErrorString(cudaPeekAtLastError()));        \
    exit(1);                                                                \
  }

#define IMUL(a, b) __mul24(a, b)
#define ACCUM_N 128

// Several pairs a block; accumulators in shared memory, then a tree.
__global__ void scalarProdGPU(float* d_C, const float* d_A, const float* d_B, int vectorN, int elementN) {
  __shared__ float accum[ACCUM_N];
  for (int vec = blockIdx.x; vec < vectorN; vec += gridDim.x) {
    int base = IMUL(elementN, vec), end = base + elementN;
    for (int a = threadIdx.x; a < ACCUM_N; a += blockDim.x) {
      float sum = 0;
      for (int pos = base + a; pos < end; pos += ACCUM_N) sum += d_A[pos] * d_B[pos];
      accum[a] = sum;
    }
    for (int stride = ACCUM_N / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      for (int a = threadIdx.x; a < stride; a += blockDim.x) accum[a] += accum[stride + a];
    }
    __syncthreads();
    if (threadIdx.x == 0) d_C[vec] = accum[0];
    __syncthreads();
  }
}

// A warp a row, four numbers at once.
__global__ void gemvRows(const float4* __restrict__ a, const float4* __restrict__ x, float* __restrict__ y, int rows, int cols4) {
  int row = blockIdx.x * (blockDim.x / warpSize) + threadIdx.x / warpSize;
  if (row >= rows) return;
  float sum = 0;
  for (int j = threadIdx.x % warpSize; j < cols4; j += warpSize) {
    float4 p = __ldg(&a[row * cols4 + j]), q = __ldg(&x[j]);
    sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
  }
  for (int o = warpSize / 2; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffff, sum, o);
  if (threadIdx.x % warpSize == 0) y[row] = sum;
}

// y = A^T x: a thread a column, a tile of x in shared memory.
__global__ void gemvColumns(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  __shared__ float tile[64];
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int r0 = 0; r0 < rows; r0 += 64) {
    if (threadIdx.x < 64 && r0 + (int)threadIdx.x < rows) tile[threadIdx.x] = x[r0 + threadIdx.x];
    __syncthreads();
    if (col < cols)
      for (int r = 0; r < min(64, rows - r0); r++) sum = fmaf(a[(r0 + r) * cols + col], tile[r], sum);
    __syncthreads();
  }
  if (col < cols) y[col] = sum;
}

int main() {
  const int pairs = 20, elements = 1000, rows = 150, cols = 200;
  std::vector<float> a(rows * cols > pairs * elements ? rows * cols : pairs * elements), b(pairs * elements), c(rows + cols + pairs);
  unsigned s = 3;
  for (auto& v : a) v = (float)((s = s * 1103515245u + 12345u) >> 16 & 255) / 128 - 1;
  for (auto& v : b) v = (float)((s = s * 1103515245u + 12345u) >> 16 & 255) / 128 - 1;
  float *da, *db, *dc;
  CU(cudaMalloc(&da, a.size() * sizeof(float)));
  CU(cudaMalloc(&db, b.size() * sizeof(float)));
  CU(cudaMalloc(&dc, c.size() * sizeof(float)));
  CU(cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CU(cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  scalarProdGPU<<<8, 64>>>(dc, da, db, pairs, elements);
  gemvRows<<<(rows + 3) / 4, 128>>>((const float4*)da, (const float4*)db, dc + pairs, rows, cols / 4);
  gemvColumns<<<(cols + 63) / 64, 64>>>(da, db, dc + pairs + rows, rows, cols);
  CU(cudaGetLastError());
  CU(cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CU(cudaFree(da));
  CU(cudaFree(db));
  CU(cudaFree(dc));
  double worst = 0, sums[3] = {0, 0, 0};
  for (int v = 0; v < pairs; v++) {
    double want = 0;
    for (int i = 0; i < elements; i++) want += (double)a[v * elements + i] * b[v * elements + i];
    worst = fmax(worst, fabs(want - c[v]));
    sums[0] += c[v];
  }
  for (int r = 0; r < rows; r++) {
    double want = 0;
    for (int j = 0; j < cols; j++) want += (double)a[r * cols + j] * b[j];
    worst = fmax(worst, fabs(want - c[pairs + r]));
    sums[1] += c[pairs + r];
  }
  for (int j = 0; j < cols; j++) {
    double want = 0;
    for (int r = 0; r < rows; r++) want += (double)a[r * cols + j] * b[r];
    worst = fmax(worst, fabs(want - c[pairs + rows + j]));
    sums[2] += c[pairs + rows + j];
  }
  printf("sums: products %.2f, rows %.2f, columns %.2f\n", sums[0], sums[1], sums[2]);
  bool ok = worst < 1e-3;
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
