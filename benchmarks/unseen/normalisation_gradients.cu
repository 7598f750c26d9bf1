// What normalisations and softmax pass back, and instance normalisation of planes that fit into registers.
// sizes: 64 16384 (rows)
#include "../micro/micro.h"

constexpr int WIDTH = 1024, CHANNELS = 64, PLANE = 28 * 28;

template <int THREADS>
__device__ float sum_of_block(float v) {
  __shared__ float warps[THREADS / 32];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffff, v, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0.0f;
#pragma unroll
  for (int w = 0; w < THREADS / 32; w++) v += warps[w];
  return v;
}

// Both sums that batch normalisation needs: a block a channel.
__global__ void batch_sums(const float* x, const float* dy, const float* mean, const float* scale, float* sum_dy,
                           float* sum_dy_x, int images) {
  int c = blockIdx.x;
  float a = 0.0f, b = 0.0f, m = mean[c], s = scale[c];
  for (int n = 0; n < images; n++)
    for (int i = threadIdx.x; i < PLANE; i += blockDim.x) {
      int at = (n * CHANNELS + c) * PLANE + i;
      a += dy[at];
      b += dy[at] * (x[at] - m) * s;
    }
  a = sum_of_block<512>(a);
  b = sum_of_block<512>(b);
  if (threadIdx.x == 0) {
    sum_dy[c] = a;
    sum_dy_x[c] = b;
  }
}

__global__ void batch_gradient(float* x, float* dy, float* mean, float* scale, float* weight, float* sum_dy,
                               float* sum_dy_x, float* dx, int total, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int c = i / PLANE % CHANNELS;
  float normal = (x[i] - mean[c]) * scale[c];
  dx[i] = weight[c] * scale[c] * (dy[i] - sum_dy[c] / count - normal * sum_dy_x[c] / count);
}

// Layer normalisation: a block a row, everything read twice.
__global__ void layer_gradient(const float* __restrict__ x, const float* __restrict__ dy,
                               const float* __restrict__ weight, const float* __restrict__ mean,
                               const float* __restrict__ scale, float* __restrict__ dx) {
  const int row = blockIdx.x;
  x += (size_t)row * WIDTH, dy += (size_t)row * WIDTH, dx += (size_t)row * WIDTH;
  const float m = mean[row], s = scale[row];
  float a = 0.0f, b = 0.0f;
  for (int i = threadIdx.x; i < WIDTH; i += 256) {
    const float d = dy[i] * weight[i];
    a += d;
    b += d * (x[i] - m) * s;
  }
  a = sum_of_block<256>(a) / WIDTH;
  b = sum_of_block<256>(b) / WIDTH;
  for (int i = threadIdx.x; i < WIDTH; i += 256) dx[i] = s * (dy[i] * weight[i] - a - (x[i] - m) * s * b);
}

// The gradients of weight and bias: a thread a column, its rows one after the other.
__global__ void layer_weights_by_column(float* x, float* dy, float* mean, float* scale, float* dw, float* db,
                                        int rows) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float w = 0.0f, b = 0.0f;
  for (int r = blockIdx.y; r < rows; r += gridDim.y) {
    float d = dy[r * WIDTH + column];
    w += d * (x[r * WIDTH + column] - mean[r]) * scale[r];
    b += d;
  }
  atomicAdd(dw + column, w);
  atomicAdd(db + column, b);
}

// The same, by blocks of 32 columns and 16 rows that add up in shared memory.
__global__ void layer_weights_by_tile(const float* x, const float* dy, const float* mean, const float* scale, float* dw,
                                      float* db, int rows) {
  __shared__ float2 part[16][33];
  int column = blockIdx.x * 32 + threadIdx.x;
  float2 sum = make_float2(0.0f, 0.0f);
  for (int r = threadIdx.y; r < rows; r += 16) {
    float d = dy[r * WIDTH + column];
    sum.x += d * (x[r * WIDTH + column] - mean[r]) * scale[r];
    sum.y += d;
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int k = 1; k < 16; k++) {
      sum.x += part[k][threadIdx.x].x;
      sum.y += part[k][threadIdx.x].y;
    }
    dw[column] = sum.x;
    db[column] = sum.y;
  }
}

// Softmax: a warp a row, four elements at a time.
__global__ void softmax_gradient(const float4* y, const float4* dy, float4* dx, int rows) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  y += row * (WIDTH / 4), dy += row * (WIDTH / 4), dx += row * (WIDTH / 4);
  float dot = 0.0f;
  for (int i = lane; i < WIDTH / 4; i += 32) {
    float4 p = y[i], d = dy[i];
    dot += p.x * d.x + p.y * d.y + p.z * d.z + p.w * d.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) dot += __shfl_xor_sync(0xffffffff, dot, offset);
  for (int i = lane; i < WIDTH / 4; i += 32) {
    float4 p = y[i], d = dy[i];
    dx[i] = make_float4(p.x * (d.x - dot), p.y * (d.y - dot), p.z * (d.z - dot), p.w * (d.w - dot));
  }
}

// Log-softmax: a thread a row, neighbours a whole row apart.
__global__ void log_softmax_gradient(const float* y, const float* dy, float* dx, int rows, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < width; i++) sum += dy[row * width + i];
  for (int i = 0; i < width; i++) dx[row * width + i] = dy[row * width + i] - expf(y[row * width + i]) * sum;
}

// Instance normalisation: a block a plane of 1024 elements, which its threads keep in registers.
__global__ void __launch_bounds__(128) instance_norm(const float4* __restrict__ x, float4* __restrict__ y) {
  const size_t first = (size_t)blockIdx.x * 256 + threadIdx.x;
  float4 v[2] = {x[first], x[first + 128]};
  float mean = sum_of_block<128>(v[0].x + v[0].y + v[0].z + v[0].w + v[1].x + v[1].y + v[1].z + v[1].w) / 1024.0f;
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < 2; k++) {
    v[k].x -= mean, v[k].y -= mean, v[k].z -= mean, v[k].w -= mean;
    squares += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
  }
  const float scale = rsqrtf(sum_of_block<128>(squares) / 1024.0f + 1e-5f);
#pragma unroll
  for (int k = 0; k < 2; k++)
    y[first + k * 128] = make_float4(v[k].x * scale, v[k].y * scale, v[k].z * scale, v[k].w * scale);
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 64), n = rows * WIDTH;
  const int images = n / (CHANNELS * PLANE), total = images * CHANNELS * PLANE;
  float *x = memory<float>(n), *dy = memory<float>(n), *dx = memory<float>(n);
  float *mean = memory<float>(rows + WIDTH), *scale = memory<float>(rows + WIDTH), *weight = memory<float>(WIDTH);
  float *dw = memory<float>(WIDTH), *db = memory<float>(WIDTH);
  measure("batch norm, sums", [&] { batch_sums<<<CHANNELS, 512>>>(x, dy, mean, scale, dw, db, images); });
  measure("batch norm, gradient", [&] {
    batch_gradient<<<(total + 255) / 256, 256>>>(x, dy, mean, scale, weight, dw, db, dx, total, images * PLANE);
  });
  measure("layer norm", [&] { layer_gradient<<<rows, 256>>>(x, dy, weight, mean, scale, dx); });
  measure("layer norm's weights, by column",
          [&] { layer_weights_by_column<<<dim3(WIDTH / 64, 16), 64>>>(x, dy, mean, scale, dw, db, rows); });
  measure("layer norm's weights, by tile",
          [&] { layer_weights_by_tile<<<WIDTH / 32, dim3(32, 16)>>>(x, dy, mean, scale, dw, db, rows); });
  measure("softmax", [&] { softmax_gradient<<<rows / 8, 256>>>((float4*)x, (float4*)dy, (float4*)dx, rows); });
  measure("log-softmax of short rows", [&] { log_softmax_gradient<<<n / 32 / 128, 128>>>(x, dy, dx, n / 32, 32); });
  measure("instance norm", [&] { instance_norm<<<rows, 128>>>((float4*)x, (float4*)dx); });
}
