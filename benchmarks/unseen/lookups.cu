// Reads and writes at places that lie in memory: rows of embeddings, chosen columns, shuffled elements, tables.
// sizes: 6 17 (log2 of the rows)
#include "../micro/micro.h"

constexpr int WORDS = 30000, DEPTH = 256, COLUMNS = 512, TABLE = 256;

__constant__ float constant_table[TABLE];

__global__ void embedding(int* words, float* table, float* y) {
  int word = words[blockIdx.x];
  y[blockIdx.x * DEPTH + threadIdx.x] = table[word * DEPTH + threadIdx.x];
}

// A thread a row: it copies the row from its first element to its last.
__global__ void embedding_thread(int* words, float* table, float* y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int word = words[row];
  for (int d = 0; d < DEPTH; d++) y[row * DEPTH + d] = table[word * DEPTH + d];
}

// Some of the columns of a matrix, in any order.
__global__ void choose_columns(float* x, int* columns, float* y, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int row = i / (COLUMNS / 4);
  int j = i % (COLUMNS / 4);
  y[i] = x[row * COLUMNS + columns[j]];
}

__global__ void take(const float* x, const int* at, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[at[i]];
}

__global__ void table_shared(unsigned char* x, float* table, float* y, int n) {
  __shared__ float part[TABLE];
  part[threadIdx.x] = table[threadIdx.x];
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = part[x[i]];
}

// The table is in constant memory, which is made for one address a warp.
__global__ void table_constant(unsigned char* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = constant_table[x[i]];
}

template <class T>
std::vector<T> random_below(int n, int limit) {
  std::vector<T> host(n);
  unsigned state = 12345;
  for (T& v : host) {
    state = state * 1664525u + 1013904223u;
    v = (state >> 8) % limit;
  }
  return host;
}

int* copied(const std::vector<int>& host) {
  int* p = memory<int>(host.size());
  CHECK(cudaMemcpy(p, host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice));
  return p;
}

int main(int argc, char** argv) {
  const int rows = 1 << size_of_run(argc, argv, 6);
  const int chosen = rows * (COLUMNS / 4), bytes = rows * 128, taken = rows * 32;
  float *table = memory<float>(WORDS * DEPTH), *x = memory<float>((size_t)rows * COLUMNS);
  float* y = memory<float>((size_t)rows * DEPTH);
  int *words = copied(random_below<int>(rows, WORDS)), *columns = copied(random_below<int>(COLUMNS / 4, COLUMNS));
  int* at = copied(random_below<int>(taken, rows * 128));
  const auto shades = random_below<unsigned char>(taken, TABLE);
  unsigned char* levels = memory<unsigned char>(bytes);
  for (int i = 0; i < bytes; i += taken) CHECK(cudaMemcpy(levels + i, shades.data(), taken, cudaMemcpyHostToDevice));
  std::vector<float> curve(TABLE);
  for (int i = 0; i < TABLE; i++) curve[i] = i * (1.0f / TABLE) * i;
  CHECK(cudaMemcpyToSymbol(constant_table, curve.data(), TABLE * sizeof(float)));
  measure("embedding", [&] { embedding<<<rows, DEPTH>>>(words, table, y); });
  measure("embedding, a thread a row", [&] { embedding_thread<<<rows / 64, 64>>>(words, table, y, rows); });
  measure("chosen columns", [&] { choose_columns<<<chosen / 256, 256>>>(x, columns, y, chosen); });
  measure("random elements", [&] { take<<<taken / 256, 256>>>(x, at, y, taken); });
  measure("table in shared", [&] { table_shared<<<132, TABLE>>>(levels, table, y, bytes); });
  measure("table in constant", [&] { table_constant<<<bytes / 256, 256>>>(levels, y, bytes); });
}
