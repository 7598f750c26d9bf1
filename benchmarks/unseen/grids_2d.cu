// Steps over a plane of cells and filters of an image: life, heat, nine neighbours, blurs, edges.
// sizes: 64 4096 (the side)
#include "../micro/micro.h"

// The plane has no border: what leaves on one side comes in on the other.
__global__ void life(unsigned char* in, unsigned char* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int alive = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      if (dx != 0 || dy != 0) alive += in[(y + dy + n) % n * n + (x + dx + n) % n] & 1;
  out[y * n + x] = alive == 3 || (alive == 2 && (in[y * n + x] & 1));
}

__global__ void heat(float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && x < n - 1 && y > 0 && y < n - 1) {
    float centre = in[y * n + x];
    out[y * n + x] = centre + 0.1f * (in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] +
                                      in[(y + 1) * n + x] - 4.0f * centre);
  }
}

// A tile with its border in shared memory; threads at the tile's edge read the border.
__global__ void nine_points(float* in, float* out, int n) {
  __shared__ float tile[18][18];
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  int left = max(x - 1, 0), right = min(x + 1, n - 1), up = max(y - 1, 0), down = min(y + 1, n - 1);
  tile[ty][tx] = in[y * n + x];
  if (tx == 1) tile[ty][0] = in[y * n + left];
  if (tx == 16) tile[ty][17] = in[y * n + right];
  if (ty == 1) tile[0][tx] = in[up * n + x];
  if (ty == 16) tile[17][tx] = in[down * n + x];
  if (tx == 1 && ty == 1) tile[0][0] = in[up * n + left];
  if (tx == 16 && ty == 1) tile[0][17] = in[up * n + right];
  if (tx == 1 && ty == 16) tile[17][0] = in[down * n + left];
  if (tx == 16 && ty == 16) tile[17][17] = in[down * n + right];
  __syncthreads();
  float sum = 0.0f;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) sum += tile[ty + dy][tx + dx];
  out[y * n + x] = sum / 9.0f;
}

__global__ void box_blur(float* in, float* out, int n, int radius) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float sum = 0.0f;
  int count = 0;
  for (int j = y - radius; j <= y + radius; j++) {
    for (int i = x - radius; i <= x + radius; i++) {
      if (i >= 0 && i < n && j >= 0 && j < n) {
        sum += in[j * n + i];
        count++;
      }
    }
  }
  out[y * n + x] = sum / count;
}

__global__ void bilateral(float* in, float* out, int n, float sigma_space, float sigma_value) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float centre = in[y * n + x], sum = 0.0f, total = 0.0f;
  for (int dy = -2; dy <= 2; dy++) {
    for (int dx = -2; dx <= 2; dx++) {
      float v = in[min(max(y + dy, 0), n - 1) * n + min(max(x + dx, 0), n - 1)];
      float weight = expf(-(dx * dx + dy * dy) / (2.0f * sigma_space * sigma_space) -
                          (v - centre) * (v - centre) / (2.0f * sigma_value * sigma_value));
      sum += weight * v;
      total += weight;
    }
  }
  out[y * n + x] = sum / total;
}

// A thread a row: neighbouring threads read n floats apart.
__global__ void edges_by_rows(float* in, float* out, int n) {
  int y = blockIdx.x * blockDim.x + threadIdx.x + 1;
  if (y >= n - 1) return;
  for (int x = 1; x < n - 1; x++) {
    float* up = in + (y - 1) * n + x;
    float* here = in + y * n + x;
    float* down = in + (y + 1) * n + x;
    float across = up[1] - up[-1] + 2.0f * (here[1] - here[-1]) + down[1] - down[-1];
    float along = down[-1] - up[-1] + 2.0f * (down[0] - up[0]) + down[1] - up[1];
    out[y * n + x] = sqrtf(across * across + along * along);
  }
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 64);
  float *in = memory<float>((size_t)n * n), *out = memory<float>((size_t)n * n);
  const dim3 sixteen(16, 16), wide(32, 4), by_16(n / 16, n / 16), by_wide(n / 32, n / 4);
  measure("life", [&] { life<<<by_16, sixteen>>>((unsigned char*)in, (unsigned char*)out, n); });
  measure("heat", [&] { heat<<<by_wide, wide>>>(in, out, n); });
  measure("nine points, tile", [&] { nine_points<<<by_16, sixteen>>>(in, out, n); });
  measure("box blur", [&] { box_blur<<<by_16, sixteen>>>(in, out, n, 3); });
  measure("bilateral", [&] { bilateral<<<by_wide, wide>>>(in, out, n, 1.5f, 0.2f); });
  measure("edges, a thread a row", [&] { edges_by_rows<<<n / 64, 64>>>(in, out, n); });
}
