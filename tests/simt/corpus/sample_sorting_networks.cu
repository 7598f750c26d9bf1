// title: Sorting networks: bitonic and odd-even merge sort of key-value pairs in shared and global memory
// features: shared_memory, templates, macros
// args: 2048

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

typedef unsigned int uint;
#define SHARED_SIZE 256U

#define checkCudaErrors(call)                                               \
  do {                                                                      \
    cudaError_t e_ = call;                                                  \
    if (e_ != cudaSuccess) {                                                \
      fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_));   \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

__device__ inline void Comparator(uint& keyA, uint& valA, uint& keyB, uint& valB, uint dir) {
  // equal keys are ordered by their values, so that the result does not depend on the network
  bool greater = keyA > keyB || (keyA == keyB && valA > valB);
  if (greater == (bool)dir) {
    uint t = keyA;
    keyA = keyB;
    keyB = t;
    t = valA;
    valA = valB;
    valB = t;
  }
}

__global__ void bitonicSortShared(uint* keys, uint* vals) {
  __shared__ uint s_key[SHARED_SIZE], s_val[SHARED_SIZE];
  uint* k = keys + blockIdx.x * SHARED_SIZE + threadIdx.x;
  uint* v = vals + blockIdx.x * SHARED_SIZE + threadIdx.x;
  s_key[threadIdx.x] = k[0];
  s_val[threadIdx.x] = v[0];
  s_key[threadIdx.x + SHARED_SIZE / 2] = k[SHARED_SIZE / 2];
  s_val[threadIdx.x + SHARED_SIZE / 2] = v[SHARED_SIZE / 2];
  for (uint size = 2; size <= SHARED_SIZE; size <<= 1) {
    // the last merge of each block has the direction of the block's number
    uint dir = size == SHARED_SIZE ? !(blockIdx.x & 1) : (threadIdx.x & (size / 2)) == 0;
    for (uint stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      Comparator(s_key[pos], s_val[pos], s_key[pos + stride], s_val[pos + stride], dir);
    }
  }
  __syncthreads();
  k[0] = s_key[threadIdx.x];
  v[0] = s_val[threadIdx.x];
  k[SHARED_SIZE / 2] = s_key[threadIdx.x + SHARED_SIZE / 2];
  v[SHARED_SIZE / 2] = s_val[threadIdx.x + SHARED_SIZE / 2];
}

__global__ void bitonicMergeGlobal(uint* keys, uint* vals, uint size, uint stride) {
  uint i = blockIdx.x * blockDim.x + threadIdx.x;
  uint dir = (i & (size / 2)) == 0;
  uint pos = 2 * i - (i & (stride - 1));
  Comparator(keys[pos], vals[pos], keys[pos + stride], vals[pos + stride], dir);
}

__global__ void oddEvenMergeGlobal(uint* keys, uint* vals, uint size, uint stride) {
  uint i = blockIdx.x * blockDim.x + threadIdx.x;
  uint pos = 2 * i - (i & (stride - 1));
  if (stride < size / 2) {
    uint offset = i & (size / 2 - 1);
    if (offset >= stride) Comparator(keys[pos - stride], vals[pos - stride], keys[pos], vals[pos], 1);
  } else {
    Comparator(keys[pos], vals[pos], keys[pos + stride], vals[pos + stride], 1);
  }
}

static void bitonicSort(uint* keys, uint* vals, uint n) {
  bitonicSortShared<<<n / SHARED_SIZE, SHARED_SIZE / 2>>>(keys, vals);
  for (uint size = 2 * SHARED_SIZE; size <= n; size <<= 1)
    for (uint stride = size / 2; stride > 0; stride >>= 1)
      bitonicMergeGlobal<<<n / 256, 128>>>(keys, vals, size, stride);
}

static void oddEvenMergeSort(uint* keys, uint* vals, uint n) {
  for (uint size = 2; size <= n; size <<= 1)
    for (uint stride = size / 2; stride > 0; stride >>= 1) oddEvenMergeGlobal<<<n / 256, 128>>>(keys, vals, size, stride);
}

int main(int argc, char** argv) {
  const uint n = argc > 1 ? atoi(argv[1]) : 2048;
  if (n < SHARED_SIZE || (n & (n - 1))) {
    puts("a power of two from 256 on, please");
    return 1;
  }
  std::vector<uint> keys(n), vals(n), k(n), v(n), order(n);
  uint state = 2463534242u;
  for (uint i = 0; i < n; i++) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    keys[i] = state % 500;  // many equal keys
    vals[i] = i;
  }
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint a, uint b) { return keys[a] < keys[b]; });
  uint *dk, *dv;
  checkCudaErrors(cudaMalloc(&dk, n * sizeof(uint)));
  checkCudaErrors(cudaMalloc(&dv, n * sizeof(uint)));
  struct {
    const char* name;
    void (*sort)(uint*, uint*, uint);
  } sorts[] = {{"bitonic", bitonicSort}, {"odd-even merge", oddEvenMergeSort}};
  uint wrong = 0;
  for (auto& s : sorts) {
    checkCudaErrors(cudaMemcpy(dk, keys.data(), n * sizeof(uint), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(dv, vals.data(), n * sizeof(uint), cudaMemcpyHostToDevice));
    s.sort(dk, dv, n);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaMemcpy(k.data(), dk, n * sizeof(uint), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(v.data(), dv, n * sizeof(uint), cudaMemcpyDeviceToHost));
    uint differences = 0;
    for (uint i = 0; i < n; i++) differences += v[i] != order[i] || k[i] != keys[order[i]];
    printf("%-15s first %u, median %u, last %u, %u differences\n", s.name, k[0], k[n / 2], k[n - 1], differences);
    wrong += differences;
  }
  checkCudaErrors(cudaFree(dk));
  checkCudaErrors(cudaFree(dv));
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
