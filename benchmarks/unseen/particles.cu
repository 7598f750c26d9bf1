// Every point with every other: forces from global memory and through a tile, distances, the nearest of a few centres.
// sizes: 9 14 (log2 of the points)
#include "../micro/micro.h"

constexpr int CENTRES = 32, D = 8;

// Seven arrays, and three numbers read from memory at every step.
__global__ void forces(float* x, float* y, float* z, float* fx, float* fy, float* fz, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sx = 0.0f, sy = 0.0f, sz = 0.0f;
  for (int j = 0; j < n; j++) {
    float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
    float r = sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    float f = 1.0f / (r * r * r);
    sx += f * dx;
    sy += f * dy;
    sz += f * dz;
  }
  fx[i] = sx;
  fy[i] = sy;
  fz[i] = sz;
}

__global__ void forces_tile(const float4* p, float3* force, int n) {
  __shared__ float4 tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  float4 mine = p[i];
  float3 sum = make_float3(0.0f, 0.0f, 0.0f);
  for (int first = 0; first < n; first += 128) {
    tile[threadIdx.x] = p[first + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 128; j++) {
      float4 other = tile[j];
      float dx = other.x - mine.x, dy = other.y - mine.y, dz = other.z - mine.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float f = other.w * inverse * inverse * inverse;
      sum.x += f * dx;
      sum.y += f * dy;
      sum.z += f * dz;
    }
    __syncthreads();
  }
  force[i] = sum;
}

// A point is three floats after another.
__global__ void distances(float* a, float* b, float* d, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < 3; k++) {
    float v = a[i * 3 + k] - b[j * 3 + k];
    sum += v * v;
  }
  d[i * n + j] = sqrtf(sum);
}

__global__ void nearest_centre(float* points, float* centres, int* nearest, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float least = 1e30f;
  int at = 0;
  for (int c = 0; c < CENTRES; c++) {
    float sum = 0.0f;
    for (int d = 0; d < D; d++) {
      float v = points[i * D + d] - centres[c * D + d];
      sum += v * v;
    }
    if (sum < least) {
      least = sum;
      at = c;
    }
  }
  nearest[i] = at;
}

float* random_floats(int n) {
  std::vector<float> host(n);
  unsigned state = 99;
  for (float& v : host) {
    state = state * 1664525u + 1013904223u;
    v = (state >> 8) / 16777216.0f;
  }
  float* p = memory<float>(n);
  CHECK(cudaMemcpy(p, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  return p;
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 9), few = n / 4, many = n * 64;
  float *p = random_floats(4 * n), *centres = random_floats(CENTRES * D), *points = memory<float>((size_t)many * D);
  float *f = memory<float>(3 * n), *d = memory<float>((size_t)few * few);
  int* nearest = memory<int>(many);
  measure("forces", [&] { forces<<<n / 64, 64>>>(p, p + n, p + 2 * n, f, f + n, f + 2 * n, n); });
  measure("forces, tile", [&] { forces_tile<<<n / 128, 128>>>((float4*)p, (float3*)f, n); });
  measure("distances", [&] { distances<<<dim3(few / 16, few / 16), dim3(16, 16)>>>(p, p, d, few); });
  measure("nearest centre", [&] { nearest_centre<<<many / 256, 256>>>(points, centres, nearest, many); });
}
