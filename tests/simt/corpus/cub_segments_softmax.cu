// title: Rows of different lengths: segmented reductions, segmented sorts, run lengths and differences
// features: cub_device, segments, std_flags
// flags: -std=c++20
#include <cub/cub.cuh>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

template <class... A>
void must(cudaError_t status, const char* format, A... arguments) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, format, arguments...);
  std::exit(3);
}
#define MUST(call) must((call), "%s: line %d\n", #call, __LINE__)

template <class T>
T* upload(const std::vector<T>& host) {
  T* device;
  MUST(cudaMalloc(&device, host.size() * sizeof(T)));
  MUST(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}
template <class T>
std::vector<T> download(const T* device, std::size_t n) {
  std::vector<T> host(n);
  MUST(cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}
template <class F>
void twice(F f) {
  void* storage = nullptr;
  std::size_t bytes = 0;
  MUST(f(storage, bytes));
  MUST(cudaMalloc(&storage, bytes));
  MUST(f(storage, bytes));
  MUST(cudaFree(storage));
}

// exp(x - largest of the row), a block for each row
__global__ void exponentials(const float* x, const int* offsets, const float* largest, float* e) {
  const int row = blockIdx.x;
  for (int i = offsets[row] + threadIdx.x; i < offsets[row + 1]; i += blockDim.x) e[i] = expf(x[i] - largest[row]);
}
__global__ void normalize(float* e, const int* offsets, const float* sums) {
  const int row = blockIdx.x;
  for (int i = offsets[row] + threadIdx.x; i < offsets[row + 1]; i += blockDim.x) e[i] /= sums[row];
}

int main() {
  const int rows = 40;
  std::vector<int> offsets{0};
  for (int r = 0; r < rows; ++r) offsets.push_back(offsets.back() + 1 + r * 7 % 31);
  const int n = offsets.back();
  std::vector<float> x(n);
  for (int i = 0; i < n; ++i) x[i] = (float)((i * 29 + i * i % 17) % 64) / 8 - 4;

  float *d_x = upload(x), *d_e, *d_largest, *d_sums, *d_sorted;
  int* d_offsets = upload(offsets);
  MUST(cudaMalloc(&d_e, n * sizeof(float)));
  MUST(cudaMalloc(&d_sorted, n * sizeof(float)));
  MUST(cudaMalloc(&d_largest, rows * sizeof(float)));
  MUST(cudaMalloc(&d_sums, rows * sizeof(float)));

  twice([&](void* p, std::size_t& bytes) {
    return cub::DeviceSegmentedReduce::Max(p, bytes, d_x, d_largest, rows, d_offsets, d_offsets + 1);
  });
  exponentials<<<rows, 32>>>(d_x, d_offsets, d_largest, d_e);
  twice([&](void* p, std::size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(p, bytes, d_e, d_sums, rows, d_offsets, d_offsets + 1);
  });
  normalize<<<rows, 32>>>(d_e, d_offsets, d_sums);
  MUST(cudaGetLastError());
  twice([&](void* p, std::size_t& bytes) {
    return cub::DeviceSegmentedSort::SortKeysDescending(p, bytes, d_x, d_sorted, n, rows, d_offsets, d_offsets + 1);
  });

  const auto softmax = download(d_e, n), sorted = download(d_sorted, n);
  bool ok = true;
  double worst = 0;
  for (int r = 0; r < rows; ++r) {
    const int from = offsets[r], to = offsets[r + 1];
    const double most = *std::max_element(x.begin() + from, x.begin() + to);
    double sum = 0;
    for (int i = from; i < to; ++i) sum += std::exp(x[i] - most);
    for (int i = from; i < to; ++i) worst = std::max(worst, std::fabs(softmax[i] - std::exp(x[i] - most) / sum));
    std::vector<float> row(x.begin() + from, x.begin() + to);
    std::sort(row.begin(), row.end(), std::greater<float>());
    ok = ok && std::equal(row.begin(), row.end(), sorted.begin() + from);
  }
  ok = ok && worst < 1e-6;

  // How often each value occurs, the steps between them, and their lengths in order.
  float* d_all;
  float* d_unique;
  int *d_counts, *d_runs;
  MUST(cudaMalloc(&d_all, n * sizeof(float)));
  MUST(cudaMalloc(&d_unique, n * sizeof(float)));
  MUST(cudaMalloc(&d_counts, n * sizeof(int)));
  MUST(cudaMalloc(&d_runs, sizeof(int)));
  twice([&](void* p, std::size_t& bytes) { return cub::DeviceRadixSort::SortKeys(p, bytes, d_x, d_all, n); });
  twice([&](void* p, std::size_t& bytes) {
    return cub::DeviceRunLengthEncode::Encode(p, bytes, d_all, d_unique, d_counts, d_runs, n);
  });
  const int runs = download(d_runs, 1)[0];
  twice([&](void* p, std::size_t& bytes) { return cub::DeviceAdjacentDifference::SubtractLeft(p, bytes, d_unique, runs); });
  const auto counts = download(d_counts, runs);
  const auto steps = download(d_unique, runs);
  std::vector<float> all(x);
  std::sort(all.begin(), all.end());
  float value = 0;
  for (int k = 0; k < runs; ++k) {
    value += steps[k];  // multiples of an eighth: exact
    ok = ok && counts[k] == std::count(all.begin(), all.end(), value);
  }
  ok = ok && std::accumulate(counts.begin(), counts.end(), 0) == n && value == all.back();

  std::printf("%d rows, %d items, %d values from %.3f to %.3f\n", rows, n, runs, all.front(), all.back());
  std::printf("most frequent: %d times\n", *std::max_element(counts.begin(), counts.end()));
  for (void* each : {(void*)d_x, (void*)d_e, (void*)d_sorted, (void*)d_largest, (void*)d_sums, (void*)d_offsets,
                     (void*)d_all, (void*)d_unique, (void*)d_counts, (void*)d_runs})
    MUST(cudaFree(each));
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
