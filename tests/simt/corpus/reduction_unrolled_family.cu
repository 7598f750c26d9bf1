// title: sums of integers: neighboured, interleaved, unrolled, completely unrolled by template, with shuffles
// features: reduction, templates, warp_shuffles, shared_memory

#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#define CHECK(call)                                                                                          \
  {                                                                                                          \
    const cudaError_t error = call;                                                                          \
    if (error != cudaSuccess) {                                                                              \
      printf("Error: %s:%d, code: %d, reason: %s\n", __FILE__, __LINE__, error, cudaGetErrorString(error)); \
      exit(-10 * error);                                                                                     \
    }                                                                                                        \
  }

__global__ void reduceNeighbored(int *g_idata, int *g_odata, unsigned int n) {
  unsigned int tid = threadIdx.x;
  unsigned int idx = blockIdx.x * blockDim.x + threadIdx.x;
  int *idata = g_idata + blockIdx.x * blockDim.x;
  if (idx >= n) return;
  for (int stride = 1; stride < blockDim.x; stride *= 2) {
    if ((tid % (2 * stride)) == 0) idata[tid] += idata[tid + stride];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = idata[0];
}

__global__ void reduceNeighboredLess(int *g_idata, int *g_odata, unsigned int n) {
  unsigned int tid = threadIdx.x;
  int *idata = g_idata + blockIdx.x * blockDim.x;
  for (int stride = 1; stride < blockDim.x; stride *= 2) {
    int index = 2 * stride * tid;
    if (index < blockDim.x) idata[index] += idata[index + stride];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = idata[0];
}

__global__ void reduceInterleaved(int *g_idata, int *g_odata, unsigned int n) {
  unsigned int tid = threadIdx.x;
  int *idata = g_idata + blockIdx.x * blockDim.x;
  for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
    if (tid < stride) idata[tid] += idata[tid + stride];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = idata[0];
}

__global__ void reduceUnrolling4(int *g_idata, int *g_odata, unsigned int n) {
  unsigned int tid = threadIdx.x;
  unsigned int idx = blockIdx.x * blockDim.x * 4 + threadIdx.x;
  int *idata = g_idata + blockIdx.x * blockDim.x * 4;
  if (idx + 3 * blockDim.x < n) {
    int a1 = g_idata[idx], a2 = g_idata[idx + blockDim.x];
    int a3 = g_idata[idx + 2 * blockDim.x], a4 = g_idata[idx + 3 * blockDim.x];
    g_idata[idx] = a1 + a2 + a3 + a4;
  }
  __syncthreads();
  for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
    if (tid < stride) idata[tid] += idata[tid + stride];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = idata[0];
}

template <unsigned int iBlockSize>
__global__ void reduceCompleteUnroll(int *g_idata, int *g_odata, unsigned int n) {
  __shared__ int smem[iBlockSize];
  unsigned int tid = threadIdx.x;
  unsigned int idx = blockIdx.x * blockDim.x * 4 + threadIdx.x;
  int sum = 0;
  for (int part = 0; part < 4; part++)
    if (idx + part * iBlockSize < n) sum += g_idata[idx + part * iBlockSize];
  smem[tid] = sum;
  __syncthreads();
  if (iBlockSize >= 1024 && tid < 512) smem[tid] += smem[tid + 512];
  __syncthreads();
  if (iBlockSize >= 512 && tid < 256) smem[tid] += smem[tid + 256];
  __syncthreads();
  if (iBlockSize >= 256 && tid < 128) smem[tid] += smem[tid + 128];
  __syncthreads();
  if (iBlockSize >= 128 && tid < 64) smem[tid] += smem[tid + 64];
  __syncthreads();
  if (tid < 32) {
    volatile int *vsmem = smem;
    int value = vsmem[tid] + vsmem[tid + 32];
    __syncwarp();
    vsmem[tid] = value;
    __syncwarp();
    for (int s = 16; s > 0; s >>= 1) {
      if (tid < s) value = vsmem[tid] + vsmem[tid + s];
      __syncwarp();
      vsmem[tid] = value;
      __syncwarp();
    }
    if (tid == 0) g_odata[blockIdx.x] = value;
  }
}

__inline__ __device__ int warpReduce(int localSum) {
  localSum += __shfl_xor_sync(0xffffffff, localSum, 16);
  localSum += __shfl_xor_sync(0xffffffff, localSum, 8);
  localSum += __shfl_xor_sync(0xffffffff, localSum, 4);
  localSum += __shfl_xor_sync(0xffffffff, localSum, 2);
  localSum += __shfl_xor_sync(0xffffffff, localSum, 1);
  return localSum;
}

__global__ void reduceShfl(int *g_idata, int *g_odata, unsigned int n) {
  __shared__ int smem[32];
  unsigned int idx = blockIdx.x * blockDim.x + threadIdx.x;
  int mySum = idx < n ? g_idata[idx] : 0;
  int laneIdx = threadIdx.x % warpSize, warpIdx = threadIdx.x / warpSize;
  mySum = warpReduce(mySum);
  if (laneIdx == 0) smem[warpIdx] = mySum;
  __syncthreads();
  mySum = (threadIdx.x < blockDim.x / warpSize) ? smem[laneIdx] : 0;
  if (warpIdx == 0) mySum = warpReduce(mySum);
  if (threadIdx.x == 0) g_odata[blockIdx.x] = mySum;
}

int main(int argc, char **argv) {
  const int blocksize = 128, size = 1 << 13, blocks = size / blocksize;
  std::vector<int> h_idata(size), h_odata(blocks);
  for (int i = 0; i < size; i++) h_idata[i] = (i * 1103515245u + 12345u) >> 20 & 0xFF;
  long long expected = 0;
  for (int v : h_idata) expected += v;

  int *d_idata = NULL, *d_odata = NULL;
  CHECK(cudaMalloc((void **)&d_idata, size * sizeof(int)));
  CHECK(cudaMalloc((void **)&d_odata, blocks * sizeof(int)));

  bool ok = true;
  auto test = [&](const char *name, int grid, std::function<void(int)> launch) {
    CHECK(cudaMemcpy(d_idata, h_idata.data(), size * sizeof(int), cudaMemcpyHostToDevice));
    launch(grid);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_odata.data(), d_odata, grid * sizeof(int), cudaMemcpyDeviceToHost));
    long long sum = std::accumulate(h_odata.begin(), h_odata.begin() + grid, 0LL);
    printf("%-22s gpu_sum: %lld <<<grid %d block %d>>>\n", name, sum, grid, blocksize);
    ok = ok && sum == expected;
  };
  printf("cpu reduce             cpu_sum: %lld\n", expected);
  test("reduceNeighbored", blocks, [&](int g) { reduceNeighbored<<<g, blocksize>>>(d_idata, d_odata, size); });
  test("reduceNeighboredLess", blocks, [&](int g) { reduceNeighboredLess<<<g, blocksize>>>(d_idata, d_odata, size); });
  test("reduceInterleaved", blocks, [&](int g) { reduceInterleaved<<<g, blocksize>>>(d_idata, d_odata, size); });
  test("reduceUnrolling4", blocks / 4, [&](int g) { reduceUnrolling4<<<g, blocksize>>>(d_idata, d_odata, size); });
  test("reduceCompleteUnroll", blocks / 4, [&](int g) {
    switch (blocksize) {
      case 1024: reduceCompleteUnroll<1024><<<g, blocksize>>>(d_idata, d_odata, size); break;
      case 512: reduceCompleteUnroll<512><<<g, blocksize>>>(d_idata, d_odata, size); break;
      case 256: reduceCompleteUnroll<256><<<g, blocksize>>>(d_idata, d_odata, size); break;
      case 128: reduceCompleteUnroll<128><<<g, blocksize>>>(d_idata, d_odata, size); break;
      case 64: reduceCompleteUnroll<64><<<g, blocksize>>>(d_idata, d_odata, size); break;
    }
  });
  test("reduceShfl", blocks, [&](int g) { reduceShfl<<<g, blocksize>>>(d_idata, d_odata, size); });

  CHECK(cudaFree(d_idata));
  CHECK(cudaFree(d_odata));
  CHECK(cudaDeviceReset());
  if (!ok) printf("Test failed!\n");
  puts(ok ? "PASSED" : "FAILED");
  return !ok;
}
