// check: sound
// near: leak
// what: the main thread launches while another thread allocates, copies and frees again and again

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void step(double* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 0.5 * x[i] + 1;
}

std::atomic<bool> done{false};

void stage() {
  std::vector<double> host(256, 4.0);
  do {
    double* buffer;
    CHECK(cudaMalloc(&buffer, 256 * sizeof(double)));
    CHECK(cudaMemcpy(buffer, host.data(), 256 * sizeof(double), cudaMemcpyHostToDevice));
    step<<<2, 128>>>(buffer, 256);
    CHECK(cudaMemcpy(host.data(), buffer, 256 * sizeof(double), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(buffer));
  } while (!done);
}

int main() {
  const int n = 1000;
  double *x, host[n] = {};
  CHECK(cudaMalloc(&x, sizeof host));
  CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
  std::thread other(stage);
  for (int pass = 0; pass < 20; pass++) step<<<8, 128>>>(x, n);
  CHECK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
  done = true;
  other.join();
  printf("%f\n", host[n - 1]);
  CHECK(cudaFree(x));
}
