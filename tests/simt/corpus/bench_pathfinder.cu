// title: Pathfinder: dynamic programming over rows, several rows a launch with ghost zones
// features: dynamic_arrays, shared_memory, double_buffers
// args: 1000 40 8

#include <algorithm>
#include <cassert>
#include <iostream>
#include <vector>

using namespace std;

#define BLOCK_SIZE 128
#define IN_RANGE(x, lo, hi) ((x) >= (lo) && (x) <= (hi))

#define CUCHK(x)                                                       \
  do {                                                                 \
    cudaError_t err = (x);                                             \
    if (err != cudaSuccess) {                                          \
      cerr << cudaGetErrorString(err) << " (" << #x << ")" << endl;    \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

__global__ void dynproc_kernel(int iteration, const int* wall, const int* src, int* dst, int cols, int startStep, int border) {
  __shared__ int prev[BLOCK_SIZE], result[BLOCK_SIZE];
  int tx = threadIdx.x;
  int small = BLOCK_SIZE - iteration * 2;  // columns whose results are right after all the steps
  int blkX = small * (int)blockIdx.x - border;
  int xidx = blkX + tx;
  int validXmin = blkX < 0 ? -blkX : 0;
  int validXmax = blkX + BLOCK_SIZE - 1 > cols - 1 ? cols - 1 - blkX : BLOCK_SIZE - 1;
  int W = max(tx - 1, validXmin), E = min(tx + 1, validXmax);
  bool isValid = IN_RANGE(tx, validXmin, validXmax);
  prev[tx] = IN_RANGE(xidx, 0, cols - 1) ? src[xidx] : 0;
  __syncthreads();
  bool computed = false;
  for (int i = 0; i < iteration; i++) {
    computed = false;
    if (IN_RANGE(tx, i + 1, BLOCK_SIZE - i - 2) && isValid) {
      computed = true;
      int shortest = min(min(prev[W], prev[tx]), prev[E]);
      result[tx] = shortest + wall[cols * (startStep + i) + xidx];
    }
    __syncthreads();
    if (i == iteration - 1) break;
    if (computed) prev[tx] = result[tx];
    __syncthreads();
  }
  if (computed) dst[xidx] = result[tx];
}

int main(int argc, char** argv) {
  int cols = argc > 1 ? atoi(argv[1]) : 1000, rows = argc > 2 ? atoi(argv[2]) : 40, pyramid = argc > 3 ? atoi(argv[3]) : 8;
  assert(pyramid * 2 < BLOCK_SIZE);
  vector<vector<int>> wall(rows, vector<int>(cols));
  unsigned seed = 7;
  for (auto& row : wall)
    for (int& v : row) v = (seed = seed * 1103515245u + 12345u) >> 16 & 7;
  int *gpuWall, *gpuResult[2];
  CUCHK(cudaMalloc((void**)&gpuWall, sizeof(int) * cols * (rows - 1)));
  CUCHK(cudaMalloc((void**)&gpuResult[0], sizeof(int) * cols));
  CUCHK(cudaMalloc((void**)&gpuResult[1], sizeof(int) * cols));
  CUCHK(cudaMemcpy(gpuResult[0], wall[0].data(), sizeof(int) * cols, cudaMemcpyHostToDevice));
  for (int r = 1; r < rows; r++) CUCHK(cudaMemcpy(gpuWall + (r - 1) * cols, wall[r].data(), sizeof(int) * cols, cudaMemcpyHostToDevice));
  int src = 1, dst = 0;
  for (int t = 0; t < rows - 1; t += pyramid) {
    swap(src, dst);
    int steps = min(pyramid, rows - t - 1), small = BLOCK_SIZE - steps * 2;
    dynproc_kernel<<<(cols + small - 1) / small, BLOCK_SIZE>>>(steps, gpuWall, gpuResult[src], gpuResult[dst], cols, t, steps);
    CUCHK(cudaGetLastError());
  }
  vector<int> result(cols);
  CUCHK(cudaMemcpy(result.data(), gpuResult[dst], sizeof(int) * cols, cudaMemcpyDeviceToHost));
  CUCHK(cudaFree(gpuWall));
  CUCHK(cudaFree(gpuResult[0]));
  CUCHK(cudaFree(gpuResult[1]));

  vector<int> best = wall[0], next(cols);
  for (int r = 1; r < rows; r++) {
    for (int c = 0; c < cols; c++) {
      int m = best[c];
      if (c > 0) m = min(m, best[c - 1]);
      if (c + 1 < cols) m = min(m, best[c + 1]);
      next[c] = m + wall[r][c];
    }
    best = next;
  }
  long sum = 0;
  for (int v : result) sum += v;
  cout << cols << " columns, " << rows << " rows: cheapest path " << *min_element(result.begin(), result.end()) << ", sum " << sum << endl;
  cout << (best == result ? "PASSED" : "FAILED") << endl;
  return best == result ? 0 : 1;
}
