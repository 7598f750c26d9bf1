// title: Conjugate gradients in one cooperative launch, on a tridiagonal matrix in CSR form
// features: cooperative_launch, cooperative_groups, managed_memory, warp_shuffles, double_precision
// args: 512

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

#define CHECK(c)                                                                \
  do {                                                                          \
    cudaError_t e = (c);                                                        \
    if (e != cudaSuccess) {                                                     \
      fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(e));             \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

struct System {
  int n, nnz, *rows, *cols;
  double *vals, *x, *r, *p, *ap, *dots;  // dots: two places, used in turns
};

__device__ void spmv(const System& s, const double* in, double* out, const cg::grid_group& grid) {
  for (int i = grid.thread_rank(); i < s.n; i += grid.size()) {
    double sum = 0;
    for (int k = s.rows[i]; k < s.rows[i + 1]; k++) sum += s.vals[k] * in[s.cols[k]];
    out[i] = sum;
  }
}

// Adds x . y to *result, which must be 0 before. All threads of a block take part.
__device__ void dot(const double* x, const double* y, int n, double* result, double* scratch, const cg::grid_group& grid,
                    const cg::thread_block& block) {
  double sum = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i] * y[i];
  auto tile = cg::tiled_partition<32>(block);
  for (int d = tile.size() / 2; d > 0; d /= 2) sum += tile.shfl_down(sum, d);
  if (tile.thread_rank() == 0) scratch[threadIdx.x / 32] = sum;
  block.sync();
  if (block.thread_rank() == 0) {
    for (int w = 1; w < (int)block.size() / 32; w++) sum += scratch[w];
    result[blockIdx.x] = sum;
  }
  grid.sync();
}

__device__ double total(const double* partial) {
  double sum = 0;
  for (int b = 0; b < (int)gridDim.x; b++) sum += partial[b];
  return sum;
}

__global__ void conjugateGradient(System s, double tolerance, int limit, int* iterations, double* residual) {
  __shared__ double scratch[32];
  cg::thread_block block = cg::this_thread_block();
  cg::grid_group grid = cg::this_grid();
  double* rr = s.dots;
  double* pap = s.dots + gridDim.x;
  for (int i = grid.thread_rank(); i < s.n; i += grid.size()) s.p[i] = s.r[i];  // x = 0, so r = b
  dot(s.r, s.r, s.n, rr, scratch, grid, block);
  double r1 = total(rr);
  int k = 0;
  while (r1 > tolerance * tolerance && k < limit) {
    spmv(s, s.p, s.ap, grid);
    grid.sync();
    dot(s.p, s.ap, s.n, pap, scratch, grid, block);
    double alpha = r1 / total(pap);
    for (int i = grid.thread_rank(); i < s.n; i += grid.size()) {
      s.x[i] += alpha * s.p[i];
      s.r[i] -= alpha * s.ap[i];
    }
    grid.sync();
    dot(s.r, s.r, s.n, rr, scratch, grid, block);
    double r0 = r1;
    r1 = total(rr);
    for (int i = grid.thread_rank(); i < s.n; i += grid.size()) s.p[i] = s.r[i] + (r1 / r0) * s.p[i];
    grid.sync();
    k++;
  }
  if (grid.thread_rank() == 0) {
    *iterations = k;
    *residual = sqrt(r1);
  }
}

int main(int argc, char** argv) {
  System s = {};
  s.n = argc > 1 ? atoi(argv[1]) : 512;
  int supported = 0, sms = 0, perSm = 0;
  CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
  if (!supported) {
    puts("no cooperative launches here");
    return 2;
  }
  const int threads = 128;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, conjugateGradient, threads, 0));
  const int blocks = sms * perSm < 4 ? sms * perSm : 4;
  CHECK(cudaMallocManaged(&s.rows, (s.n + 1) * sizeof(int)));
  CHECK(cudaMallocManaged(&s.cols, 3 * s.n * sizeof(int)));
  CHECK(cudaMallocManaged(&s.vals, 3 * s.n * sizeof(double)));
  double** vectors[] = {&s.x, &s.r, &s.p, &s.ap};
  for (double** v : vectors) CHECK(cudaMallocManaged(v, s.n * sizeof(double)));
  CHECK(cudaMallocManaged(&s.dots, 2 * blocks * sizeof(double)));
  double* residual;
  int* iterations;
  CHECK(cudaMallocManaged(&residual, sizeof(double)));
  CHECK(cudaMallocManaged(&iterations, sizeof(int)));
  for (int i = 0; i < s.n; i++) {
    s.rows[i] = s.nnz;
    for (int j = i - 1; j <= i + 1; j++)
      if (j >= 0 && j < s.n) {
        s.cols[s.nnz] = j;
        s.vals[s.nnz++] = i == j ? 4.0 + i % 3 : -1.0;
      }
    s.x[i] = 0;
    s.r[i] = 1 + i % 5;
  }
  s.rows[s.n] = s.nnz;
  double tolerance = 1e-9;
  int limit = 200;
  void* args[] = {&s, &tolerance, &limit, &iterations, &residual};
  CHECK(cudaLaunchCooperativeKernel((void*)conjugateGradient, dim3(blocks), dim3(threads), args, 0, NULL));
  CHECK(cudaDeviceSynchronize());

  double worst = 0;
  for (int i = 0; i < s.n; i++) {
    double ax = (4.0 + i % 3) * s.x[i] - (i ? s.x[i - 1] : 0) - (i + 1 < s.n ? s.x[i + 1] : 0);
    worst = fmax(worst, fabs(ax - (1 + i % 5)));
  }
  printf("n = %d, converged: %s, x[0] = %.4f, x[n/2] = %.4f\n", s.n, *iterations < limit ? "yes" : "no", s.x[0], s.x[s.n / 2]);
  bool ok = worst < 1e-8 && *residual <= tolerance;
  for (double** v : vectors) CHECK(cudaFree(*v));
  CHECK(cudaFree(s.rows));
  CHECK(cudaFree(s.cols));
  CHECK(cudaFree(s.vals));
  CHECK(cudaFree(s.dots));
  CHECK(cudaFree(residual));
  CHECK(cudaFree(iterations));
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
