// title: block sizes from the occupancy API, with shared memory that depends on them, and a launcher for any kernel
// features: occupancy_api, function_attributes, launch_bounds, templates, variadic_templates

#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std;

static void require(cudaError_t e, const char *what) {
  if (e != cudaSuccess) throw runtime_error(string(what) + ": " + cudaGetErrorString(e));
}
#define REQUIRE(x) require((x), #x)

__global__ void square(int *array, int arrayCount) {
  int idx = threadIdx.x + blockIdx.x * blockDim.x;
  if (idx < arrayCount) array[idx] *= array[idx];
}

__global__ void __launch_bounds__(256, 2) bounded(int *array, int arrayCount) {
  int idx = threadIdx.x + blockIdx.x * blockDim.x;
  if (idx < arrayCount) array[idx] += 3;
}

// Works for blocks of any size: what a block needs of shared memory depends on it.
__global__ void reverse_in_blocks(int *array, int arrayCount) {
  extern __shared__ int tile[];
  int first = blockIdx.x * blockDim.x, idx = first + threadIdx.x;
  int last = min(first + (int)blockDim.x, arrayCount) - 1;
  if (idx < arrayCount) tile[threadIdx.x] = array[idx];
  __syncthreads();
  if (idx < arrayCount) array[idx] = tile[last - first - threadIdx.x];
}

__global__ void sum_all(const int *array, int arrayCount, unsigned long long *sum) {
  unsigned long long own = 0;
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < arrayCount; i += blockDim.x * gridDim.x) own += array[i];
  atomicAdd(sum, own);
}

// Calls the kernel with as many blocks as are needed for n threads; the API chooses the block's size.
template <typename... Parameters, typename... Arguments>
int launch_for(int n, size_t shared_per_thread, void (*kernel)(Parameters...), Arguments &&...arguments) {
  int minGridSize = 0, blockSize = 0;
  auto bytes = [=](int block) -> size_t { return block * shared_per_thread; };
  REQUIRE(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&minGridSize, &blockSize, kernel, bytes, n));
  int gridSize = (n + blockSize - 1) / blockSize;
  kernel<<<gridSize, blockSize, bytes(blockSize)>>>(forward<Arguments>(arguments)...);
  REQUIRE(cudaGetLastError());
  return blockSize;
}

static bool plausible(int blockSize) { return blockSize >= 32 && blockSize <= 1024 && blockSize % 32 == 0; }

int run() {
  const int n = 3000;
  int device = 0, failures = 0;
  cudaDeviceProp prop;
  REQUIRE(cudaGetDevice(&device));
  REQUIRE(cudaGetDeviceProperties(&prop, device));
  vector<int> host(n), got(n);
  for (int i = 0; i < n; ++i) host[i] = i % 100 - 30;
  int *array;
  unsigned long long *sum, total = 0;
  REQUIRE(cudaMalloc(&array, n * sizeof(int)));
  REQUIRE(cudaMalloc(&sum, sizeof(*sum)));
  REQUIRE(cudaMemset(sum, 0, sizeof(*sum)));
  REQUIRE(cudaMemcpy(array, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));

  int minGridSize, blockSize, numBlocks;
  REQUIRE(cudaOccupancyMaxPotentialBlockSize(&minGridSize, &blockSize, square, 0, n));
  square<<<(n + blockSize - 1) / blockSize, blockSize>>>(array, n);
  REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&numBlocks, square, blockSize, 0));
  int warps = numBlocks * blockSize / prop.warpSize, most = prop.maxThreadsPerMultiProcessor / prop.warpSize;
  cerr << "Potential occupancy: " << 100.0 * warps / most << "%\n";
  failures += !plausible(blockSize) || minGridSize < prop.multiProcessorCount || warps < 1 || warps > most;

  // More shared memory: no more blocks on a multiprocessor
  int previous = numBlocks;
  for (size_t bytes = 8192; bytes <= 40960; bytes += 8192) {
    REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&numBlocks, reverse_in_blocks, 128, bytes));
    if (bytes > 8192 && numBlocks > previous) failures++;
    if (numBlocks < 1) failures++;
    previous = numBlocks;
  }

  cudaFuncAttributes attributes;
  REQUIRE(cudaFuncGetAttributes(&attributes, bounded));
  failures += attributes.maxThreadsPerBlock < 256 || attributes.sharedSizeBytes != 0;
  bounded<<<(n + 255) / 256, 256>>>(array, n);
  REQUIRE(cudaGetLastError());

  int chosen = launch_for(n, sizeof(int), reverse_in_blocks, array, n);
  failures += !plausible(chosen);
  failures += !plausible(launch_for(n, 0, sum_all, (const int *)array, n, sum));

  REQUIRE(cudaMemcpy(got.data(), array, n * sizeof(int), cudaMemcpyDeviceToHost));
  REQUIRE(cudaMemcpy(&total, sum, sizeof(total), cudaMemcpyDeviceToHost));
  REQUIRE(cudaFree(array));
  REQUIRE(cudaFree(sum));
  long long expected_total = 0;
  int wrong = 0;
  for (int first = 0; first < n; first += chosen)
    for (int i = first; i < min(first + chosen, n); i++) {
      int from = host[min(first + chosen, n) - 1 - (i - first)];
      wrong += got[i] != from * from + 3;
      expected_total += from * from + 3;
    }
  cout << "sum " << total << ", " << wrong << " wrong, " << failures << " failures\n";
  return wrong + failures + ((long long)total != expected_total);
}

int main() {
  int status = 1;
  try {
    status = run();
  } catch (const exception &e) {
    cerr << e.what() << '\n';
  }
  cout << (status ? "FAILED" : "PASSED") << endl;
  return status ? 1 : 0;
}
