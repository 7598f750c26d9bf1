// title: seven-point stencil in three dimensions: plain, tiled, and marching along z with registers
// features: stencils, shared_memory, thread_indexing

#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

const int N = 26;
const int IN_TILE_DIM = 8;
const int OUT_TILE_DIM = IN_TILE_DIM - 2;
const int MARCH_TILE = 16;
const int MARCH_OUT = MARCH_TILE - 2;

__constant__ float c[7];

static void check(cudaError_t e, int line) {
  if (e != cudaSuccess) {
    std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(e));
    std::exit(2);
  }
}
#define OK(x) check(x, __LINE__)

#define AT(i, j, k) (((i) * n + (j)) * n + (k))

__global__ void stencil_plain(const float* in, float* out, unsigned int n) {
  unsigned int i = blockIdx.z * blockDim.z + threadIdx.z;
  unsigned int j = blockIdx.y * blockDim.y + threadIdx.y;
  unsigned int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 1 && i < n - 1 && j >= 1 && j < n - 1 && k >= 1 && k < n - 1)
    out[AT(i, j, k)] = c[0] * in[AT(i, j, k)] + c[1] * in[AT(i, j, k - 1)] + c[2] * in[AT(i, j, k + 1)] +
                       c[3] * in[AT(i, j - 1, k)] + c[4] * in[AT(i, j + 1, k)] + c[5] * in[AT(i - 1, j, k)] +
                       c[6] * in[AT(i + 1, j, k)];
}

__global__ void stencil_tiled(const float* in, float* out, int n) {
  int i = blockIdx.z * OUT_TILE_DIM + threadIdx.z - 1;
  int j = blockIdx.y * OUT_TILE_DIM + threadIdx.y - 1;
  int k = blockIdx.x * OUT_TILE_DIM + threadIdx.x - 1;
  __shared__ float in_s[IN_TILE_DIM][IN_TILE_DIM][IN_TILE_DIM];
  if (i >= 0 && i < n && j >= 0 && j < n && k >= 0 && k < n)
    in_s[threadIdx.z][threadIdx.y][threadIdx.x] = in[AT(i, j, k)];
  __syncthreads();
  if (i >= 1 && i < n - 1 && j >= 1 && j < n - 1 && k >= 1 && k < n - 1) {
    int z = threadIdx.z, y = threadIdx.y, x = threadIdx.x;
    if (z >= 1 && z < IN_TILE_DIM - 1 && y >= 1 && y < IN_TILE_DIM - 1 && x >= 1 && x < IN_TILE_DIM - 1)
      out[AT(i, j, k)] = c[0] * in_s[z][y][x] + c[1] * in_s[z][y][x - 1] + c[2] * in_s[z][y][x + 1] +
                         c[3] * in_s[z][y - 1][x] + c[4] * in_s[z][y + 1][x] + c[5] * in_s[z - 1][y][x] +
                         c[6] * in_s[z + 1][y][x];
  }
}

__global__ void stencil_marching(const float* in, float* out, int n, int depth) {
  int iStart = blockIdx.z * depth;
  int j = blockIdx.y * MARCH_OUT + threadIdx.y - 1;
  int k = blockIdx.x * MARCH_OUT + threadIdx.x - 1;
  bool inside = j >= 0 && j < n && k >= 0 && k < n;
  float inPrev = 0, inCurr = 0, inNext = 0;
  __shared__ float inCurr_s[MARCH_TILE][MARCH_TILE];
  if (iStart - 1 >= 0 && iStart - 1 < n && inside) inPrev = in[AT(iStart - 1, j, k)];
  if (iStart < n && inside) inCurr = in[AT(iStart, j, k)];
  inCurr_s[threadIdx.y][threadIdx.x] = inCurr;
  for (int i = iStart; i < iStart + depth; i++) {
    if (i + 1 < n && inside) inNext = in[AT(i + 1, j, k)];
    __syncthreads();
    if (i >= 1 && i < n - 1 && j >= 1 && j < n - 1 && k >= 1 && k < n - 1)
      if (threadIdx.y >= 1 && threadIdx.y < MARCH_TILE - 1 && threadIdx.x >= 1 && threadIdx.x < MARCH_TILE - 1)
        out[AT(i, j, k)] = c[0] * inCurr + c[1] * inCurr_s[threadIdx.y][threadIdx.x - 1] +
                           c[2] * inCurr_s[threadIdx.y][threadIdx.x + 1] +
                           c[3] * inCurr_s[threadIdx.y - 1][threadIdx.x] +
                           c[4] * inCurr_s[threadIdx.y + 1][threadIdx.x] + c[5] * inPrev + c[6] * inNext;
    __syncthreads();
    inPrev = inCurr;
    inCurr = inNext;
    inCurr_s[threadIdx.y][threadIdx.x] = inNext;
  }
}

int main() {
  const int n = N, total = n * n * n;
  const float weights[7] = {0.5f, 0.25f, -0.125f, 1.0f, 2.0f, -1.0f, 0.75f};
  std::vector<float> in(total), got(total);
  for (int i = 0; i < total; i++) in[i] = float((i * 31 + i / 7) % 64) / 8;

  std::vector<double> expected(total, 0.0);
  for (int z = 1; z < n - 1; z++)
    for (int y = 1; y < n - 1; y++)
      for (int x = 1; x < n - 1; x++) {
        double s = weights[0] * in[AT(z, y, x)];
        s += weights[1] * in[AT(z, y, x - 1)] + weights[2] * in[AT(z, y, x + 1)];
        s += weights[3] * in[AT(z, y - 1, x)] + weights[4] * in[AT(z, y + 1, x)];
        s += weights[5] * in[AT(z - 1, y, x)] + weights[6] * in[AT(z + 1, y, x)];
        expected[AT(z, y, x)] = s;
      }

  float *d_in, *d_out;
  OK(cudaMalloc(&d_in, total * sizeof(float)));
  OK(cudaMalloc(&d_out, total * sizeof(float)));
  OK(cudaMemcpy(d_in, in.data(), total * sizeof(float), cudaMemcpyHostToDevice));
  OK(cudaMemcpyToSymbol(c, weights, sizeof(weights)));

  int failures = 0;
  const char* names[] = {"plain", "tiled", "marching"};
  for (int version = 0; version < 3; version++) {
    OK(cudaMemset(d_out, 0, total * sizeof(float)));
    if (version == 0) {
      dim3 block(8, 8, 4), grid((n + 7) / 8, (n + 7) / 8, (n + 3) / 4);
      stencil_plain<<<grid, block>>>(d_in, d_out, n);
    } else if (version == 1) {
      int blocks = (n + OUT_TILE_DIM - 1) / OUT_TILE_DIM;
      stencil_tiled<<<dim3(blocks, blocks, blocks), dim3(IN_TILE_DIM, IN_TILE_DIM, IN_TILE_DIM)>>>(d_in, d_out, n);
    } else {
      int blocks = (n + MARCH_OUT - 1) / MARCH_OUT, depth = 9;
      stencil_marching<<<dim3(blocks, blocks, (n + depth - 1) / depth), dim3(MARCH_TILE, MARCH_TILE)>>>(d_in, d_out, n,
                                                                                                        depth);
    }
    OK(cudaGetLastError());
    OK(cudaMemcpy(got.data(), d_out, total * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = 0;
    double sum = 0;
    for (int i = 0; i < total; i++) {
      wrong += std::fabs(got[i] - expected[i]) > 1e-4;
      sum += got[i];
    }
    std::printf("%-8s  %d points wrong, sum %.3f\n", names[version], wrong, sum);
    failures += wrong != 0;
  }
  OK(cudaFree(d_in));
  OK(cudaFree(d_out));
  std::printf(failures ? "FAILED\n" : "PASSED\n");
  return failures ? 1 : 0;
}
