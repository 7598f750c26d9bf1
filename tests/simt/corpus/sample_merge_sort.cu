// title: Merge sort: ranks by binary search in shared memory, then merges along diagonals in global memory
// features: shared_memory, templates, device_functions
// args: 5000

#include <algorithm>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime.h>

namespace msort {

class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t e, const char* what) : std::runtime_error(std::string(what) + ": " + cudaGetErrorString(e)) {}
};

inline void check(cudaError_t e, const char* what) {
  if (e != cudaSuccess) throw CudaError(e, what);
}

struct Deleter {
  void operator()(void* p) const { cudaFree(p); }
};
template <class T>
using device_ptr = std::unique_ptr<T[], Deleter>;

template <class T>
device_ptr<T> allocate(size_t n) {
  T* p = nullptr;
  check(cudaMalloc(&p, n * sizeof(T)), "cudaMalloc");
  return device_ptr<T>(p);
}

// The number of elements of a[0 ... n) before v: those smaller, and with Inclusive those equal.
template <bool Inclusive, class T>
__device__ int rank(const T* a, int n, T v) {
  int lo = 0, hi = n;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (Inclusive ? !(v < a[mid]) : a[mid] < v)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

template <class T, int TILE>
__global__ void sortTiles(T* data, int n) {
  __shared__ T buffer[2][TILE];
  const int base = blockIdx.x * TILE, count = min(TILE, n - base), i = threadIdx.x;
  if (i < count) buffer[0][i] = data[base + i];
  int current = 0;
  for (int run = 1; run < TILE; run *= 2) {
    __syncthreads();
    const T* in = buffer[current];
    if (i < count) {
      int first = i / (2 * run) * 2 * run, mid = min(first + run, count), last = min(first + 2 * run, count);
      T v = in[i];
      int position = i < mid ? i + rank<false>(in + mid, last - mid, v) : i - run + rank<true>(in + first, mid - first, v);
      buffer[1 - current][position] = v;
    }
    current = 1 - current;
  }
  __syncthreads();
  if (i < count) data[base + i] = buffer[current][i];
}

// Each thread makes STEPS outputs of a merge of two runs; where it begins, a search along its diagonal says.
template <class T, int STEPS>
__global__ void mergeRuns(const T* in, T* out, int n, int run) {
  int k = (blockIdx.x * blockDim.x + threadIdx.x) * STEPS;
  if (k >= n) return;
  int first = k / (2 * run) * 2 * run, mid = min(first + run, n), last = min(first + 2 * run, n);
  const T *a = in + first, *b = in + mid;
  int na = mid - first, nb = last - mid, d = k - first;
  int lo = max(0, d - nb), hi = min(d, na);
  while (lo < hi) {
    int i = (lo + hi) / 2;
    if (b[d - i - 1] < a[i])
      hi = i;
    else
      lo = i + 1;
  }
  int i = lo, j = d - lo;
  for (int s = 0; s < STEPS && k + s < last; s++) {
    bool fromA = j >= nb || (i < na && !(b[j] < a[i]));
    out[k + s] = fromA ? a[i++] : b[j++];
  }
}

template <class T>
std::vector<T> sort(const std::vector<T>& host) {
  constexpr int kTile = 128, kSteps = 4;
  const int n = (int)host.size();
  auto a = allocate<T>(n), b = allocate<T>(n);
  check(cudaMemcpy(a.get(), host.data(), n * sizeof(T), cudaMemcpyHostToDevice), "copy");
  sortTiles<T, kTile><<<(n + kTile - 1) / kTile, kTile>>>(a.get(), n);
  check(cudaGetLastError(), "sortTiles");
  for (int run = kTile; run < n; run *= 2) {
    int threads = (n + kSteps - 1) / kSteps;
    mergeRuns<T, kSteps><<<(threads + 127) / 128, 128>>>(a.get(), b.get(), n, run);
    check(cudaGetLastError(), "mergeRuns");
    std::swap(a, b);
  }
  std::vector<T> result(n);
  check(cudaMemcpy(result.data(), a.get(), n * sizeof(T), cudaMemcpyDeviceToHost), "copy back");
  return result;
}

}  // namespace msort

template <class T>
bool test(const char* name, std::vector<T> data) {
  std::vector<T> got = msort::sort(data);
  std::sort(data.begin(), data.end());
  std::cout << name << ": " << got.front() << " ... " << got[got.size() / 2] << " ... " << got.back() << std::endl;
  return got == data;
}

int main(int argc, char** argv) {
  try {
    const int n = argc > 1 ? std::stoi(argv[1]) : 5000;
    std::mt19937 rng(5);
    std::vector<int> ints(n);
    std::vector<float> floats(n / 2 + 1);
    for (int& v : ints) v = (int)(rng() % 2001) - 1000;
    for (float& v : floats) v = (float)(rng() % 100000) / 8;
    bool ok = test("ints", ints) & test("floats", floats) & test("three", std::vector<int>{3, 1, 2});
    std::cout << (ok ? "PASSED" : "FAILED") << std::endl;
    return ok ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
}
