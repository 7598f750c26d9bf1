// title: one- and two-dimensional convolutions with the mask in constant memory, basic, tiled and cached
// features: convolution, constant_memory, shared_memory, templates
// args: 90 61

#include <iostream>
#include <cstdlib>
#include <cmath>
#include <vector>

using namespace std;

#define MAX_MASK_WIDTH 9
#define O_TILE_WIDTH 12
#define TILE 16

__constant__ float M[MAX_MASK_WIDTH];
__constant__ float M2[MAX_MASK_WIDTH][MAX_MASK_WIDTH];

#define wbCheck(stmt)                                                                 \
  do {                                                                                \
    cudaError_t err = stmt;                                                           \
    if (err != cudaSuccess) {                                                         \
      cerr << "Failed to run stmt " << #stmt << ": " << cudaGetErrorString(err) << endl; \
      return -1;                                                                      \
    }                                                                                 \
  } while (0)

__global__ void convolution_1D_basic(const float *N, float *P, int Mask_Width, int Width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= Width) return;
  float Pvalue = 0;
  int N_start_point = i - (Mask_Width / 2);
  for (int j = 0; j < Mask_Width; j++)
    if (N_start_point + j >= 0 && N_start_point + j < Width) Pvalue += N[N_start_point + j] * M[j];
  P[i] = Pvalue;
}

// Halo elements come from the cache, all others from shared memory.
__global__ void convolution_1D_cached(const float *N, float *P, int Mask_Width, int Width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float N_ds[TILE];
  N_ds[threadIdx.x] = i < Width ? N[i] : 0.0f;
  __syncthreads();
  int This_tile_start_point = blockIdx.x * blockDim.x;
  int Next_tile_start_point = (blockIdx.x + 1) * blockDim.x;
  int N_start_point = i - (Mask_Width / 2);
  float Pvalue = 0;
  for (int j = 0; j < Mask_Width; j++) {
    int N_index = N_start_point + j;
    if (N_index >= 0 && N_index < Width) {
      if (N_index >= This_tile_start_point && N_index < Next_tile_start_point)
        Pvalue += N_ds[threadIdx.x + j - (Mask_Width / 2)] * M[j];
      else
        Pvalue += N[N_index] * M[j];
    }
  }
  if (i < Width) P[i] = Pvalue;
}

template <int MASK>
__global__ void convolution_2D_tiled(float *P, const float *N, int height, int width, int pitch) {
  __shared__ float N_ds[O_TILE_WIDTH + MASK - 1][O_TILE_WIDTH + MASK - 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row_o = blockIdx.y * O_TILE_WIDTH + ty, col_o = blockIdx.x * O_TILE_WIDTH + tx;
  int row_i = row_o - MASK / 2, col_i = col_o - MASK / 2;
  if (row_i >= 0 && row_i < height && col_i >= 0 && col_i < width)
    N_ds[ty][tx] = N[row_i * pitch + col_i];
  else
    N_ds[ty][tx] = 0.0f;
  __syncthreads();
  if (ty < O_TILE_WIDTH && tx < O_TILE_WIDTH) {
    float output = 0.0f;
    for (int i = 0; i < MASK; i++)
      for (int j = 0; j < MASK; j++) output += M2[i][j] * N_ds[i + ty][j + tx];
    if (row_o < height && col_o < width) P[row_o * width + col_o] = output;
  }
}

int run1D(int width, bool &good) {
  float mask[7] = {3, 4, 5, 4, 3, 2, 1};
  vector<float> host(width), out(width);
  for (int i = 0; i < width; i++) host[i] = (i * 37) % 23 - 11;
  float *N, *P;
  wbCheck(cudaMalloc(&N, width * sizeof(float)));
  wbCheck(cudaMalloc(&P, width * sizeof(float)));
  wbCheck(cudaMemcpy(N, host.data(), width * sizeof(float), cudaMemcpyHostToDevice));
  wbCheck(cudaMemcpyToSymbol(M, mask, sizeof(mask)));
  for (int cached = 0; cached < 2; cached++) {
    if (cached)
      convolution_1D_cached<<<(width + TILE - 1) / TILE, TILE>>>(N, P, 7, width);
    else
      convolution_1D_basic<<<ceil(width / 64.0), 64>>>(N, P, 7, width);
    wbCheck(cudaGetLastError());
    wbCheck(cudaMemcpy(out.data(), P, width * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < width; i++) {
      double e = 0;
      for (int j = -3; j <= 3; j++) e += i + j < 0 || i + j >= width ? 0.0 : double(host[i + j]) * mask[j + 3];
      wrong += e != out[i];
    }
    cout << (cached ? "1-D cached: " : "1-D basic:  ") << wrong << " wrong of " << width << endl;
    good = good && !wrong;
  }
  wbCheck(cudaFree(N));
  wbCheck(cudaFree(P));
  return 0;
}

template <int MASK>
int run2D(int height, int width, bool &good) {
  float mask[MAX_MASK_WIDTH][MAX_MASK_WIDTH] = {};
  for (int i = 0; i < MASK; i++)
    for (int j = 0; j < MASK; j++) mask[i][j] = (i + 1) * (j - MASK / 2);
  vector<float> host(height * width), out(height * width);
  for (size_t i = 0; i < host.size(); i++) host[i] = (i * 91 + i / 13) % 31;
  float *N, *P;
  size_t pitch;
  wbCheck(cudaMallocPitch(&N, &pitch, width * sizeof(float), height));
  wbCheck(cudaMalloc(&P, height * width * sizeof(float)));
  wbCheck(cudaMemcpy2D(N, pitch, host.data(), width * sizeof(float), width * sizeof(float), height,
                       cudaMemcpyHostToDevice));
  wbCheck(cudaMemcpyToSymbol(M2, mask, sizeof(mask)));
  dim3 block(O_TILE_WIDTH + MASK - 1, O_TILE_WIDTH + MASK - 1);
  dim3 grid((width - 1) / O_TILE_WIDTH + 1, (height - 1) / O_TILE_WIDTH + 1);
  convolution_2D_tiled<MASK><<<grid, block>>>(P, N, height, width, pitch / sizeof(float));
  wbCheck(cudaGetLastError());
  wbCheck(cudaMemcpy(out.data(), P, height * width * sizeof(float), cudaMemcpyDeviceToHost));
  int wrong = 0;
  double checksum = 0;
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      double e = 0;
      for (int i = 0; i < MASK; i++)
        for (int j = 0; j < MASK; j++) {
          int yy = y + i - MASK / 2, xx = x + j - MASK / 2;
          if (yy >= 0 && xx >= 0 && yy < height && xx < width) e += double(mask[i][j]) * host[yy * width + xx];
        }
      wrong += e != out[y * width + x];
      checksum += out[y * width + x] * (x + 1);
    }
  cout << "2-D " << MASK << "x" << MASK << ":    " << wrong << " wrong, checksum " << (long long)checksum << endl;
  good = good && !wrong;
  wbCheck(cudaFree(N));
  wbCheck(cudaFree(P));
  return 0;
}

int main(int argc, char **argv) {
  int width = argc > 1 ? atoi(argv[1]) : 90, height = argc > 2 ? atoi(argv[2]) : 61;
  bool good = true;
  if (run1D(width * 10 + 3, good)) return 1;
  if (run2D<3>(height, width, good) || run2D<5>(height, width, good) || run2D<9>(height, width, good)) return 1;
  cout << (good ? "PASSED" : "FAILED") << endl;
  return !good;
}
