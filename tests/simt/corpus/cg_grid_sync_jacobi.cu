// title: Jacobi iterations in one cooperative launch, with a barrier of the whole grid after each sweep
// features: cooperative_groups, grid_sync, cooperative_launch, occupancy_api, double_precision

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

using namespace cooperative_groups;
namespace cg = cooperative_groups;

constexpr int N_ROWS = 96;
constexpr int THREADS = 64;

#define checkCudaErrors(val)                                                                          \
  do {                                                                                                \
    cudaError_t result = (val);                                                                       \
    if (result) {                                                                                     \
      std::cerr << "CUDA error at " << __FILE__ << ":" << __LINE__ << " code=" << result << " \"" << #val << "\"\n"; \
      std::exit(EXIT_FAILURE);                                                                        \
    }                                                                                                 \
  } while (0)

// Solves A x = b for a diagonally dominant A. The sum of the changes decides when to stop.
__global__ void JacobiMethod(const float *A, const double *b, double *x, double *x_new, double *change, int *sweeps,
                             double tolerance, int max_sweeps) {
  cg::grid_group grid = cg::this_grid();
  cg::thread_block cta = cg::this_thread_block();
  cg::thread_block_tile<32> tile32 = cg::tiled_partition<32>(cta);
  const int warps = grid.size() / 32;
  int done = 0;

  while (done < max_sweeps) {
    double mine = 0.0;
    for (int row = grid.thread_rank() / 32; row < N_ROWS; row += warps) {
      double partial = 0.0;
      for (int col = tile32.thread_rank(); col < N_ROWS; col += 32)
        if (col != row) partial += A[row * N_ROWS + col] * x[col];
      double sum = cg::reduce(tile32, partial, cg::plus<double>());
      if (tile32.thread_rank() == 0) {
        x_new[row] = (b[row] - sum) / A[row * N_ROWS + row];
        mine += fabs(x_new[row] - x[row]);
      }
    }
    if (tile32.thread_rank() == 0) atomicAdd(&change[done % 3], mine);
    if (grid.thread_rank() == 0) change[(done + 1) % 3] = 0.0;
    grid.sync();
    double total = *(volatile double *)&change[done % 3];
    double *t = x;
    x = x_new;
    x_new = t;
    done++;
    if (total < tolerance) break;
  }
  if (grid.thread_rank() == 0) *sweeps = done;
}

int main(int argc, char **argv) {
  int device = 0;
  cudaDeviceProp prop;
  checkCudaErrors(cudaSetDevice(device));
  checkCudaErrors(cudaGetDeviceProperties(&prop, device));
  if (!prop.cooperativeLaunch) {
    std::cerr << "Selected device does not support cooperative launches" << std::endl;
    return EXIT_FAILURE;
  }
  int perMultiprocessor = 0;
  checkCudaErrors(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perMultiprocessor, JacobiMethod, THREADS, 0));
  int blocks = std::min(8, perMultiprocessor * prop.multiProcessorCount);

  std::vector<float> A(N_ROWS * N_ROWS);
  std::vector<double> b(N_ROWS, 0.0), solution(N_ROWS), x(N_ROWS);
  for (int i = 0; i < N_ROWS; i++) {
    solution[i] = 1.0 + i % 5;
    for (int j = 0; j < N_ROWS; j++) A[i * N_ROWS + j] = i == j ? 120.0f : 1.0f / (1 + (i + 2 * j) % 8);
  }
  for (int i = 0; i < N_ROWS; i++)
    for (int j = 0; j < N_ROWS; j++) b[i] += static_cast<double>(A[i * N_ROWS + j]) * solution[j];

  float *d_A;
  double *d_b, *d_x, *d_x_new, *d_change;
  int *d_sweeps, sweeps = 0;
  checkCudaErrors(cudaMalloc(&d_A, A.size() * sizeof(float)));
  checkCudaErrors(cudaMalloc(&d_b, N_ROWS * sizeof(double)));
  checkCudaErrors(cudaMalloc(&d_x, N_ROWS * sizeof(double)));
  checkCudaErrors(cudaMalloc(&d_x_new, N_ROWS * sizeof(double)));
  checkCudaErrors(cudaMalloc(&d_change, 3 * sizeof(double)));
  checkCudaErrors(cudaMalloc(&d_sweeps, sizeof(int)));
  checkCudaErrors(cudaMemcpy(d_A, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice));
  checkCudaErrors(cudaMemcpy(d_b, b.data(), N_ROWS * sizeof(double), cudaMemcpyHostToDevice));
  checkCudaErrors(cudaMemset(d_x, 0, N_ROWS * sizeof(double)));
  checkCudaErrors(cudaMemset(d_x_new, 0, N_ROWS * sizeof(double)));
  checkCudaErrors(cudaMemset(d_change, 0, 3 * sizeof(double)));

  double tolerance = 1e-9;
  int max_sweeps = 100;
  void *args[] = {(void *)&d_A,        (void *)&d_b,      (void *)&d_x,      (void *)&d_x_new,
                  (void *)&d_change,   (void *)&d_sweeps, (void *)&tolerance, (void *)&max_sweeps};
  checkCudaErrors(cudaLaunchCooperativeKernel((void *)JacobiMethod, dim3(blocks), dim3(THREADS), args, 0, NULL));
  checkCudaErrors(cudaDeviceSynchronize());
  checkCudaErrors(cudaMemcpy(&sweeps, d_sweeps, sizeof(int), cudaMemcpyDeviceToHost));
  checkCudaErrors(cudaMemcpy(x.data(), sweeps % 2 ? d_x_new : d_x, N_ROWS * sizeof(double), cudaMemcpyDeviceToHost));

  // The same number of sweeps on the CPU
  std::vector<double> y(N_ROWS, 0.0), next(N_ROWS);
  int cpu_sweeps = 0;
  for (double change = 1; change >= tolerance && cpu_sweeps < max_sweeps; cpu_sweeps++) {
    change = 0;
    for (int i = 0; i < N_ROWS; i++) {
      double rest = b[i];
      for (int j = 0; j < N_ROWS; j++) rest -= i == j ? 0.0 : A[i * N_ROWS + j] * y[j];
      next[i] = rest / A[i * N_ROWS + i];
      change += std::fabs(next[i] - y[i]);
    }
    y.swap(next);
  }
  double error = 0, difference = 0;
  for (int i = 0; i < N_ROWS; i++) {
    error = std::fmax(error, std::fabs(x[i] - solution[i]));
    difference = std::fmax(difference, std::fabs(x[i] - y[i]));
  }
  bool ok = error < 1e-8 && difference < 1e-8 && std::abs(sweeps - cpu_sweeps) <= 1 && sweeps < max_sweeps;
  std::cout << "converged: " << (sweeps < max_sweeps ? "yes" : "no") << ", x[0] = " << std::round(x[0] * 1e6) / 1e6
            << ", x[" << N_ROWS - 1 << "] = " << std::round(x[N_ROWS - 1] * 1e6) / 1e6 << '\n';

  for (void *p : {(void *)d_A, (void *)d_b, (void *)d_x, (void *)d_x_new, (void *)d_change, (void *)d_sweeps})
    checkCudaErrors(cudaFree(p));
  std::cout << (ok ? "PASSED" : "FAILED") << std::endl;
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
