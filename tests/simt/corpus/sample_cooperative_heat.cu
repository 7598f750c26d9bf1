// title: Heat equation in one cooperative launch: grid-wide barriers between the steps, a residual with atomics
// features: cooperative_launch, cooperative_groups, atomics
// args: 60 25

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

using namespace cooperative_groups;

#define OK(x)                                                                     \
  if (cudaError_t e = (x); e != cudaSuccess) {                                    \
    fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e));                       \
    return 1;                                                                     \
  }

// Changes are summed as whole numbers of 2^-30, so that the order of the blocks does not matter.
__global__ void heat(float* a, float* b, int n, int steps, unsigned long long* change) {
  grid_group grid = this_grid();
  thread_block_tile<32> warp = tiled_partition<32>(this_thread_block());
  for (int s = 0; s < steps; s++) {
    unsigned long long mine = 0;
    for (unsigned long long i = grid.thread_rank(); i < (unsigned long long)n * n; i += grid.size()) {
      int x = i % n, y = i / n;
      if (x == 0 || y == 0 || x == n - 1 || y == n - 1) continue;
      float v = 0.25f * (a[i - 1] + a[i + 1] + a[i - n] + a[i + n]);
      mine += (unsigned long long)(fabsf(v - a[i]) * 1073741824.0f);
      b[i] = v;
    }
    mine = reduce(warp, mine, plus<unsigned long long>());
    if (warp.thread_rank() == 0 && s == steps - 1) atomicAdd(change, mine);
    grid.sync();
    float* t = a;
    a = b;
    b = t;
  }
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 60, steps = argc > 2 ? atoi(argv[2]) : 25;
  int device = 0, supported = 0;
  OK(cudaGetDevice(&device));
  OK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device));
  if (!supported) {
    puts("This device cannot launch cooperatively.");
    return 1;
  }
  std::vector<float> h(n * n, 0.0f), got(n * n);
  for (int i = 0; i < n; i++) h[i] = 100.0f, h[i * n] = 50.0f;  // two warm edges
  float *a, *b;
  unsigned long long *change, total = 0;
  OK(cudaMalloc(&a, n * n * sizeof(float)));
  OK(cudaMalloc(&b, n * n * sizeof(float)));
  OK(cudaMalloc(&change, sizeof *change));
  OK(cudaMemset(change, 0, sizeof *change));
  OK(cudaMemcpy(a, h.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  OK(cudaMemcpy(b, a, n * n * sizeof(float), cudaMemcpyDeviceToDevice));
  int perMultiprocessor = 0, multiprocessors = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perMultiprocessor, heat, 128, 0));
  OK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  int blocks = perMultiprocessor * multiprocessors;
  if (blocks > 8) blocks = 8;
  void* args[] = {&a, &b, &n, &steps, &change};
  OK(cudaLaunchCooperativeKernel((void*)heat, blocks, 128, args, 0, nullptr));
  OK(cudaMemcpy(got.data(), steps % 2 ? b : a, n * n * sizeof(float), cudaMemcpyDeviceToHost));
  OK(cudaMemcpy(&total, change, sizeof total, cudaMemcpyDeviceToHost));
  OK(cudaFree(a));
  OK(cudaFree(b));
  OK(cudaFree(change));
  std::vector<double> u(h.begin(), h.end()), v(u);
  double last = 0;
  for (int s = 0; s < steps; s++) {
    last = 0;
    for (int y = 1; y < n - 1; y++)
      for (int x = 1; x < n - 1; x++) {
        int i = y * n + x;
        v[i] = (u[i - 1] + u[i + 1] + u[i - n] + u[i + n]) / 4;
        last += fabs(v[i] - u[i]);
      }
    std::swap(u, v);
  }
  double worst = 0;
  for (int i = 0; i < n * n; i++) worst = fmax(worst, fabs(u[i] - got[i]));
  printf("%d steps: temperature at (3, 3) %.3f, last change %.2f\n", steps, got[3 * n + 3], total / 1073741824.0);
  bool ok = worst < 1e-3 && fabs(total / 1073741824.0 - last) < 1e-2 * (1 + last);
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
