// title: Conway's Game of Life on a torus: ghost rows by kernels, a tile in shared memory, and 64 cells per word
// features: shared_memory, bit_operations, pointer_swapping, thread_indexing
// args: 62 20

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>

#define SRAND_VALUE 1985
#define BLOCK_SIZE 16

#define TRY(x)                                                                             \
  do {                                                                                     \
    cudaError_t e_ = (x);                                                                  \
    if (e_ != cudaSuccess) {                                                               \
      fprintf(stderr, "%s failed in line %d: %s\n", #x, __LINE__, cudaGetErrorString(e_)); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

__global__ void ghostRows(int dim, int* grid) {
  int id = blockDim.x * blockIdx.x + threadIdx.x + 1;
  if (id <= dim) {
    grid[(dim + 2) * (dim + 1) + id] = grid[(dim + 2) + id];  // first real row to the bottom ghost row
    grid[id] = grid[(dim + 2) * dim + id];                    // last real row to the top ghost row
  }
}

__global__ void ghostCols(int dim, int* grid) {
  int id = blockDim.x * blockIdx.x + threadIdx.x;
  if (id <= dim + 1) {
    grid[id * (dim + 2) + dim + 1] = grid[id * (dim + 2) + 1];
    grid[id * (dim + 2)] = grid[id * (dim + 2) + dim];
  }
}

__global__ void GOL(int dim, const int* grid, int* newGrid) {
  int ix = blockDim.x * blockIdx.x + threadIdx.x + 1;
  int iy = blockDim.y * blockIdx.y + threadIdx.y + 1;
  int id = iy * (dim + 2) + ix;
  if (iy > dim || ix > dim) return;
  int numNeighbors = grid[id + (dim + 2)] + grid[id - (dim + 2)] + grid[id + 1] + grid[id - 1] + grid[id + (dim + 3)] +
                     grid[id - (dim + 3)] + grid[id - (dim + 1)] + grid[id + (dim + 1)];
  int cell = grid[id];
  if (cell == 1 && numNeighbors < 2)
    newGrid[id] = 0;
  else if (cell == 1 && (numNeighbors == 2 || numNeighbors == 3))
    newGrid[id] = 1;
  else if (cell == 1 && numNeighbors > 3)
    newGrid[id] = 0;
  else if (cell == 0 && numNeighbors == 3)
    newGrid[id] = 1;
  else
    newGrid[id] = cell;
}

__global__ void GOL_shared(int dim, const int* grid, int* newGrid) {
  int iy = (blockDim.y - 2) * blockIdx.y + threadIdx.y;
  int ix = (blockDim.x - 2) * blockIdx.x + threadIdx.x;
  int id = iy * (dim + 2) + ix, i = threadIdx.y, j = threadIdx.x;
  __shared__ int s_grid[BLOCK_SIZE][BLOCK_SIZE];
  if (ix <= dim + 1 && iy <= dim + 1) s_grid[i][j] = grid[id];
  __syncthreads();
  if (iy <= dim && ix <= dim && i != 0 && i != blockDim.y - 1 && j != 0 && j != blockDim.x - 1) {
    int n = s_grid[i + 1][j] + s_grid[i - 1][j] + s_grid[i][j + 1] + s_grid[i][j - 1] + s_grid[i + 1][j + 1] +
            s_grid[i - 1][j - 1] + s_grid[i - 1][j + 1] + s_grid[i + 1][j - 1];
    newGrid[id] = n == 3 || (n == 2 && s_grid[i][j]);
  }
}

/* One thread advances a word of up to 64 cells: sums of eight bit planes with half and full adders. */
__global__ void GOL_bits(int dim, const uint64_t* rows, uint64_t* next) {
  int y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= dim) return;
  const uint64_t mask = dim == 64 ? ~0ull : (1ull << dim) - 1;
  uint64_t around[8], self = rows[y];
  int count = 0;
  for (int dy = -1; dy <= 1; dy++) {
    uint64_t row = rows[(y + dy + dim) % dim];
    around[count++] = ((row << 1) | (row >> (dim - 1))) & mask;
    around[count++] = ((row >> 1) | (row << (dim - 1))) & mask;
    if (dy) around[count++] = row;
  }
  uint64_t ones = 0, twos = 0, fours = 0;
#pragma unroll
  for (int k = 0; k < 8; k++) {
    uint64_t carry = ones & around[k];
    ones ^= around[k];
    uint64_t carry2 = twos & carry;
    twos ^= carry;
    fours |= carry2;
  }
  next[y] = (ones | self) & twos & ~fours & mask;
}

static void cpu(int dim, const int* from, int* to) {
  for (int y = 0; y < dim; y++)
    for (int x = 0; x < dim; x++) {
      int n = 0;
      for (int d = 0; d < 9; d++)
        if (d != 4) n += from[(y + d / 3 - 1 + dim) % dim * dim + (x + d % 3 - 1 + dim) % dim];
      to[y * dim + x] = n == 3 || (n == 2 && from[y * dim + x]);
    }
}

int main(int argc, char* argv[]) {
  int dim = argc > 1 ? atoi(argv[1]) : 62, maxIter = argc > 2 ? atoi(argv[2]) : 20;
  if (dim < 3 || dim > 64) return 2;
  size_t bytes = sizeof(int) * (dim + 2) * (dim + 2);
  int *h_grid = (int*)calloc((dim + 2) * (dim + 2), sizeof(int)), *result = (int*)malloc(bytes);
  int *cells = (int*)malloc(sizeof(int) * dim * dim), *other = (int*)malloc(sizeof(int) * dim * dim);
  uint64_t rows[64] = {0};
  unsigned seed = SRAND_VALUE;
  for (int i = 0; i < dim * dim; i++) {
    seed = seed * 1103515245u + 12345u;
    cells[i] = (seed >> 16) & 1;
    h_grid[(i / dim + 1) * (dim + 2) + i % dim + 1] = cells[i];
    rows[i / dim] |= (uint64_t)cells[i] << (i % dim);
  }
  for (int it = 0; it < maxIter; it++) {
    cpu(dim, cells, other);
    int* t = cells;
    cells = other;
    other = t;
  }

  int *d_grid, *d_newGrid, failures = 0;
  uint64_t *d_rows, *d_next;
  TRY(cudaMalloc(&d_grid, bytes));
  TRY(cudaMalloc(&d_newGrid, bytes));
  TRY(cudaMalloc(&d_rows, sizeof(rows)));
  TRY(cudaMalloc(&d_next, sizeof(rows)));
  for (int version = 0; version < 3; version++) {
    TRY(cudaMemcpy(d_grid, h_grid, bytes, cudaMemcpyHostToDevice));
    TRY(cudaMemset(d_newGrid, 0, bytes));
    TRY(cudaMemcpy(d_rows, rows, sizeof(rows), cudaMemcpyHostToDevice));
    dim3 blockSize(BLOCK_SIZE, BLOCK_SIZE);
    int inner = version == 1 ? BLOCK_SIZE - 2 : BLOCK_SIZE, linear = (dim + 2 + 63) / 64;
    dim3 gridSize((dim + inner - 1) / inner, (dim + inner - 1) / inner);
    for (int iter = 0; iter < maxIter; iter++) {
      if (version == 2) {
        GOL_bits<<<2, 32>>>(dim, d_rows, d_next);
        uint64_t* t = d_rows;
        d_rows = d_next;
        d_next = t;
        continue;
      }
      ghostRows<<<linear, 64>>>(dim, d_grid);
      ghostCols<<<linear, 64>>>(dim, d_grid);
      if (version == 0)
        GOL<<<gridSize, blockSize>>>(dim, d_grid, d_newGrid);
      else
        GOL_shared<<<gridSize, blockSize>>>(dim, d_grid, d_newGrid);
      int* tmpGrid = d_grid;
      d_grid = d_newGrid;
      d_newGrid = tmpGrid;
    }
    TRY(cudaGetLastError());
    int total = 0, wrong = 0;
    TRY(cudaMemcpy(result, d_grid, bytes, cudaMemcpyDeviceToHost));
    uint64_t bits[64];
    TRY(cudaMemcpy(bits, d_rows, dim * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    for (int i = 0; i < dim * dim; i++) {
      int alive =
          version == 2 ? (int)(bits[i / dim] >> (i % dim) & 1) : result[(i / dim + 1) * (dim + 2) + i % dim + 1];
      total += alive;
      wrong += alive != cells[i];
    }
    printf("version %d: total alive: %d, wrong: %d\n", version, total, wrong);
    failures += wrong;
  }
  TRY(cudaFree(d_grid));
  TRY(cudaFree(d_newGrid));
  TRY(cudaFree(d_rows));
  TRY(cudaFree(d_next));
  free(h_grid);
  free(result);
  free(cells);
  free(other);
  puts(failures ? "FAILED" : "PASSED");
  return failures ? 1 : 0;
}
