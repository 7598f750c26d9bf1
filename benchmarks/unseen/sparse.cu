// Sparse matrices of short random rows times a vector and a narrow matrix: a thread a row, a warp a row, and others.
// sizes: 9 18 (log2 of the rows)
#include "../micro/micro.h"

constexpr int LONGEST = 32, WIDTH = 32;

__global__ void thread_a_row(int* start, int* column, float* value, float* x, float* y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float sum = 0.0f;
    for (int i = start[row]; i < start[row + 1]; i++) sum += value[i] * x[column[i]];
    y[row] = sum;
  }
}

__global__ void warp_a_row(int* start, int* column, float* value, float* x, float* y, int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = start[row] + lane; i < start[row + 1]; i += 32) sum += value[i] * x[column[i]];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) y[row] = sum;
}

// Every element knows its row.
__global__ void element_a_thread(int* row, int* column, float* value, float* x, float* y, int elements) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) atomicAdd(&y[row[i]], value[i] * x[column[i]]);
}

// Times a matrix of WIDTH columns: a warp a row, a lane a column.
__global__ void narrow_matrix(const int* start, const int* column, const float* value, const float* x, float* y,
                              int rows) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = start[row]; i < start[row + 1]; i++) sum += value[i] * x[column[i] * WIDTH + threadIdx.x];
  y[row * WIDTH + threadIdx.x] = sum;
}

int* copied(const std::vector<int>& host) {
  int* p = memory<int>(host.size());
  CHECK(cudaMemcpy(p, host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice));
  return p;
}

int main(int argc, char** argv) {
  const int rows = 1 << size_of_run(argc, argv, 9);
  std::vector<int> starts(1, 0), columns, rows_of;
  unsigned state = 7;
  for (int r = 0; r < rows; r++) {
    state = state * 1664525u + 1013904223u;
    const int length = (state >> 16) % LONGEST;
    for (int i = 0; i < length; i++) {
      state = state * 1664525u + 1013904223u;
      columns.push_back((state >> 8) % rows);
      rows_of.push_back(r);
    }
    starts.push_back(columns.size());
  }
  const int elements = columns.size();
  int *start = copied(starts), *column = copied(columns), *row = copied(rows_of);
  float *value = memory<float>(elements), *x = memory<float>((size_t)rows * WIDTH);
  float* y = memory<float>((size_t)rows * WIDTH);
  measure("a thread a row", [&] { thread_a_row<<<rows / 128, 128>>>(start, column, value, x, y, rows); });
  measure("a warp a row", [&] { warp_a_row<<<rows / 8, 256>>>(start, column, value, x, y, rows); });
  measure("a thread an element",
          [&] { element_a_thread<<<(elements + 255) / 256, 256>>>(row, column, value, x, y, elements); });
  measure("times a narrow matrix",
          [&] { narrow_matrix<<<rows / 4, dim3(WIDTH, 4)>>>(start, column, value, x, y, rows); });
}
