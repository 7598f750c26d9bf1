// A lab on shared memory: a stencil, a transpose, a product, counts a block, several sums, prefix sums, taps, sorting.
// sizes: 14 24 (log2 of the elements, which are also a square matrix; the product has a quarter of its side)
#include "../micro/micro.h"

constexpr int RADIUS = 4, TAPS = 33, BINS = 64;

// Second derivative with nine points; the tile's size is set at launch.
__global__ void derivative_1d(const float* in, float* out, int n, float c0, float c1, float c2, float c3, float c4) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = threadIdx.x + RADIUS;
  tile[at] = i < n ? in[i] : 0.0f;
  if (threadIdx.x < RADIUS) {
    int left = i - RADIUS, right = i + blockDim.x;
    tile[at - RADIUS] = left >= 0 ? in[left] : 0.0f;
    tile[at + blockDim.x] = right < n ? in[right] : 0.0f;
  }
  __syncthreads();
  if (i >= n) return;
  out[i] = c0 * tile[at] + c1 * (tile[at - 1] + tile[at + 1]) + c2 * (tile[at - 2] + tile[at + 2]) +
           c3 * (tile[at - 3] + tile[at + 3]) + c4 * (tile[at - 4] + tile[at + 4]);
}

// Tiles of 64 x 64 with a padded row; the block of 256 threads is one row of threads.
__global__ void transpose_tile_64(const float* __restrict__ in, float* __restrict__ out, int side) {
  __shared__ float tile[64][65];
  const int x0 = blockIdx.x * 64, y0 = blockIdx.y * 64, column = threadIdx.x % 64;
  for (int r = threadIdx.x / 64; r < 64; r += 4) tile[r][column] = in[(y0 + r) * side + x0 + column];
  __syncthreads();
  for (int r = threadIdx.x / 64; r < 64; r += 4) out[(x0 + r) * side + y0 + column] = tile[column][r];
}

// A product with tiles of 32 x 16 and 16 x 16; half of the block loads the second.
__global__ void matmul_16_by_32(const float* A, const float* B, float* C, int n) {
  __shared__ float a[32][16], b[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 32 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int k = 0; k < n; k += 16) {
    a[ty][tx] = A[row * n + k + tx];
    if (ty < 16) b[ty][tx] = B[(k + ty) * n + col];
    __syncthreads();
#pragma unroll
    for (int l = 0; l < 16; l++) sum += a[ty][l] * b[l][tx];
    __syncthreads();
  }
  C[row * n + col] = sum;
}

// A count for each warp, so that fewer threads meet; each block keeps its own result.
__global__ void histogram_warp_counts(const float* x, int* counts, int per_block) {
  __shared__ int bins[8][BINS];
  int tid = threadIdx.x, warp = tid / 32;
  for (int i = tid; i < 8 * BINS; i += blockDim.x) bins[i / BINS][i % BINS] = 0;
  __syncthreads();
  for (int i = tid; i < per_block; i += blockDim.x) {
    int bin = (int)((x[blockIdx.x * per_block + i] + 1.0f) * (BINS / 2));
    atomicAdd(&bins[warp][min(max(bin, 0), BINS - 1)], 1);
  }
  __syncthreads();
  if (tid < BINS) {
    int sum = 0;
    for (int w = 0; w < 8; w++) sum += bins[w][tid];
    counts[blockIdx.x * BINS + tid] = sum;
  }
}

// Sum, smallest and largest of 2048 elements in one tree.
__global__ void sum_min_max_tree(const float* x, float* sums, float* smallest, float* largest) {
  __shared__ float s_sum[512], s_min[512], s_max[512];
  int tid = threadIdx.x;
  const float* in = x + blockIdx.x * 2048;
  float sum = 0.0f, low = INFINITY, high = -INFINITY;
  for (int i = tid; i < 2048; i += 512) {
    sum += in[i];
    low = fminf(low, in[i]);
    high = fmaxf(high, in[i]);
  }
  s_sum[tid] = sum, s_min[tid] = low, s_max[tid] = high;
  for (int s = 256; s > 0; s >>= 1) {
    __syncthreads();
    if (tid < s) {
      s_sum[tid] += s_sum[tid + s];
      s_min[tid] = fminf(s_min[tid], s_min[tid + s]);
      s_max[tid] = fmaxf(s_max[tid], s_max[tid + s]);
    }
  }
  if (tid == 0) {
    sums[blockIdx.x] = s_sum[0];
    smallest[blockIdx.x] = s_min[0];
    largest[blockIdx.x] = s_max[0];
  }
}

// Prefix sums of 1024 elements in three steps: eight a thread, the 128 sums of the threads, and these added.
__global__ void scan_three_steps(const float* x, float* y) {
  __shared__ float part[1024], ends[128];
  int tid = threadIdx.x, first = blockIdx.x * 1024;
  for (int i = tid; i < 1024; i += 128) part[i] = x[first + i];
  __syncthreads();
  for (int j = 1; j < 8; j++) part[tid * 8 + j] += part[tid * 8 + j - 1];
  ends[tid] = part[tid * 8 + 7];
  for (int stride = 1; stride < 128; stride *= 2) {
    __syncthreads();
    float before = tid >= stride ? ends[tid - stride] : 0.0f;
    __syncthreads();
    ends[tid] += before;
  }
  __syncthreads();
  if (tid > 0)
    for (int j = 0; j < 8; j++) part[tid * 8 + j] += ends[tid - 1];
  __syncthreads();
  for (int i = tid; i < 1024; i += 128) y[first + i] = part[i];
}

// 33 taps; signal and taps in shared memory, two outputs a thread.
__global__ void convolve_33_taps(const float* __restrict__ x, const float* __restrict__ taps, float* __restrict__ y,
                                 int n) {
  __shared__ float signal[512 + TAPS - 1], weight[TAPS];
  const int start = blockIdx.x * 512 - TAPS / 2;
  for (int i = threadIdx.x; i < 512 + TAPS - 1; i += 256) {
    const int at = start + i;
    signal[i] = at >= 0 && at < n ? x[at] : 0.0f;
  }
  if (threadIdx.x < TAPS) weight[threadIdx.x] = taps[threadIdx.x];
  __syncthreads();
  float first = 0.0f, second = 0.0f;
  for (int t = 0; t < TAPS; t++) {
    first += signal[threadIdx.x + t] * weight[t];
    second += signal[threadIdx.x + 256 + t] * weight[t];
  }
  const int out = blockIdx.x * 512 + threadIdx.x;
  if (out < n) y[out] = first;
  if (out + 256 < n) y[out + 256] = second;
}

// Keys with their places, 256 a block, one a thread: each looks for its partner.
__global__ void bitonic_pairs(const float* x, float* keys, int* places) {
  __shared__ float key[256];
  __shared__ int place[256];
  int tid = threadIdx.x, i = blockIdx.x * 256 + tid;
  key[tid] = x[i];
  place[tid] = i;
  for (int size = 2; size <= 256; size <<= 1)
    for (int stride = size >> 1; stride > 0; stride >>= 1) {
      __syncthreads();
      int other = tid ^ stride;
      if (other > tid) {
        bool down = (tid & size) == 0;
        if (down ? key[tid] < key[other] : key[tid] > key[other]) {
          float k = key[tid];
          key[tid] = key[other];
          key[other] = k;
          int p = place[tid];
          place[tid] = place[other];
          place[other] = p;
        }
      }
    }
  __syncthreads();
  keys[i] = key[tid];
  places[i] = place[tid];
}

int main(int argc, char** argv) {
  const int log2_n = size_of_run(argc, argv, 14), n = 1 << log2_n, side = 1 << log2_n / 2, small = side / 4;
  float *x = memory<float>(n), *z = memory<float>(n), *y = memory<float>(n);
  int* places = memory<int>(n);
  std::vector<float> values(n);
  unsigned state = 48;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  std::reverse(values.begin(), values.end());
  CHECK(cudaMemcpy(z, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  measure("nine points of a list", [&] {
    derivative_1d<<<(n + 127) / 128, 128, (128 + 2 * RADIUS) * sizeof(float)>>>(x, y, n, -2.8f, 1.6f, -0.2f, 0.025f,
                                                                                -0.0018f);
  });
  measure("transpose, tiles of 64", [&] { transpose_tile_64<<<dim3(side / 64, side / 64), 256>>>(x, y, side); });
  measure("product, 16 x 32 threads",
          [&] { matmul_16_by_32<<<dim3(small / 16, small / 32), dim3(16, 32)>>>(x, z, y, small); });
  measure("counts of warps", [&] { histogram_warp_counts<<<n / 4096, 256>>>(x, places, 4096); });
  measure("sum, smallest, largest", [&] { sum_min_max_tree<<<n / 2048, 512>>>(x, y, y + n / 4, y + n / 2); });
  measure("prefix sums in three steps", [&] { scan_three_steps<<<n / 1024, 128>>>(x, y); });
  measure("33 taps, two a thread", [&] { convolve_33_taps<<<(n + 511) / 512, 256>>>(x, z, y, n); });
  measure("bitonic, keys and places", [&] { bitonic_pairs<<<n / 256, 256>>>(x, y, places); });
}
