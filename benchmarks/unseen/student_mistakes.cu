// Kernels that are right but slow, each through one habit: addresses, banks, tiny blocks, divergence, barriers, pow.
// sizes: 16 24 (log2 of the elements)
#include "../micro/micro.h"

constexpr int WIDTH = 1024, DIMENSIONS = 16;

// The x index of a thread is the row, so that neighbouring threads lie a row apart.
__global__ void uncoalesced_scale(const float* x, const float* scale, float* y, int rows, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < width) y[row * width + col] = x[row * width + col] * scale[col];
}

// Loads are coalesced, but then each thread adds up 16 elements that follow one another in shared memory.
__global__ void bank_conflicts(const float* x, float* y) {
  __shared__ float s[128 * 16];
  int first = blockIdx.x * 128 * 16;
  for (int k = 0; k < 16; k++) s[k * 128 + threadIdx.x] = x[first + k * 128 + threadIdx.x];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 16; k++) {
    sum += s[threadIdx.x * 16 + k];
    s[threadIdx.x * 16 + k] = sum;
  }
  __syncthreads();
  for (int k = 0; k < 16; k++) y[first + k * 128 + threadIdx.x] = s[k * 128 + threadIdx.x];
}

// Blocks of 16 threads.
__global__ void tiny_blocks(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.01f * x[i];
}

// The number of steps depends on the lane, and what is computed on whether it is odd.
__global__ void divergent_steps(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  int steps = i % 32;
  for (int k = 0; k < steps; k++) {
    if (i % 2 == 0)
      v = sinf(v) + 0.1f;
    else
      v = sqrtf(fabsf(v) + 0.5f);
  }
  y[i] = v;
}

// Sums of 32 neighbours: only a warp meets, but the whole block waits after each step.
__global__ void barrier_each_step(const float* x, float* y) {
  __shared__ float s[1024];
  int tid = threadIdx.x, lane = tid % 32;
  s[tid] = x[blockIdx.x * 1024 + tid];
  __syncthreads();
  for (int step = 16; step > 0; step /= 2) {
    float other = lane < step ? s[tid + step] : 0.0f;
    __syncthreads();
    s[tid] += other;
    __syncthreads();
  }
  __syncthreads();
  if (lane == 0) y[(blockIdx.x * 1024 + tid) / 32] = s[tid];
}

// Distances of points from a centre, with pow for the squares and everything in double.
__global__ void pow_in_double(const float* points, const float* centre, float* distance, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double sum = 0.0;
  for (int d = 0; d < DIMENSIONS; d++) sum += pow(points[d * count + i] - centre[d], 2.0);
  distance[i] = sqrt(sum);
}

// Sums of 3 x 3 neighbours that wrap around: row and column are computed anew for each of them.
__global__ void division_and_modulo(const float* x, float* y, int width, int height) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width * height) return;
  float sum = 0.0f;
  for (int k = 0; k < 9; k++) {
    int row = (i / width + k / 3 + height - 1) % height;
    int col = (i % width + k % 3 + width - 1) % width;
    sum += x[row * width + col];
  }
  y[i] = sum / 9.0f;
}

// What one thread alone needs lies in global memory: eight powers of its element, then a polynomial.
__global__ void global_scratch(const float* x, const float* weight, float* scratch, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float* mine = scratch + i * 8;
  mine[0] = 1.0f;
  for (int k = 1; k < 8; k++) mine[k] = mine[k - 1] * x[i];
  y[i] = 0.0f;
  for (int k = 0; k < 8; k++) y[i] += weight[k] * mine[k];
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 16), rows = n / WIDTH;
  float *x = memory<float>(n), *y = memory<float>(n), *scratch = memory<float>(n), *weight = memory<float>(WIDTH);
  std::vector<float> values(n);
  unsigned state = 27;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  measure("uncoalesced",
          [&] { uncoalesced_scale<<<dim3((rows + 31) / 32, WIDTH / 8), dim3(32, 8)>>>(x, weight, y, rows, WIDTH); });
  measure("bank conflicts", [&] { bank_conflicts<<<n / (128 * 16), 128>>>(x, y); });
  measure("tiny blocks", [&] { tiny_blocks<<<n / 2 / 16, 16>>>(x, y, n / 2); });
  measure("divergent steps", [&] { divergent_steps<<<n / 256, 256>>>(x, y, n); });
  measure("a barrier each step", [&] { barrier_each_step<<<n / 1024, 1024>>>(x, y); });
  const int points = n / DIMENSIONS;
  measure("pow in double", [&] { pow_in_double<<<(points + 127) / 128, 128>>>(x, weight, y, points); });
  measure("division and modulo", [&] { division_and_modulo<<<n / 256, 256>>>(x, y, WIDTH, rows); });
  measure("scratch in global", [&] { global_scratch<<<n / 8 / 256, 256>>>(x, weight, scratch, y, n / 8); });
}
