// What grows along rows, columns and images: products, masked and reversed sums, sums of segments, integral images.
// sizes: 32 6144 (rows of 2048 floats)
#include "../micro/micro.h"

constexpr int WIDTH = 2048, LONG = 1 << 15;

// A thread a row; the product is a double.
__global__ void cumprod_rows(const float* x, float* y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  double product = 1.0;
  for (int i = 0; i < WIDTH; i++) {
    product *= x[row * WIDTH + i];
    y[row * WIDTH + i] = product;
  }
}

// A warp a row takes 32 elements at a time and hands on what they sum up to.
__global__ void masked_cumsum(const float* __restrict__ x, const unsigned char* __restrict__ mask,
                              float* __restrict__ y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float before = 0.0f;
  for (int i = lane; i < WIDTH; i += 32) {
    const int at = row * WIDTH + i;
    float sum = mask[at] & 1 ? x[at] : 0.0f;
    for (int offset = 1; offset < 32; offset *= 2) {
      const float left = __shfl_up_sync(0xffffffff, sum, offset);
      if (lane >= offset) sum += left;
    }
    y[at] = before + sum;
    before += __shfl_sync(0xffffffff, sum, 31);
  }
}

// A block a row, from its end, 512 elements at a time; two buffers change places.
__global__ void reverse_cumsum(const float* x, float* y) {
  __shared__ float buffers[2][512];
  int tid = threadIdx.x;
  float behind = 0.0f;
  for (int last = WIDTH - 1; last >= 0; last -= 512) {
    int at = blockIdx.x * WIDTH + last - tid;
    int now = 0;
    buffers[0][tid] = x[at];
    __syncthreads();
    for (int offset = 1; offset < 512; offset *= 2) {
      buffers[1 - now][tid] = buffers[now][tid] + (tid >= offset ? buffers[now][tid - offset] : 0.0f);
      now = 1 - now;
      __syncthreads();
    }
    y[at] = behind + buffers[now][tid];
    behind += buffers[now][511];
    __syncthreads();
  }
}

// A thread a column: what came before it, without itself.
__global__ void exclusive_columns(float* x, float* y, int rows) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int row = 0; row < rows; row++) {
    y[row * WIDTH + column] = sum;
    sum += x[row * WIDTH + column];
  }
}

// Sums that start anew at every flag, over blocks of 256.
__global__ void segmented_scan(const float* x, const unsigned char* flags, float* y) {
  __shared__ float sums[256];
  __shared__ int starts[256];
  int tid = threadIdx.x, i = blockIdx.x * 256 + tid;
  sums[tid] = x[i];
  starts[tid] = tid == 0 || flags[i] < 32;
  __syncthreads();
  for (int offset = 1; offset < 256; offset *= 2) {
    float sum = sums[tid];
    int start = starts[tid];
    if (tid >= offset && !start) {
      sum += sums[tid - offset];
      start = starts[tid - offset];
    }
    __syncthreads();
    sums[tid] = sum;
    starts[tid] = start;
    __syncthreads();
  }
  y[i] = sums[tid];
}

// One block goes through a long list, 1024 elements at a time.
__global__ void one_block_scan(const float* x, float* y, int n) {
  __shared__ float warps[32];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  float before = 0.0f;
  for (int first = 0; first < n; first += 1024) {
    float sum = x[first + tid];
    for (int offset = 1; offset < 32; offset *= 2) {
      float left = __shfl_up_sync(0xffffffff, sum, offset);
      if (lane >= offset) sum += left;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      float all = warps[lane];
      for (int offset = 1; offset < 32; offset *= 2) {
        float left = __shfl_up_sync(0xffffffff, all, offset);
        if (lane >= offset) all += left;
      }
      warps[lane] = all;
    }
    __syncthreads();
    y[first + tid] = before + sum + (warp > 0 ? warps[warp - 1] : 0.0f);
    before += warps[31];
    __syncthreads();
  }
}

// The second half of an integral image: sums down the columns, through tiles of 32 x 32.
__global__ void integral_columns(const float* x, float* y, int rows) {
  __shared__ float tile[32][33];
  const int column = blockIdx.x * 32 + threadIdx.x;
  float above = 0.0f;
  for (int first = 0; first < rows; first += 32) {
    for (int k = threadIdx.y; k < 32; k += 8) tile[k][threadIdx.x] = x[(first + k) * WIDTH + column];
    __syncthreads();
    if (threadIdx.y == 0)
      for (int k = 0; k < 32; k++) tile[k][threadIdx.x] = above += tile[k][threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8) y[(first + k) * WIDTH + column] = tile[k][threadIdx.x];
    __syncthreads();
  }
}

// What is large enough is written without gaps: one atomic a warp.
__global__ void compact(const float* x, float* kept, unsigned* count, float limit, unsigned room, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  float v = i < n ? x[i] : 0.0f;
  unsigned keep = __ballot_sync(0xffffffff, v > limit);
  unsigned first = 0;
  if (lane == 0) first = atomicAdd(count, __popc(keep));
  first = __shfl_sync(0xffffffff, first, 0);
  if (v > limit) kept[(first + __popc(keep & ((1u << lane) - 1))) % room] = v;
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 32), n = rows * WIDTH;
  float *x = memory<float>(n), *y = memory<float>(n), *z = memory<float>(n);
  unsigned char* bytes = memory<unsigned char>(n);
  std::vector<float> values(n);
  std::vector<unsigned char> random(n);
  unsigned state = 13;
  for (int i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = 0.5f + (state >> 8) / 16777216.0f;
    random[i] = state >> 15;
  }
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(bytes, random.data(), n, cudaMemcpyHostToDevice));
  measure("product of a row", [&] { cumprod_rows<<<(rows + 31) / 32, 32>>>(x, y, rows); });
  measure("masked sum, a warp a row", [&] { masked_cumsum<<<rows / 4, 128>>>(x, bytes, y, rows); });
  measure("reversed sum", [&] { reverse_cumsum<<<rows, 512>>>(x, y); });
  measure("exclusive, columns", [&] { exclusive_columns<<<WIDTH / 64, 64>>>(x, y, rows / 8); });
  measure("segments", [&] { segmented_scan<<<n / 256, 256>>>(x, bytes, y); });
  measure("one block", [&] { one_block_scan<<<1, 1024>>>(x, y, std::min(n, 8 * LONG)); });
  measure("integral image, columns", [&] { integral_columns<<<WIDTH / 32, dim3(32, 8)>>>(x, y, rows); });
  unsigned* count = (unsigned*)z;
  CHECK(cudaMemset(count, 0, sizeof(unsigned)));
  const unsigned room = n;  // the count goes on from launch to launch
  measure("kept without gaps", [&] { compact<<<n / 256, 256>>>(x, y, count, 1.0f, room, n); });
}
