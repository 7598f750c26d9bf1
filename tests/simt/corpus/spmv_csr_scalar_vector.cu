// title: sparse matrix times vector in CSR: a thread per row, a warp per row, a tile per row, and with balanced rows
// features: sparse_matrices, warp_shuffles, cooperative_groups, templates

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace cg = cooperative_groups;

inline void cuda_check(cudaError_t status, int line) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "CUDA: %s (line %d)\n", cudaGetErrorString(status), line);
  exit(3);
}
#define CUDA_CHECK(x) cuda_check((x), __LINE__)

struct CSRMatrix {
  int num_rows;
  int *rowPtrs;
  int *colIdx;
  float *values;
};

__global__ void spmv_csr_kernel(CSRMatrix csrMatrix, const float *x, float *y) {
  unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < csrMatrix.num_rows) {
    float sum = 0.0f;
    for (unsigned int i = csrMatrix.rowPtrs[row]; i < csrMatrix.rowPtrs[row + 1]; ++i)
      sum += x[csrMatrix.colIdx[i]] * csrMatrix.values[i];
    y[row] += sum;
  }
}

__global__ void spmv_csr_vector_kernel(CSRMatrix m, const float *x, float *y) {
  int thread_id = blockDim.x * blockIdx.x + threadIdx.x;
  int warp_id = thread_id / 32, lane = thread_id & 31;
  int row = warp_id;
  if (row >= m.num_rows) return;
  float partial = 0;
  for (int jj = m.rowPtrs[row] + lane; jj < m.rowPtrs[row + 1]; jj += 32) partial += m.values[jj] * x[m.colIdx[jj]];
  for (int offset = 16; offset > 0; offset /= 2) partial += __shfl_down_sync(0xFFFFFFFF, partial, offset);
  if (lane == 0) y[row] += partial;
}

template <int TILE>
__global__ void spmv_csr_tile_kernel(CSRMatrix m, const float *x, float *y) {
  auto tile = cg::tiled_partition<TILE>(cg::this_thread_block());
  for (int row = (blockIdx.x * blockDim.x + threadIdx.x) / TILE; row < m.num_rows;
       row += gridDim.x * blockDim.x / TILE) {
    float partial = 0;
    for (int i = m.rowPtrs[row] + tile.thread_rank(); i < m.rowPtrs[row + 1]; i += tile.size())
      partial += m.values[i] * x[m.colIdx[i]];
    float sum = cg::reduce(tile, partial, cg::plus<float>());
    if (tile.thread_rank() == 0) y[row] += sum;
  }
}

// Every thread takes the same number of elements, whatever the rows' lengths; sums are added atomically.
__global__ void spmv_balanced_kernel(CSRMatrix m, const float *x, float *y, int per_thread) {
  int nnz = m.rowPtrs[m.num_rows];
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
  if (first >= nnz) return;
  int low = 0, high = m.num_rows;  // the last row that starts at or before `first`
  while (high - low > 1) {
    int mid = (low + high) / 2;
    if (m.rowPtrs[mid] <= first)
      low = mid;
    else
      high = mid;
  }
  float sum = 0;
  for (int i = first; i < min(first + per_thread, nnz); i++) {
    while (i >= m.rowPtrs[low + 1]) {
      if (sum != 0) atomicAdd(&y[low], sum);
      sum = 0;
      low++;
    }
    sum += m.values[i] * x[m.colIdx[i]];
  }
  atomicAdd(&y[low], sum);
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 400, columns = 500;
  std::vector<int> rowPtrs(1, 0), colIdx;
  std::vector<float> values, x(columns), y(rows);
  for (int r = 0; r < rows; r++) {
    int length = r % 50 == 7 ? 180 : r % 11;  // a few long rows, some empty ones
    for (int e = 0; e < length; e++) {
      colIdx.push_back((r * 3 + e * (columns / (length + 1))) % columns);
      values.push_back((float)((r + 2 * e) % 9 - 4));
    }
    rowPtrs.push_back((int)colIdx.size());
  }
  for (int i = 0; i < columns; i++) x[i] = (float)(i % 7) - 2;
  int nnz = rowPtrs.back();
  printf("%d rows, %d columns, %d elements\n", rows, columns, nnz);

  CSRMatrix d = {rows, nullptr, nullptr, nullptr};
  float *d_x, *d_y;
  CUDA_CHECK(cudaMalloc(&d.rowPtrs, (rows + 1) * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&d.colIdx, nnz * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&d.values, nnz * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&d_x, columns * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&d_y, rows * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(d.rowPtrs, rowPtrs.data(), (rows + 1) * sizeof(int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d.colIdx, colIdx.data(), nnz * sizeof(int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d.values, values.data(), nnz * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d_x, x.data(), columns * sizeof(float), cudaMemcpyHostToDevice));

  std::vector<double> expected(rows, 1.0);
  for (int r = 0; r < rows; r++)
    for (int i = rowPtrs[r]; i < rowPtrs[r + 1]; i++) expected[r] += (double)values[i] * x[colIdx[i]];

  int failed = 0;
  const char *names[] = {"scalar", "vector", "tile of 8", "balanced"};
  std::vector<float> ones(rows, 1.0f);
  for (int version = 0; version < 4; version++) {
    CUDA_CHECK(cudaMemcpy(d_y, ones.data(), rows * sizeof(float), cudaMemcpyHostToDevice));
    switch (version) {
      case 0: spmv_csr_kernel<<<(rows + 127) / 128, 128>>>(d, d_x, d_y); break;
      case 1: spmv_csr_vector_kernel<<<(rows * 32 + 127) / 128, 128>>>(d, d_x, d_y); break;
      case 2: spmv_csr_tile_kernel<8><<<10, 64>>>(d, d_x, d_y); break;
      case 3: spmv_balanced_kernel<<<(nnz / 16 + 64) / 64, 64>>>(d, d_x, d_y, 16);
    }
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(y.data(), d_y, rows * sizeof(float), cudaMemcpyDeviceToHost));
    double norm = 0;
    int wrong = 0;
    for (int r = 0; r < rows; r++) {
      wrong += y[r] != expected[r];
      norm += (double)y[r] * y[r];
    }
    printf("%-10s |y| = %.4f, wrong rows: %d\n", names[version], sqrt(norm), wrong);
    failed += wrong != 0;
  }
  CUDA_CHECK(cudaFree(d.rowPtrs));
  CUDA_CHECK(cudaFree(d.colIdx));
  CUDA_CHECK(cudaFree(d.values));
  CUDA_CHECK(cudaFree(d_x));
  CUDA_CHECK(cudaFree(d_y));
  puts(failed ? "FAILED" : "PASSED");
  return failed ? 1 : 0;
}
