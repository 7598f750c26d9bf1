// One head of attention: scores, scores of what came before, weighted values, and all of it with a thread a query.
// sizes: 128 4096 (positions)
#include "../micro/micro.h"

constexpr int D = 64;

__global__ void scores(float* q, float* k, float* s, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n) return;
  float sum = 0.0f;
  for (int d = 0; d < D; d++) sum += q[i * D + d] * k[j * D + d];
  s[i * n + j] = sum / sqrtf(D);
}

// Both tiles lie in shared memory, all of their depth.
__global__ void causal_scores_tile(float* q, float* k, float* s, int n) {
  __shared__ float a[16][D + 1], b[16][D + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int i = blockIdx.y * 16 + ty, j = blockIdx.x * 16 + tx;
  if (blockIdx.x > blockIdx.y) {
    s[i * n + j] = -INFINITY;
    return;
  }
  for (int d = tx; d < D; d += 16) {
    a[ty][d] = q[i * D + d];
    b[ty][d] = k[(blockIdx.x * 16 + ty) * D + d];
  }
  __syncthreads();
  float sum = 0.0f;
  for (int d = 0; d < D; d++) sum += a[ty][d] * b[tx][d];
  s[i * n + j] = j <= i ? sum * 0.125f : -INFINITY;
}

__global__ void weighted_values(float* p, float* v, float* out, int n) {
  int d = threadIdx.x;
  int i = blockIdx.x * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  for (int j = 0; j < n; j++) sum += p[i * n + j] * v[j * D + d];
  out[i * D + d] = sum;
}

// A thread goes through all keys and keeps the largest score, the sum and the weighted values as it goes.
__global__ void query_a_thread(const float* q, const float* k, const float* v, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float mine[D], sums[D], most = -INFINITY, total = 0.0f;
  for (int d = 0; d < D; d++) {
    mine[d] = q[i * D + d];
    sums[d] = 0.0f;
  }
  for (int j = 0; j < n; j++) {
    float score = 0.0f;
    for (int d = 0; d < D; d++) score += mine[d] * k[j * D + d];
    score *= 0.125f;
    float larger = fmaxf(most, score);
    float before = expf(most - larger), weight = expf(score - larger);
    total = total * before + weight;
    for (int d = 0; d < D; d++) sums[d] = sums[d] * before + weight * v[j * D + d];
    most = larger;
  }
  for (int d = 0; d < D; d++) out[i * D + d] = sums[d] / total;
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 128);
  float *q = memory<float>(n * D), *k = memory<float>(n * D), *v = memory<float>(n * D), *out = memory<float>(n * D);
  float *s = memory<float>((size_t)n * n), *p = memory<float>((size_t)n * n);
  const dim3 by_16(n / 16, n / 16), sixteen(16, 16);
  measure("scores", [&] { scores<<<by_16, sixteen>>>(q, k, s, n); });
  measure("causal scores, tile", [&] { causal_scores_tile<<<by_16, sixteen>>>(q, k, s, n); });
  measure("weighted values", [&] { weighted_values<<<n / 4, dim3(D, 4)>>>(p, v, out, n); });
  measure("a query a thread", [&] { query_a_thread<<<n / 32, 32>>>(q, k, v, out, n); });
}
