// title: Gram-Schmidt: QR decomposition with three kernels a column
// features: cub, double_precision, dynamic_grids
// args: 50 40

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cub/block/block_reduce.cuh>

#define TRY(x)                                                           \
  if (auto e = (x); e != cudaSuccess) {                                  \
    printf("%s: %s\n", #x, cudaGetErrorString(e));                       \
    exit(1);                                                             \
  }

constexpr int kThreads = 64;
using Reduce = cub::BlockReduce<double, kThreads>;

__global__ void norm(int ni, int nj, int k, const double* a, double* r) {
  __shared__ Reduce::TempStorage temp;
  double sum = 0;
  for (int i = threadIdx.x; i < ni; i += kThreads) sum += a[i * nj + k] * a[i * nj + k];
  sum = Reduce(temp).Sum(sum);
  if (threadIdx.x == 0) r[k * nj + k] = sqrt(sum);
}

__global__ void scale(int ni, int nj, int k, const double* a, const double* r, double* q) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ni) q[i * nj + k] = a[i * nj + k] / r[k * nj + k];
}

// a block a later column
__global__ void project(int ni, int nj, int k, double* a, double* r, const double* q) {
  __shared__ Reduce::TempStorage temp;
  __shared__ double dot;
  const int j = k + 1 + blockIdx.x;
  double sum = 0;
  for (int i = threadIdx.x; i < ni; i += kThreads) sum += q[i * nj + k] * a[i * nj + j];
  sum = Reduce(temp).Sum(sum);
  if (threadIdx.x == 0) dot = r[k * nj + j] = sum;
  __syncthreads();
  for (int i = threadIdx.x; i < ni; i += kThreads) a[i * nj + j] -= q[i * nj + k] * dot;
}

int main(int argc, char** argv) {
  const int ni = argc > 1 ? atoi(argv[1]) : 50, nj = argc > 2 ? atoi(argv[2]) : 40;
  std::vector<double> a(ni * nj), q(ni * nj), r(nj * nj);
  for (int i = 0; i < ni; i++)
    for (int j = 0; j < nj; j++) a[i * nj + j] = ((i * j) % ni) / (double)ni * 10 + (i == j ? 12 : 0.1);
  double *da, *dq, *dr;
  TRY(cudaMalloc(&da, a.size() * sizeof(double)));
  TRY(cudaMalloc(&dq, q.size() * sizeof(double)));
  TRY(cudaMalloc(&dr, r.size() * sizeof(double)));
  TRY(cudaMemcpy(da, a.data(), a.size() * sizeof(double), cudaMemcpyHostToDevice));
  TRY(cudaMemset(dr, 0, r.size() * sizeof(double)));
  for (int k = 0; k < nj; k++) {
    norm<<<1, kThreads>>>(ni, nj, k, da, dr);
    scale<<<(ni + 31) / 32, 32>>>(ni, nj, k, da, dr, dq);
    if (k + 1 < nj) project<<<nj - k - 1, kThreads>>>(ni, nj, k, da, dr, dq);
    TRY(cudaGetLastError());
  }
  TRY(cudaMemcpy(q.data(), dq, q.size() * sizeof(double), cudaMemcpyDeviceToHost));
  TRY(cudaMemcpy(r.data(), dr, r.size() * sizeof(double), cudaMemcpyDeviceToHost));
  TRY(cudaFree(da));
  TRY(cudaFree(dq));
  TRY(cudaFree(dr));
  double away = 0, skew = 0;
  for (int i = 0; i < ni; i++)
    for (int j = 0; j < nj; j++) {
      double sum = 0;
      for (int k = 0; k <= j; k++) sum += q[i * nj + k] * r[k * nj + j];
      away = fmax(away, fabs(sum - a[i * nj + j]));
    }
  for (int j = 0; j < nj; j++)
    for (int k = 0; k <= j; k++) {
      double sum = 0;
      for (int i = 0; i < ni; i++) sum += q[i * nj + j] * q[i * nj + k];
      skew = fmax(skew, fabs(sum - (j == k)));
    }
  printf("R[0][0] = %.4f, R[1][1] = %.4f\n", r[0], r[nj + 1]);
  bool ok = away < 1e-10 && skew < 1e-8;
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
