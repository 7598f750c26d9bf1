/*
Prefix sum (scan): out[i] = in[0] + … + in[i - 1], the exclusive one, of any length.

    nvcc -std=c++17 -arch=native scan.cu -o scan && ./scan
    python -m simt run scan.cu

version 1: Hillis and Steele: log2(n) steps of n additions, two buffers in shared memory; one block
version 2: Blelloch: up the tree and down again, 2n additions; one block
version 3: Blelloch in every block, a scan of the blocks' sums (by the same means), and the sums added to their blocks
*/

#include <cstdlib>
#include <iostream>
#include <numeric>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                            \
  if (cudaError_t error_ = (call); error_ != cudaSuccess) {                                                    \
    std::cerr << __FILE__ << ":" << __LINE__ << ": " << cudaGetErrorString(error_) << std::endl;               \
    std::exit(1);                                                                                              \
  }

constexpr int BLOCK = 256;            // threads
constexpr int CHUNK = 2 * BLOCK;      // elements that one block scans in version 2 and 3

// ---- CPU reference ----

void scan_cpu(const int* in, int* out, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    out[i] = sum;
    sum += in[i];
  }
}

// ---- kernels ----

__global__ void hillis_steele(const int* in, int* out, int n) {
  extern __shared__ int buffers[];      // two of n elements
  int* from = buffers;
  int* to = buffers + n;
  int i = threadIdx.x;
  from[i] = i > 0 ? in[i - 1] : 0;      // shifted by one: exclusive
  __syncthreads();
  for (int distance = 1; distance < n; distance *= 2) {
    to[i] = i >= distance ? from[i] + from[i - distance] : from[i];
    __syncthreads();
    int* other = from;
    from = to;
    to = other;
  }
  out[i] = from[i];
}

// Scans CHUNK elements a block; `sums` gets each block's total where it is not null.
__global__ void blelloch(const int* in, int* out, int* sums, int n) {
  __shared__ int tree[CHUNK];
  int t = threadIdx.x, start = blockIdx.x * CHUNK;
  for (int i = t; i < CHUNK; i += BLOCK) tree[i] = start + i < n ? in[start + i] : 0;

  int distance = 1;
  for (int nodes = CHUNK / 2; nodes > 0; nodes /= 2, distance *= 2) {      // up: each node gets the sum of its leaves
    __syncthreads();
    if (t < nodes) tree[distance * (2 * t + 2) - 1] += tree[distance * (2 * t + 1) - 1];
  }
  __syncthreads();
  if (t == 0) {
    if (sums) sums[blockIdx.x] = tree[CHUNK - 1];
    tree[CHUNK - 1] = 0;
  }
  for (int nodes = 1; nodes < CHUNK; nodes *= 2) {      // down: the left child gets the parent, the right one parent + left
    distance /= 2;
    __syncthreads();
    if (t < nodes) {
      int left = distance * (2 * t + 1) - 1, right = distance * (2 * t + 2) - 1;
      int sum = tree[left];
      tree[left] = tree[right];
      tree[right] += sum;
    }
  }
  __syncthreads();
  for (int i = t; i < CHUNK; i += BLOCK)
    if (start + i < n) out[start + i] = tree[i];
}

__global__ void add_sums(int* out, const int* sums, int n) {
  int start = blockIdx.x * CHUNK;
  for (int i = threadIdx.x; i < CHUNK; i += BLOCK)
    if (start + i < n) out[start + i] += sums[blockIdx.x];
}

// ---- host ----

void scan(const int* d_in, int* d_out, int n) {
  int blocks = (n + CHUNK - 1) / CHUNK;
  int* d_sums = nullptr;
  if (blocks > 1) CHECK(cudaMalloc(&d_sums, blocks * sizeof(int)));
  blelloch<<<blocks, BLOCK>>>(d_in, d_out, d_sums, n);
  CHECK(cudaGetLastError());
  if (blocks == 1) return;
  scan(d_sums, d_sums, blocks);
  add_sums<<<blocks, BLOCK>>>(d_out, d_sums, n);
  CHECK(cudaGetLastError());
  CHECK(cudaFree(d_sums));
}

int main() {
  bool all_right = true;
  auto test = [&](const char* name, int n, auto&& run) {
    std::vector<int> in(n), out(n), expected(n);
    unsigned random = 12345;
    for (int& value : in) {
      random = random * 1664525 + 1013904223;
      value = (int)(random >> 24) - 100;
    }
    scan_cpu(in.data(), expected.data(), n);
    int *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, n * sizeof(int)));
    CHECK(cudaMalloc(&d_out, n * sizeof(int)));
    CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    run(d_in, d_out);
    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    bool right = out == expected;
    unsigned checksum = std::accumulate(out.begin(), out.end(), 0u, [](unsigned sum, int v) { return sum * 31 + v; });
    std::cout << name << ", " << n << " elements: " << (right ? "ok" : "WRONG") << ", last " << out.back() << ", checksum "
              << checksum << std::endl;
    all_right = all_right && right;
  };

  for (int n : {1, 100, 256, 1024}) test("hillis-steele", n, [&](int* in, int* out) { hillis_steele<<<1, n, 2 * n * sizeof(int)>>>(in, out, n); });
  for (int n : {1, 511, 512}) test("blelloch", n, [&](int* in, int* out) { blelloch<<<1, BLOCK>>>(in, out, nullptr, n); });
  for (int n : {513, 65536, 300001}) test("blelloch, blocks", n, [&](int* in, int* out) { scan(in, out, n); });
  return all_right ? 0 : 1;
}
