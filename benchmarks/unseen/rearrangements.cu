// Elements moved and not changed: dimensions exchanged, pixels and channels shuffled, rows rolled, structures split.
// sizes: 18 24 (log2 of the elements)
#include "../micro/micro.h"

constexpr int TOKENS = 256, HEADS = 16, DEPTH = 64;

struct Shape {
  int sizes[4], strides[4];  // of the result, and of the input in the result's order
};

__global__ void permute_general(const float* x, float* y, Shape shape, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int rest = i, from = 0;
  for (int d = 3; d >= 0; d--) {
    from += rest % shape.sizes[d] * shape.strides[d];
    rest /= shape.sizes[d];
  }
  y[i] = x[from];
}

// From (sequence, token, head, depth) to (sequence, head, token, depth), four elements at a time.
__global__ void heads_first(const float4* __restrict__ x, float4* __restrict__ y) {
  const int d = threadIdx.x, head = threadIdx.y, token = blockIdx.x, sequence = blockIdx.y;
  y[((sequence * HEADS + head) * TOKENS + token) * (DEPTH / 4) + d] =
      x[((sequence * TOKENS + token) * HEADS + head) * (DEPTH / 4) + d];
}

// Squares of factor x factor pixels become as many channels.
__global__ void pixel_unshuffle(float* x, float* y, int height, int width, int factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int in_x = i % width, in_y = i / width % height, c = i / (width * height);
  int new_c = c * factor * factor + in_y % factor * factor + in_x % factor;
  y[(new_c * (height / factor) + in_y / factor) * (width / factor) + in_x / factor] = x[i];
}

// The channels of each image, dealt out to groups.
__global__ void channel_shuffle(const float* x, float* y, int channels, int groups, int plane) {
  int c = blockIdx.y % channels, image = blockIdx.y / channels;
  int from = c % groups * (channels / groups) + c / groups;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < plane) y[(image * channels + c) * plane + i] = x[(image * channels + from) * plane + i];
}

// Each row moved round by some places, so that reads start anywhere.
__global__ void roll_rows(float* x, float* y, int width, int shift) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (i < width) y[row * width + i] = x[row * width + (i - shift + width) % width];
}

// Square matrices of which only the part on and above the diagonal is read.
__global__ void upper_triangle(const float* x, float* y, int side) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  size_t i = ((size_t)blockIdx.z * side + row) * side + column;
  y[i] = column >= row ? x[i] : 0.0f;
}

struct Particle {
  float x, y, z, mass, charge;
};

// A structure a thread, taken apart into five lists.
__global__ void split_structures(const Particle* particles, float* x, float* y, float* z, float* mass, float* charge,
                                 int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Particle p = particles[i];
  x[i] = p.x;
  y[i] = p.y;
  z[i] = p.z;
  mass[i] = p.mass;
  charge[i] = p.charge;
}

// Many matrices of 24 x 24, each transposed by a block, through shared memory.
__global__ void transpose_small(const float* x, float* y) {
  __shared__ float tile[24 * 24];
  for (int i = threadIdx.x; i < 576; i += 192) tile[i] = x[blockIdx.x * 576 + i];
  __syncthreads();
  for (int i = threadIdx.x; i < 576; i += 192) y[blockIdx.x * 576 + i] = tile[i % 24 * 24 + i / 24];
}

// The last element first; a thread moves two pairs.
__global__ void reverse(const float2* x, float2* y, int n) {
  int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 2; k++, i += blockDim.x)
    if (i < n) {
      float2 v = x[n - 1 - i];
      y[i] = make_float2(v.y, v.x);
    }
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 18);
  float *x = memory<float>(n), *y = memory<float>(n);
  const int last = n / 4096;
  const Shape swapped = {{8, last, 32, 16}, {16 * 32 * last, 1, last, 32 * last}};  // from (8, 16, 32, last)
  measure("permute, any strides", [&] { permute_general<<<n / 256, 256>>>(x, y, swapped, n); });
  measure("heads first", [&] {
    heads_first<<<dim3(TOKENS, n / (TOKENS * HEADS * DEPTH)), dim3(DEPTH / 4, HEADS)>>>((float4*)x, (float4*)y);
  });
  measure("pixel unshuffle", [&] { pixel_unshuffle<<<n / 128, 128>>>(x, y, 64, 64, 2, n); });
  measure("channel shuffle", [&] { channel_shuffle<<<dim3(4, n / 784 / 64 * 64), 256>>>(x, y, 64, 4, 784); });
  measure("roll", [&] { roll_rows<<<dim3(4, n / 1000), 256>>>(x, y, 1000, 77); });
  measure("upper triangle", [&] { upper_triangle<<<dim3(4, 16, n / 16384), dim3(32, 8)>>>(x, y, 128); });
  const int structures = n / 5;
  measure("split structures", [&] {
    split_structures<<<(structures + 255) / 256, 256>>>((Particle*)x, y, y + structures, y + 2 * structures,
                                                        y + 3 * structures, y + 4 * structures, structures);
  });
  measure("transpose of 24 x 24", [&] { transpose_small<<<n / 576, 192>>>(x, y); });
  measure("reverse", [&] { reverse<<<n / 2 / 512, 256>>>((float2*)x, (float2*)y, n / 2); });
}
