// Pooling that keeps where the largest element was, and what pooling passes back: scattered, gathered, spread.
// sizes: 8 4096 (planes)
#include "../micro/micro.h"

constexpr int SIDE = 64, HALF = SIDE / 2, PLANE = SIDE * SIDE, POOLED = HALF * HALF;

// Windows of 2 x 2. The index is the element's place in its plane.
__global__ void pool2_with_indices(float* x, float* y, int* indices, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int column = i % HALF, row = i / HALF % HALF, plane = i / POOLED;
  int best = 2 * row * SIDE + 2 * column;
  for (int dy = 0; dy < 2; dy++)
    for (int dx = 0; dx < 2; dx++) {
      int at = (2 * row + dy) * SIDE + 2 * column + dx;
      if (x[plane * PLANE + at] > x[plane * PLANE + best]) best = at;
    }
  y[i] = x[plane * PLANE + best];
  indices[i] = best;
}

// Windows of 3 x 3 at every second place, with a border of one; the index has 64 bits, as in PyTorch.
__global__ void pool3_with_indices(const float* __restrict__ x, float* __restrict__ y, int64_t* __restrict__ indices) {
  const int column = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y, plane = blockIdx.y;
  const float* in = x + (size_t)plane * PLANE;
  float largest = -INFINITY;
  int best = -1;
#pragma unroll
  for (int ky = -1; ky < 2; ky++)
#pragma unroll
    for (int kx = -1; kx < 2; kx++) {
      const int at_y = 2 * row + ky, at_x = 2 * column + kx;
      if (at_y < 0 || at_x < 0) continue;
      const float v = in[at_y * SIDE + at_x];
      if (v > largest || best < 0) {
        largest = v;
        best = at_y * SIDE + at_x;
      }
    }
  const size_t i = ((size_t)plane * HALF + row) * HALF + column;
  y[i] = largest;
  indices[i] = best;
}

// Each gradient is added where its largest element was.
__global__ void scatter_atomic(const float* dy, const int* indices, float* dx, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < total) atomicAdd(&dx[i / POOLED * PLANE + indices[i]], dy[i]);
}

// Windows do not overlap, so a plain store will do; dx holds zeros elsewhere.
__global__ void scatter_store(const float* __restrict__ dy, const int* __restrict__ indices, float* __restrict__ dx,
                              int total) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x)
    dx[i / POOLED * PLANE + indices[i]] = dy[i];
}

// A thread asks the windows of 3 x 3 in which its element lies whether it was their largest.
__global__ void gather_overlapping(const float* dy, const int64_t* indices, float* dx) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int plane = blockIdx.z;
  int first_y = row / 2, last_y = (row + 1) / 2 < HALF ? (row + 1) / 2 : HALF - 1;
  int first_x = column / 2, last_x = (column + 1) / 2 < HALF ? (column + 1) / 2 : HALF - 1;
  float sum = 0.0f;
  for (int y = first_y; y <= last_y; y++)
    for (int x = first_x; x <= last_x; x++) {
      int window = (plane * HALF + y) * HALF + x;
      if (indices[window] == row * SIDE + column) sum += dy[window];
    }
  dx[(plane * SIDE + row) * SIDE + column] = sum;
}

// The largest of each window is looked for again; a thread writes all four gradients.
__global__ void recompute_largest(const float2* x, const float* dy, float2* dx, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int column = i % HALF, row = i / HALF;
  int above = 2 * row * HALF + column, below = above + HALF;
  float2 a = x[above], b = x[below];
  float d = dy[i], largest = fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y));
  bool first = a.x == largest, second = !first && a.y == largest, third = !first && !second && b.x == largest;
  dx[above] = make_float2(first ? d : 0.0f, second ? d : 0.0f);
  dx[below] = make_float2(third ? d : 0.0f, first || second || third ? 0.0f : d);
}

// The gradient of an average is spread over its window, whose height and width are not known to the compiler.
__global__ void spread_average(float* dy, float* dx, int total, int height, int width, int window) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int column = i % width, row = i / width % height, plane = i / (width * height);
  int out_height = height / window, out_width = width / window;
  dx[i] = dy[(plane * out_height + row / window) * out_width + column / window] / (window * window);
}

int main(int argc, char** argv) {
  const int planes = size_of_run(argc, argv, 8), total = planes * PLANE, pooled = planes * POOLED;
  float *x = memory<float>(total), *dx = memory<float>(total), *y = memory<float>(pooled), *dy = memory<float>(pooled);
  std::vector<float> values(total);
  std::vector<int> places(pooled);
  std::vector<int64_t> overlapping(pooled);
  unsigned random = 1;
  for (float& v : values) v = (random = random * 1664525u + 1013904223u) >> 8;
  for (int i = 0; i < pooled; i++) {
    random = random * 1664525u + 1013904223u;
    const int column = i % HALF, row = i / HALF % HALF, down = random >> 28 & 1, right = random >> 29 & 1;
    places[i] = (2 * row + down) * SIDE + 2 * column + right;
    overlapping[i] = random >> 30 && row && column ? places[i] - SIDE - 1 : places[i];
  }
  int *indices = memory<int>(pooled), *made = memory<int>(pooled);
  int64_t *indices3 = memory<int64_t>(pooled), *made3 = memory<int64_t>(pooled);
  CHECK(cudaMemcpy(x, values.data(), total * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(indices, places.data(), pooled * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(indices3, overlapping.data(), pooled * sizeof(int64_t), cudaMemcpyHostToDevice));
  measure("2 x 2 with indices", [&] { pool2_with_indices<<<pooled / 256, 256>>>(x, y, made, pooled); });
  measure("3 x 3 with indices", [&] { pool3_with_indices<<<dim3(HALF / 4, planes), dim3(HALF, 4)>>>(x, y, made3); });
  measure("2 x 2 back, atomics", [&] { scatter_atomic<<<pooled / 128, 128>>>(dy, indices, dx, pooled); });
  measure("2 x 2 back, stores", [&] { scatter_store<<<660, 256>>>(dy, indices, dx, pooled); });
  measure("3 x 3 back, gathered",
          [&] { gather_overlapping<<<dim3(SIDE / 16, SIDE / 16, planes), dim3(16, 16)>>>(dy, indices3, dx); });
  measure("2 x 2 back, looked for again",
          [&] { recompute_largest<<<pooled / 512, 512>>>((float2*)x, dy, (float2*)dx, pooled); });
  measure("average back", [&] { spread_average<<<total / 1024, 1024>>>(dy, dx, total, SIDE, SIDE, 2); });
}
