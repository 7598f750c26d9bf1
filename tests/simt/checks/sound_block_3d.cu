// check: sound
// near: out_of_bounds
// what: blocks of 4 x 4 x 4 threads with a shared cube and its halo, on a volume that no block size divides

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void laplacian(const float* in, float* out, int n) {
  __shared__ float cube[6][6][6];
  int x0 = blockIdx.x * 4 - 1, y0 = blockIdx.y * 4 - 1, z0 = blockIdx.z * 4 - 1;
  int t = (threadIdx.z * 4 + threadIdx.y) * 4 + threadIdx.x;
  for (int k = t; k < 216; k += 64) {
    int x = x0 + k % 6, y = y0 + k / 6 % 6, z = z0 + k / 36;
    bool inside = min(min(x, y), z) >= 0 && max(max(x, y), z) < n;
    cube[k / 36][k / 6 % 6][k % 6] = inside ? in[(z * n + y) * n + x] : 0.0f;
  }
  __syncthreads();
  int i = threadIdx.x + 1, j = threadIdx.y + 1, k = threadIdx.z + 1, x = x0 + i, y = y0 + j, z = z0 + k;
  if (x >= n || y >= n || z >= n) return;
  float sum = cube[k][j][i - 1] + cube[k][j][i + 1] + cube[k][j - 1][i] + cube[k][j + 1][i] + cube[k - 1][j][i] + cube[k + 1][j][i];
  out[(z * n + y) * n + x] = sum - 6 * cube[k][j][i];
}

int main() {
  const int n = 6;
  std::vector<float> host(n * n * n, 1.0f);
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, host.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_out, host.size() * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  laplacian<<<dim3(2, 2, 2), dim3(4, 4, 4)>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g %g %g\n", host[0], host[1], host[(2 * n + 2) * n + 2]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
