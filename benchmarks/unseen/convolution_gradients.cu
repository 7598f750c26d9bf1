// What a convolution passes back: gradients of its bias, its weights and its input; with few threads, atomics, blocks.
// sizes: 2 64 (images)
#include "../micro/micro.h"

constexpr int CHANNELS = 16, FILTERS = 32, SIDE = 32, OUT = SIDE - 2;
constexpr int WEIGHTS = FILTERS * CHANNELS * 9;

// A thread sums one plane.
__global__ void bias_by_plane(float* dy, float* gradient, int images) {
  int plane = blockIdx.x * blockDim.x + threadIdx.x;
  if (plane >= images * FILTERS) return;
  float sum = 0.0f;
  for (int i = 0; i < OUT * OUT; i++) sum += dy[plane * OUT * OUT + i];
  atomicAdd(&gradient[plane % FILTERS], sum);
}

// A block sums all planes of one filter.
__global__ void bias_by_filter(const float* __restrict__ dy, float* __restrict__ gradient, int images) {
  __shared__ float part[256];
  const int filter = blockIdx.x, tid = threadIdx.x;
  float sum = 0.0f;
  for (int image = 0; image < images; image++) {
    const float* plane = dy + (size_t)(image * FILTERS + filter) * OUT * OUT;
    for (int i = tid; i < OUT * OUT; i += blockDim.x) sum += plane[i];
  }
  part[tid] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (tid < half) part[tid] += part[tid + half];
    __syncthreads();
  }
  if (tid == 0) gradient[filter] = part[0];
}

// A thread computes one weight's gradient from its share of the images.
__global__ void weights_by_thread(float* x, float* dy, float* gradient, int images) {
  int w = blockIdx.x * blockDim.x + threadIdx.x;
  if (w >= WEIGHTS) return;
  int kx = w % 3, ky = w / 3 % 3, c = w / 9 % CHANNELS, f = w / 9 / CHANNELS;
  float sum = 0.0f;
  for (int n = blockIdx.y; n < images; n += gridDim.y)
    for (int i = 0; i < OUT; i++)
      for (int j = 0; j < OUT; j++)
        sum += x[((n * CHANNELS + c) * SIDE + i + ky) * SIDE + j + kx] * dy[((n * FILTERS + f) * OUT + i) * OUT + j];
  atomicAdd(&gradient[w], sum);
}

// A block computes one weight's gradient.
__global__ void weights_by_block(const float* x, const float* dy, float* gradient, int images) {
  __shared__ float warps[4];
  int w = blockIdx.x;
  int kx = w % 3, ky = w / 3 % 3, c = w / 9 % CHANNELS, f = w / 9 / CHANNELS;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < images * OUT * OUT; i += blockDim.x) {
    int column = i % OUT, row = i / OUT % OUT, n = i / (OUT * OUT);
    sum += x[((n * CHANNELS + c) * SIDE + row + ky) * SIDE + column + kx] *
           dy[((n * FILTERS + f) * OUT + row) * OUT + column];
  }
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) gradient[w] = warps[0] + warps[1] + warps[2] + warps[3];
}

// A block computes the nine weights between one channel and one filter; a warp goes along the rows of the planes.
__global__ void weights_nine_sums(const float* __restrict__ x, const float* __restrict__ dy,
                                  float* __restrict__ gradient, int images) {
  __shared__ float total[9];
  const int c = blockIdx.x, f = blockIdx.y, lane = threadIdx.x, warp = threadIdx.y;
  if (warp == 0 && lane < 9) total[lane] = 0.0f;
  __syncthreads();
  float sums[9] = {};
  for (int n = 0; n < images; n++) {
    const float* in = x + (n * CHANNELS + c) * SIDE * SIDE;
    const float* out = dy + (n * FILTERS + f) * OUT * OUT;
    for (int row = warp; row < OUT; row += blockDim.y) {
      if (lane >= OUT) continue;
      const float d = out[row * OUT + lane];
#pragma unroll
      for (int k = 0; k < 9; k++) sums[k] += d * in[(row + k / 3) * SIDE + lane + k % 3];
    }
  }
#pragma unroll
  for (int k = 0; k < 9; k++) {
    float sum = sums[k];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    if (lane == 0) atomicAdd(&total[k], sum);
  }
  __syncthreads();
  if (warp == 0 && lane < 9) gradient[(f * CHANNELS + c) * 9 + lane] = total[lane];
}

// A thread gathers what one input element gets from all filters.
__global__ void input_gradient(const float* dy, const float* weight, float* dx, int images) {
  int column = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
  int c = blockIdx.y, n = blockIdx.z;
  float sum = 0.0f;
  for (int f = 0; f < FILTERS; f++)
    for (int ky = 0; ky < 3; ky++)
      for (int kx = 0; kx < 3; kx++) {
        int i = row - ky, j = column - kx;
        if (i >= 0 && i < OUT && j >= 0 && j < OUT)
          sum += dy[((n * FILTERS + f) * OUT + i) * OUT + j] * weight[((f * CHANNELS + c) * 3 + ky) * 3 + kx];
      }
  dx[((n * CHANNELS + c) * SIDE + row) * SIDE + column] = sum;
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 2);
  float *x = memory<float>((size_t)images * CHANNELS * SIDE * SIDE),
        *dx = memory<float>(images * CHANNELS * SIDE * SIDE);
  float* dy = memory<float>((size_t)images * FILTERS * OUT * OUT);
  float *weight = memory<float>(WEIGHTS), *gradient = memory<float>(WEIGHTS), *bias = memory<float>(FILTERS);
  measure("bias, a thread a plane", [&] { bias_by_plane<<<(images * FILTERS + 63) / 64, 64>>>(dy, bias, images); });
  measure("bias, a block a filter", [&] { bias_by_filter<<<FILTERS, 256>>>(dy, bias, images); });
  measure("weights, a thread each",
          [&] { weights_by_thread<<<dim3(WEIGHTS / 128, 8), 128>>>(x, dy, gradient, images); });
  measure("weights, a block each", [&] { weights_by_block<<<WEIGHTS, 128>>>(x, dy, gradient, images); });
  measure("weights, nine sums",
          [&] { weights_nine_sums<<<dim3(CHANNELS, FILTERS), dim3(32, 10)>>>(x, dy, gradient, images); });
  measure("input",
          [&] { input_gradient<<<dim3(SIDE / 8, CHANNELS, images), dim3(SIDE, 8)>>>(dy, weight, dx, images); });
}
