// How memory is read and written, as courses show it: transposes, structures, strides, an index list, a pitch.
// sizes: 64 4096 (the side of a matrix)
#include <cuda_fp16.h>

#include "../micro/micro.h"

constexpr int TILE_DIM = 32, BLOCK_ROWS = 8, STRIDE = 8;

struct Particle {
  float x, y, z, vx, vy, vz, mass;
};

// A thread an element, with edges: the writes go down a column.
__global__ void transpose_naive(const float* in, float* out, int rows, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
}

// Through a tile, four elements a thread; with and without a column more than needed.
template <int PADDING>
__global__ void transpose_tile(const float* idata, float* odata) {
  __shared__ float tile[TILE_DIM][TILE_DIM + PADDING];
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
  int width = gridDim.x * TILE_DIM;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * TILE_DIM + threadIdx.x;
  y = blockIdx.x * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) odata[(y + j) * width + x] = tile[threadIdx.x][threadIdx.y + j];
}

// An array of structures.
__global__ void move_aos(Particle* particles, float dt, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Particle p = particles[i];
  p.vz -= 9.81f * dt / p.mass;
  p.x += p.vx * dt;
  p.y += p.vy * dt;
  p.z += p.vz * dt;
  particles[i] = p;
}

// A structure of arrays: an array for each of what a particle has.
__global__ void move_soa(float* x, float* y, float* z, float* vx, float* vy, float* vz, float* mass, float dt,
                         int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  vz[i] -= 9.81f * dt / mass[i];
  x[i] += vx[i] * dt;
  y[i] += vy[i] * dt;
  z[i] += vz[i] * dt;
}

// Every eighth element.
__global__ void add_strided(float* a, int s) {
  int i = (blockDim.x * blockIdx.x + threadIdx.x) * s;
  a[i] = a[i] + 1;
}

// The places lie in a list; each is near the one of the element.
__global__ void gather(const double* x, const int* index, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[index[i]];
}

// Rows of halves, padded to a pitch of so many bytes, become rows of floats without gaps.
__global__ void copy_from_pitch(const char* in, size_t pitch, float* out, int width, int height) {
  for (int row = blockIdx.y; row < height; row += gridDim.y) {
    const __half* from = (const __half*)(in + row * pitch);
    for (int column = blockIdx.x * blockDim.x + threadIdx.x; column < width; column += gridDim.x * blockDim.x)
      out[row * width + column] = __half2float(from[column]);
  }
}

int main(int argc, char** argv) {
  const int side = size_of_run(argc, argv, 64), n = side * side, count = n / 8;
  float *x = memory<float>(n), *y = memory<float>(n), *particles = memory<float>(count * 7);
  int* index = memory<int>(n / 2);
  std::vector<float> values(n);
  std::vector<int> places(n / 2);
  unsigned state = 30;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  for (int i = 0; i < n / 2; i++) {
    state = state * 1664525u + 1013904223u;
    places[i] = i / 1024 * 1024 + (state >> 8) % 1024;
  }
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(index, places.data(), n / 2 * sizeof(int), cudaMemcpyHostToDevice));
  const int rows = side - 17, columns = side + 17;
  measure("transpose, naive, edges",
          [&] { transpose_naive<<<dim3((columns + 15) / 16, (rows + 15) / 16), dim3(16, 16)>>>(x, y, rows, columns); });
  const dim3 tiles(side / TILE_DIM, side / TILE_DIM), block(TILE_DIM, BLOCK_ROWS);
  measure("transpose, tile", [&] { transpose_tile<0><<<tiles, block>>>(x, y); });
  measure("transpose, padded tile", [&] { transpose_tile<1><<<tiles, block>>>(x, y); });
  measure("array of structures", [&] { move_aos<<<(count + 255) / 256, 256>>>((Particle*)particles, 0.001f, count); });
  measure("structure of arrays", [&] {
    float* p = particles;
    const int k = count;
    move_soa<<<(k + 255) / 256, 256>>>(p, p + k, p + 2 * k, p + 3 * k, p + 4 * k, p + 5 * k, p + 6 * k, 0.001f, k);
  });
  measure("every eighth element", [&] { add_strided<<<n / STRIDE / 256, 256>>>(y, STRIDE); });
  double* doubles = memory<double>(n / 2);
  measure("gather of double", [&] { gather<<<n / 2 / 128, 128>>>(doubles, index, (double*)y, n / 2); });
  const size_t pitch = (side * sizeof(__half) + 511) / 512 * 512;
  char* padded = memory<char>(pitch * side);
  measure("halves with a pitch",
          [&] { copy_from_pitch<<<dim3((side + 255) / 256, side / 4), 256>>>(padded, pitch, y, side, side); });
}
