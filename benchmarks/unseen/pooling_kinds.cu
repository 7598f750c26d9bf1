// Pooling of lists, planes and cubes: dilated, running, of powers, adaptive, overlapping, undone.
// sizes: 32 4096 (lists of 4096 floats, which are planes of 64 x 64 or cubes of 16 x 16 x 16 as well)
#include "../micro/micro.h"

constexpr int PIECE = 4096, SIDE = 64, EDGE = 16;

// The largest of eight elements that lie three apart.
__global__ void max_1d_dilated(float* x, float* y, int length, int window, int dilation, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int out_length = length - dilation * (window - 1);
  int list = i / out_length, at = i % out_length;
  float largest = -INFINITY;
  for (int k = 0; k < window; k++) largest = fmaxf(largest, x[list * length + at + k * dilation]);
  y[i] = largest;
}

// A thread has 64 results in a row: each window is the last one with an element more and one less.
__global__ void average_1d_running(const float* x, float* y, int window, int threads) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= threads) return;
  int first = t * 64;
  float sum = 0.0f;
  for (int k = 0; k < window; k++) sum += x[first + k];
  for (int i = first; i < first + 64; i++) {
    y[i] = sum / window;
    sum += x[i + window] - x[i];
  }
}

// Windows of 3 x 3 x 3 in steps of two; what lies outside of the cube counts as zero.
__global__ void average_3d(const float* x, float* y, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int out = EDGE / 2;
  int ox = i % out, oy = i / out % out, oz = i / (out * out) % out, cube = i / (out * out * out);
  float sum = 0.0f;
  for (int dz = -1; dz <= 1; dz++)
    for (int dy = -1; dy <= 1; dy++)
      for (int dx = -1; dx <= 1; dx++) {
        int z = 2 * oz + dz, v = 2 * oy + dy, u = 2 * ox + dx;
        if (z >= 0 && z < EDGE && v >= 0 && v < EDGE && u >= 0 && u < EDGE)
          sum += x[((cube * EDGE + z) * EDGE + v) * EDGE + u];
      }
  y[i] = sum / 27.0f;
}

// Cubes again, with every second element of five in each direction; the cube of each block is in shared memory.
__global__ void max_3d_cube(const float4* x, float* y) {
  __shared__ float4 cube[PIECE / 4];
  for (int i = threadIdx.x; i < PIECE / 4; i += blockDim.x) cube[i] = x[blockIdx.x * (PIECE / 4) + i];
  __syncthreads();
  const float* in = reinterpret_cast<const float*>(cube);
  for (int i = threadIdx.x; i < 12 * 12 * 12; i += blockDim.x) {
    int u = i % 12, v = i / 12 % 12, z = i / 144;
    float largest = -INFINITY;
#pragma unroll
    for (int k = 0; k < 27; k++)
      largest = fmaxf(largest, in[((z + k / 9 * 2) * EDGE + v + k / 3 % 3 * 2) * EDGE + u + k % 3 * 2]);
    y[blockIdx.x * 1728 + i] = largest;
  }
}

// The p-th root of the sum of p-th powers of 2 x 2 pixels.
__global__ void power_average(float* x, float* y, float p, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int column = i % (SIDE / 2), row = i / (SIDE / 2) % (SIDE / 2), plane = i / (SIDE * SIDE / 4);
  float sum = 0.0f;
  for (int ky = 0; ky < 2; ky++)
    for (int kx = 0; kx < 2; kx++) sum += powf(fabsf(x[(plane * SIDE + row * 2 + ky) * SIDE + column * 2 + kx]), p);
  y[i] = powf(sum, 1.0f / p);
}

// Each plane to 7 x 7, whatever its size: windows overlap where the division leaves a rest. A warp a window.
__global__ void adaptive_average(const float* x, float* y, int height, int width, int outs) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (i >= outs) return;
  int column = i % 7, row = i / 7 % 7, plane = i / 49;
  int top = row * height / 7, bottom = ((row + 1) * height + 6) / 7;
  int left = column * width / 7, right = ((column + 1) * width + 6) / 7;
  int wide = right - left, count = wide * (bottom - top);
  float sum = 0.0f;
  for (int k = lane; k < count; k += 32) sum += x[(plane * height + top + k / wide) * width + left + k % wide];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) y[i] = sum / count;
}

// Windows of 5 x 5 around each pixel: first along the rows, then along the columns of a plane in shared memory.
__global__ void max_5x5_two_passes(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float plane[SIDE * SIDE], rows[SIDE * SIDE];
  x += (size_t)blockIdx.x * PIECE;
  y += (size_t)blockIdx.x * PIECE;
  for (int i = threadIdx.x; i < PIECE; i += blockDim.x) plane[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < PIECE; i += blockDim.x) {
    const int column = i % SIDE;
    float v = plane[i];
#pragma unroll
    for (int d = -2; d <= 2; d++)
      if (column + d >= 0 && column + d < SIDE) v = fmaxf(v, plane[i + d]);
    rows[i] = v;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < PIECE; i += blockDim.x) {
    const int row = i / SIDE;
    float v = rows[i];
#pragma unroll
    for (int d = -2; d <= 2; d++)
      if (row + d >= 0 && row + d < SIDE) v = fmaxf(v, rows[i + d * SIDE]);
    y[i] = v;
  }
}

// Each value back to its place among 2 x 2 pixels, zeros to the other three.
__global__ void max_unpool(const float* value, const unsigned char* place, float* y, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int column = i % (SIDE / 2), row = i / (SIDE / 2);
  int at = place[i] & 3;
  float v = value[i];
  for (int k = 0; k < 4; k++) y[(row * 2 + k / 2) * SIDE + column * 2 + k % 2] = k == at ? v : 0.0f;
}

int main(int argc, char** argv) {
  const int pieces = size_of_run(argc, argv, 32), n = pieces * PIECE;
  float *x = memory<float>(n), *y = memory<float>(n);
  std::vector<float> values(n);
  unsigned state = 15;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  unsigned char* place = memory<unsigned char>(n / 4);
  for (int i = 0; i < n / 4; i += PIECE) CHECK(cudaMemcpy(place + i, values.data(), PIECE, cudaMemcpyHostToDevice));
  const int dilated = pieces * (PIECE - 21), threads = n / 64 - 1;
  measure("largest, dilated", [&] { max_1d_dilated<<<(dilated + 255) / 256, 256>>>(x, y, PIECE, 8, 3, dilated); });
  measure("average, running", [&] { average_1d_running<<<(threads + 127) / 128, 128>>>(x, y, 16, threads); });
  measure("average of cubes", [&] { average_3d<<<n / 8 / 256, 256>>>(x, y, n / 8); });
  measure("largest, cube in shared", [&] { max_3d_cube<<<pieces, 192>>>((float4*)x, y); });
  measure("powers", [&] { power_average<<<n / 4 / 256, 256>>>(x, y, 3.0f, n / 4); });
  const int outs = pieces * 49;
  measure("adaptive", [&] { adaptive_average<<<(outs + 7) / 8, 256>>>(x, y, SIDE, SIDE, outs); });
  measure("largest, two passes", [&] { max_5x5_two_passes<<<pieces, 256>>>(x, y); });
  measure("undone", [&] { max_unpool<<<n / 4 / 128, 128>>>(x, place, y, n / 4); });
}
