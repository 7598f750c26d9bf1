// title: Needleman-Wunsch: alignment by diagonals of tiles, each tile a wavefront in shared memory
// features: shared_memory, wavefronts, device_tables
// args: 96 10

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define TILE 16
#define CHECK(x) \
  if ((x) != cudaSuccess) { printf("CUDA error %s\n", cudaGetErrorString(cudaGetLastError())); exit(1); }

__device__ __host__ int maximum(int a, int b, int c) {
  int k = a <= b ? b : a;
  return k <= c ? c : k;
}

// Tiles (i, diagonal - i) for i from `first`.
__global__ void needle(const int* reference, int* matrix, int cols, int penalty, int diagonal, int first) {
  const int bx = first + blockIdx.x, by = diagonal - bx, tx = threadIdx.x;
  __shared__ int temp[TILE + 1][TILE + 1];
  __shared__ int ref[TILE][TILE];
  const int corner = cols * TILE * by + TILE * bx;
  for (int ty = 0; ty < TILE; ty++) ref[ty][tx] = reference[corner + (ty + 1) * cols + tx + 1];
  temp[tx + 1][0] = matrix[corner + (tx + 1) * cols];
  temp[0][tx + 1] = matrix[corner + tx + 1];
  if (tx == 0) temp[0][0] = matrix[corner];
  __syncthreads();
  for (int m = 0; m < 2 * TILE - 1; m++) {
    int x = tx + 1, y = m - tx + 1;
    if (y >= 1 && y <= TILE) temp[y][x] = maximum(temp[y - 1][x - 1] + ref[y - 1][x - 1], temp[y][x - 1] - penalty, temp[y - 1][x] - penalty);
    __syncthreads();
  }
  for (int ty = 0; ty < TILE; ty++) matrix[corner + (ty + 1) * cols + tx + 1] = temp[ty + 1][tx + 1];
}

int main(int argc, char** argv) {
  const int n = (argc > 1 ? atoi(argv[1]) : 96) / TILE * TILE, penalty = argc > 2 ? atoi(argv[2]) : 10, cols = n + 1;
  const char letters[] = "ARNDCQEGHILKMFPSTWYV";
  std::string a(n, ' '), b(n, ' ');
  unsigned s = 7;
  for (int i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    a[i] = letters[(s >> 20) % 20];
    b[i] = (s >> 9) % 4 ? a[i > 3 ? i - 3 : i] : letters[(s >> 12) % 20];  // the same, shifted, with errors
  }
  auto score = [](char p, char q) { return p == q ? 5 + p % 7 : (p * 31 + q * 31 + p * q) % 5 - 4; };
  std::vector<int> reference(cols * cols, 0), matrix(cols * cols, 0), want;
  for (int i = 1; i < cols; i++)
    for (int j = 1; j < cols; j++) reference[i * cols + j] = score(a[i - 1], b[j - 1]);
  for (int i = 1; i < cols; i++) matrix[i * cols] = matrix[i] = -i * penalty;
  want = matrix;
  int *d_reference, *d_matrix;
  CHECK(cudaMalloc(&d_reference, reference.size() * sizeof(int)));
  CHECK(cudaMalloc(&d_matrix, matrix.size() * sizeof(int)));
  CHECK(cudaMemcpy(d_reference, reference.data(), reference.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_matrix, matrix.data(), matrix.size() * sizeof(int), cudaMemcpyHostToDevice));
  const int tiles = n / TILE;
  for (int diagonal = 0; diagonal < 2 * tiles - 1; diagonal++) {
    int first = std::max(0, diagonal - tiles + 1), last = std::min(diagonal, tiles - 1);
    needle<<<last - first + 1, TILE>>>(d_reference, d_matrix, cols, penalty, diagonal, first);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaMemcpy(matrix.data(), d_matrix, matrix.size() * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(d_reference));
  CHECK(cudaFree(d_matrix));
  int wrong = 0;
  for (int i = 1; i < cols; i++)
    for (int j = 1; j < cols; j++) {
      want[i * cols + j] = std::max({want[(i - 1) * cols + j - 1] + reference[i * cols + j], want[i * cols + j - 1] - penalty,
                                     want[(i - 1) * cols + j] - penalty});
      wrong += want[i * cols + j] != matrix[i * cols + j];
    }
  std::string top, bottom;
  for (int i = n, j = n; i > 0 || j > 0;) {  // trace back
    int v = matrix[i * cols + j];
    if (i && j && v == matrix[(i - 1) * cols + j - 1] + reference[i * cols + j])
      top += a[--i], bottom += b[--j];
    else if (j && v == matrix[i * cols + j - 1] - penalty)
      top += '-', bottom += b[--j];
    else
      top += a[--i], bottom += '-';
  }
  std::reverse(top.begin(), top.end());
  std::reverse(bottom.begin(), bottom.end());
  printf("score %d\n%.60s\n%.60s\n", matrix[n * cols + n], top.c_str(), bottom.c_str());
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
