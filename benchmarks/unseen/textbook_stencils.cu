// Stencils and convolutions of lists and images as courses teach them: constant memory, halos, caches, strips.
// sizes: 64 4096 (the side of the images; the lists are as long as an image is large)
#include "../micro/micro.h"

constexpr int MASK_WIDTH = 9, FILTER_RADIUS = 2, FILTER = 2 * FILTER_RADIUS + 1;
__constant__ float M[MASK_WIDTH];
__constant__ float F[FILTER][FILTER];

// Each thread checks for every weight whether the element exists.
__global__ void convolution_1d_constant(float* N, float* P, int mask_width, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width) return;
  float value = 0;
  int start = i - mask_width / 2;
  for (int j = 0; j < mask_width; j++)
    if (start + j >= 0 && start + j < width) value += N[start + j] * M[j];
  P[i] = value;
}

// A tile with a halo on both sides, which the last and the first threads load.
__global__ void convolution_1d_tiled(float* N, float* P, int width) {
  __shared__ float tile[512 + MASK_WIDTH - 1];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int n = MASK_WIDTH / 2;
  int left = (blockIdx.x - 1) * blockDim.x + threadIdx.x;
  if (threadIdx.x >= blockDim.x - n) tile[threadIdx.x - (blockDim.x - n)] = left < 0 ? 0 : N[left];
  tile[n + threadIdx.x] = N[i];
  int right = (blockIdx.x + 1) * blockDim.x + threadIdx.x;
  if (threadIdx.x < n) tile[n + blockDim.x + threadIdx.x] = right >= width ? 0 : N[right];
  __syncthreads();
  float value = 0;
  for (int j = 0; j < MASK_WIDTH; j++) value += tile[threadIdx.x + j] * M[j];
  P[i] = value;
}

// No halo: what the tile lacks is read from global memory, in the hope that it is cached.
__global__ void convolution_1d_caches(const float* N, float* P, int width) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = N[i];
  __syncthreads();
  int this_tile = blockIdx.x * blockDim.x, next_tile = this_tile + blockDim.x;
  int start = i - MASK_WIDTH / 2;
  float value = 0;
  for (int j = 0; j < MASK_WIDTH; j++) {
    int at = start + j;
    if (at < 0 || at >= width) continue;
    if (at >= this_tile && at < next_tile)
      value += tile[threadIdx.x + j - MASK_WIDTH / 2] * M[j];
    else
      value += N[at] * M[j];
  }
  P[i] = value;
}

// Sums of seven neighbours. Pointers to the elements after the first border.
__global__ void stencil_1d_int(const int* in, int* out) {
  constexpr int RADIUS = 3, BLOCK_SIZE = 128;
  __shared__ int temp[BLOCK_SIZE + 2 * RADIUS];
  int gindex = threadIdx.x + blockIdx.x * blockDim.x;
  int lindex = threadIdx.x + RADIUS;
  temp[lindex] = in[gindex];
  if (threadIdx.x < RADIUS) {
    temp[lindex - RADIUS] = in[gindex - RADIUS];
    temp[lindex + BLOCK_SIZE] = in[gindex + BLOCK_SIZE];
  }
  __syncthreads();
  int result = 0;
  for (int offset = -RADIUS; offset <= RADIUS; offset++) result += temp[lindex + offset];
  out[gindex] = result;
}

// A thread a pixel; the weights are in constant memory.
__global__ void convolution_2d_constant(const float* N, float* P, int width, int height) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col >= width || row >= height) return;
  float value = 0.0f;
  for (int fRow = 0; fRow < FILTER; fRow++)
    for (int fCol = 0; fCol < FILTER; fCol++) {
      int inRow = row - FILTER_RADIUS + fRow, inCol = col - FILTER_RADIUS + fCol;
      if (inRow >= 0 && inRow < height && inCol >= 0 && inCol < width)
        value += F[fRow][fCol] * N[inRow * width + inCol];
    }
  P[row * width + col] = value;
}

// The block is as large as the tile with its halo, so that the outer threads only load.
__global__ void convolution_2d_tiled(const float* N, float* P, int width, int height) {
  constexpr int IN_TILE = 32, OUT_TILE = IN_TILE - 2 * FILTER_RADIUS;
  __shared__ float N_s[IN_TILE][IN_TILE];
  int col = blockIdx.x * OUT_TILE + threadIdx.x - FILTER_RADIUS;
  int row = blockIdx.y * OUT_TILE + threadIdx.y - FILTER_RADIUS;
  if (row >= 0 && row < height && col >= 0 && col < width)
    N_s[threadIdx.y][threadIdx.x] = N[row * width + col];
  else
    N_s[threadIdx.y][threadIdx.x] = 0.0f;
  __syncthreads();
  int tileCol = threadIdx.x - FILTER_RADIUS, tileRow = threadIdx.y - FILTER_RADIUS;
  if (row < 0 || row >= height || col < 0 || col >= width) return;
  if (tileCol < 0 || tileCol >= OUT_TILE || tileRow < 0 || tileRow >= OUT_TILE) return;
  float value = 0.0f;
  for (int fRow = 0; fRow < FILTER; fRow++)
    for (int fCol = 0; fCol < FILTER; fCol++) value += F[fRow][fCol] * N_s[tileRow + fRow][tileCol + fCol];
  P[row * width + col] = value;
}

// A tile without a halo; neighbours outside of it come from the caches.
__global__ void convolution_2d_caches(const float* N, float* P, int width, int height) {
  constexpr int TILE = 16;
  __shared__ float N_s[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int col = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
  N_s[ty][tx] = row < height && col < width ? N[row * width + col] : 0.0f;
  __syncthreads();
  if (row >= height || col >= width) return;
  float value = 0.0f;
  for (int i = 0; i < FILTER; i++)
    for (int j = 0; j < FILTER; j++) {
      int y = ty - FILTER_RADIUS + i, x = tx - FILTER_RADIUS + j;
      if (x >= 0 && x < TILE && y >= 0 && y < TILE)
        value += F[i][j] * N_s[y][x];
      else if (row - FILTER_RADIUS + i >= 0 && row - FILTER_RADIUS + i < height && col - FILTER_RADIUS + j >= 0 &&
               col - FILTER_RADIUS + j < width)
        value += F[i][j] * N[(row - FILTER_RADIUS + i) * width + col - FILTER_RADIUS + j];
    }
  P[row * width + col] = value;
}

// Five points: a thread goes down a strip of 16 rows and keeps three elements of its column.
__global__ void stencil_2d_strip(const float* __restrict__ in, float* __restrict__ out, float c0, float c1, int width,
                                 int height) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 16;
  if (col < 1 || col >= width - 1) return;
  float above = first > 0 ? in[(first - 1) * width + col] : 0.0f, here = in[first * width + col];
  for (int row = first; row < first + 16 && row < height - 1; row++) {
    const float below = in[(row + 1) * width + col];
    if (row > 0)
      out[row * width + col] = c0 * here + c1 * (above + below + in[row * width + col - 1] + in[row * width + col + 1]);
    above = here;
    here = below;
  }
}

int main(int argc, char** argv) {
  const int side = size_of_run(argc, argv, 64), n = side * side;
  float *x = memory<float>(n), *y = memory<float>(n);
  int *in = memory<int>(n + 256), *out = memory<int>(n + 256);
  std::vector<float> values(n), weights(MASK_WIDTH, 0.1f), filter(FILTER * FILTER, 0.04f);
  unsigned state = 23;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(in, 1, (n + 256) * sizeof(int)));
  CHECK(cudaMemcpyToSymbol(M, weights.data(), sizeof(M)));
  CHECK(cudaMemcpyToSymbol(F, filter.data(), sizeof(F)));
  measure("list, constant", [&] { convolution_1d_constant<<<n / 256, 256>>>(x, y, MASK_WIDTH, n); });
  measure("list, halo", [&] { convolution_1d_tiled<<<n / 512, 512>>>(x, y, n); });
  measure("list, caches", [&] { convolution_1d_caches<<<n / 256, 256>>>(x, y, n); });
  measure("list of int, radius 3", [&] { stencil_1d_int<<<n / 128, 128>>>(in + 128, out + 128); });
  const dim3 tiles(side / 16, side / 16), larger((side + 27) / 28, (side + 27) / 28);
  measure("image, constant", [&] { convolution_2d_constant<<<tiles, dim3(16, 16)>>>(x, y, side, side); });
  measure("image, halo", [&] { convolution_2d_tiled<<<larger, dim3(32, 32)>>>(x, y, side, side); });
  measure("image, caches", [&] { convolution_2d_caches<<<tiles, dim3(16, 16)>>>(x, y, side, side); });
  measure("image, strips",
          [&] { stencil_2d_strip<<<dim3((side + 127) / 128, side / 16), 128>>>(x, y, 0.6f, 0.1f, side, side); });
}
