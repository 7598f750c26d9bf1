// Sparse matrices in other forms: padded rows, lists of elements, columns, blocks of 4 x 4; and steps over graphs.
// sizes: 9 18 (log2 of the rows)
#include "../micro/micro.h"

constexpr int PADDED = 16, DEPTH = 64, DENSE = 2048;

// Every row has 16 places, filled up with zeros; the first places of all rows lie side by side.
__global__ void padded_rows(const int* column, const float* value, const float* x, float* y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = 0; k < PADDED; k++) {
    int c = column[k * rows + row];
    if (c >= 0) sum += value[k * rows + row] * x[c];
  }
  y[row] = sum;
}

// A warp has 32 elements of a list in order of rows; lanes of the same row add up before one of them adds to memory.
__global__ void elements_by_segments(const int* __restrict__ row, const int* __restrict__ column,
                                     const float* __restrict__ value, const float* __restrict__ x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const int own = i < n ? row[i] : -1;
  float sum = i < n ? value[i] * x[column[i]] : 0.0f;
  for (int offset = 1; offset < 32; offset *= 2) {
    const float other = __shfl_up_sync(0xffffffff, sum, offset);
    const int other_row = __shfl_up_sync(0xffffffff, own, offset);
    if (lane >= offset && other_row == own) sum += other;
  }
  const int next = __shfl_down_sync(0xffffffff, own, 1);
  if (own >= 0 && (lane == 31 || next != own)) atomicAdd(&y[own], sum);
}

// The lists are those of columns: a thread a column adds to the rows.
__global__ void columns_add(const int* start, const int* row, const float* value, const float* x, float* y,
                            int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float v = x[column];
  for (int i = start[column]; i < start[column + 1]; i++) atomicAdd(&y[row[i]], value[i] * v);
}

// Blocks of 4 x 4, four in each row of blocks: a thread a row, a float4 of the matrix and of the vector at a time.
__global__ void blocks_of_4x4(const int* column, const float4* value, const float4* x, float* y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int b = row / 4 * 4; b < row / 4 * 4 + 4; b++) {
    float4 v = value[b * 4 + row % 4], other = x[column[b]];
    sum += v.x * other.x + v.y * other.y + v.z * other.z + v.w * other.w;
  }
  y[row] = sum;
}

// Of a product of two dense matrices, only the elements that a list names: half a warp each.
__global__ void sampled_products(const int* __restrict__ row, const int* __restrict__ column,
                                 const float4* __restrict__ a, const float4* __restrict__ b, float* __restrict__ out,
                                 int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 16, lane = threadIdx.x % 16;
  float sum = 0.0f;
  if (i < n) {
    const float4 u = a[row[i] * (DEPTH / 4) + lane], v = b[column[i] * (DEPTH / 4) + lane];
    sum = u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
  }
  for (int offset = 8; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset, 16);
  if (i < n && lane == 0) out[i] = sum;
}

// Rows written out with all their zeros: a block a row clears it and sets what is there.
__global__ void to_dense(const int* start, const int* column, const float* value, float* dense) {
  int row = blockIdx.x;
  for (int i = threadIdx.x; i < DENSE; i += blockDim.x) dense[row * DENSE + i] = 0.0f;
  __syncthreads();
  for (int i = start[row] + threadIdx.x; i < start[row + 1]; i += blockDim.x)
    atomicAdd(&dense[row * DENSE + column[i] % DENSE], value[i]);
}

// A step through a graph: the neighbours of all nodes at one distance are one further away, if not nearer.
__global__ void next_distance(int* start, int* column, int* distance, int* next, int now, int nodes) {
  int node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= nodes) return;
  if (distance[node] != now) return;
  for (int i = start[node]; i < start[node + 1]; i++) {
    int other = column[i];
    if (distance[other] > now + 1) atomicMin(&next[other], now + 1);
  }
}

// Doubles, eight lanes a row.
__global__ void eight_lanes_a_row(const int* start, const int* column, const double* value, const double* x, double* y,
                                  int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
  double sum = 0.0;
  if (row < rows)
    for (int i = start[row] + lane; i < start[row + 1]; i += 8) sum += value[i] * x[column[i]];
  for (int offset = 4; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset, 8);
  if (row < rows && lane == 0) y[row] = sum;
}

// How many neighbours the two ends of each edge have in common: their sorted lists are walked side by side.
__global__ void common_neighbours(const int* start, const int* row, const int* column, int* common, int edges) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges) return;
  int a = start[row[e]], a_end = start[row[e] + 1], b = start[column[e]], b_end = start[column[e] + 1];
  int count = 0;
  while (a < a_end && b < b_end) {
    int u = column[a], v = column[b];
    if (u == v) count++;
    if (u <= v) a++;
    if (v <= u) b++;
  }
  common[e] = count;
}

template <class T>
T* copied(const std::vector<T>& host) {
  T* p = memory<T>(host.size());
  CHECK(cudaMemcpy(p, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}

int main(int argc, char** argv) {
  const int rows = 1 << size_of_run(argc, argv, 9);
  std::vector<int> starts(1, 0), columns, rows_of, padded((size_t)rows * PADDED, -1), distances(rows);
  unsigned state = 22;
  auto random = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (int r = 0; r < rows; r++) {
    const int length = 1 + random() % PADDED;
    for (int i = 0; i < length; i++) {
      columns.push_back(random() % rows);
      rows_of.push_back(r);
    }
    std::sort(columns.end() - length, columns.end());
    for (int i = 0; i < length; i++) padded[(size_t)i * rows + r] = columns[starts[r] + i];
    starts.push_back(columns.size());
    distances[r] = random() % 3 ? 100 : random() % 2;
  }
  const int elements = columns.size(), blocks = rows;
  std::vector<int> block_columns(blocks);
  for (int& c : block_columns) c = random() % (rows / 4);
  int *start = copied(starts), *column = copied(columns), *row = copied(rows_of), *places = copied(padded);
  int *distance = copied(distances), *next = copied(distances), *block_column = copied(block_columns);
  float* value = memory<float>((size_t)rows * 2 * PADDED);
  float *x = memory<float>((size_t)rows * DEPTH), *z = memory<float>((size_t)rows * DEPTH);
  const int dense_rows = std::min(rows, 8192);
  float* y = memory<float>(std::max((size_t)rows * PADDED, (size_t)dense_rows * DENSE));
  measure("padded rows", [&] { padded_rows<<<rows / 128, 128>>>(places, value, x, y, rows); });
  measure("elements, segments",
          [&] { elements_by_segments<<<(elements + 255) / 256, 256>>>(row, column, value, x, y, elements); });
  measure("columns", [&] { columns_add<<<rows / 128, 128>>>(start, column, value, x, y, rows); });
  measure("blocks of 4 x 4",
          [&] { blocks_of_4x4<<<rows / 256, 256>>>(block_column, (float4*)value, (float4*)x, y, rows); });
  measure("sampled products",
          [&] { sampled_products<<<(elements + 7) / 8, 128>>>(row, column, (float4*)x, (float4*)z, y, elements); });
  measure("dense", [&] { to_dense<<<dense_rows, 128>>>(start, column, value, y); });
  measure("next distance", [&] { next_distance<<<rows / 128, 128>>>(start, column, distance, next, 0, rows); });
  measure("doubles, eight lanes",
          [&] { eight_lanes_a_row<<<rows / 32, 256>>>(start, column, (double*)value, (double*)x, (double*)y, rows); });
  measure("common neighbours",
          [&] { common_neighbours<<<(elements + 127) / 128, 128>>>(start, row, column, (int*)y, elements); });
}
