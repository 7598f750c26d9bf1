// Softmax over rows in three passes and in two, over the channels of an image, and cross entropy.
// sizes: 16 16384 (rows of 1000 floats)
#include "../micro/micro.h"

constexpr int N = 1000, CLASSES = 20;

__global__ void three_passes(float* x, float* y) {
  __shared__ float part[256];
  int tid = threadIdx.x;
  float* in = x + blockIdx.x * N;
  float* out = y + blockIdx.x * N;
  float most = -INFINITY;
  for (int i = tid; i < N; i += 256) most = fmaxf(most, in[i]);
  part[tid] = most;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (tid < s) part[tid] = fmaxf(part[tid], part[tid + s]);
    __syncthreads();
  }
  most = part[0];
  __syncthreads();
  float sum = 0.0f;
  for (int i = tid; i < N; i += 256) {
    out[i] = expf(in[i] - most);
    sum += out[i];
  }
  part[tid] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (tid < s) part[tid] += part[tid + s];
    __syncthreads();
  }
  sum = part[0];
  for (int i = tid; i < N; i += 256) out[i] /= sum;
}

// The largest so far and the sum so far go along together: a warp a row.
__global__ void online(const float* x, float* y, int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float most = -INFINITY, sum = 0.0f;
  for (int i = lane; i < N; i += 32) {
    float v = x[row * N + i];
    float larger = fmaxf(most, v);
    sum = sum * expf(most - larger) + expf(v - larger);
    most = larger;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    float other_most = __shfl_xor_sync(0xffffffff, most, offset);
    float other_sum = __shfl_xor_sync(0xffffffff, sum, offset);
    float larger = fmaxf(most, other_most);
    sum = sum * expf(most - larger) + other_sum * expf(other_most - larger);
    most = larger;
  }
  for (int i = lane; i < N; i += 32) y[row * N + i] = expf(x[row * N + i] - most) / sum;
}

// A thread a pixel; the classes of a pixel lie an image apart.
__global__ void log_softmax_channels(float* x, float* y, int pixels) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= pixels) return;
  float most = x[p];
  for (int c = 1; c < CLASSES; c++) most = fmaxf(most, x[c * pixels + p]);
  float sum = 0.0f;
  for (int c = 0; c < CLASSES; c++) sum += expf(x[c * pixels + p] - most);
  for (int c = 0; c < CLASSES; c++) y[c * pixels + p] = x[c * pixels + p] - most - logf(sum);
}

__global__ void cross_entropy(float* x, int* target, float* loss) {
  __shared__ float part[128];
  int tid = threadIdx.x;
  float* in = x + blockIdx.x * N;
  float sum = 0.0f;
  for (int i = tid; i < N; i += 128) sum += expf(in[i]);
  part[tid] = sum;
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (tid < s) part[tid] += part[tid + s];
    __syncthreads();
  }
  if (tid == 0) loss[blockIdx.x] = logf(part[0]) - in[target[blockIdx.x]];
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 16), pixels = rows * N / CLASSES;
  float *x = memory<float>(rows * N), *y = memory<float>(rows * N), *loss = memory<float>(rows);
  std::vector<int> classes(rows);
  unsigned state = 1;
  for (int& c : classes) {
    state = state * 1664525u + 1013904223u;
    c = (state >> 8) % N;
  }
  int* target = memory<int>(rows);
  CHECK(cudaMemcpy(target, classes.data(), rows * sizeof(int), cudaMemcpyHostToDevice));
  measure("three passes", [&] { three_passes<<<rows, 256>>>(x, y); });
  measure("online", [&] { online<<<rows / 8, 256>>>(x, y, rows); });
  measure("log softmax of channels", [&] { log_softmax_channels<<<(pixels + 127) / 128, 128>>>(x, y, pixels); });
  measure("cross entropy", [&] { cross_entropy<<<rows, 128>>>(x, target, loss); });
}
