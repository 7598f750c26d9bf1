// title: Filters: flags, conditions, unique keys and partitions with cub::DeviceSelect and cub::DevicePartition
// features: cub_device, streams, std_flags
// flags: -std=c++17
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cub/device/device_partition.cuh>
#include <cub/device/device_select.cuh>

#define SAFE(call)                                                      \
  if (cudaError_t e = (call)) {                                         \
    std::printf("error %d in line %d\n", static_cast<int>(e), __LINE__); \
    std::exit(1);                                                       \
  }

struct LessThan {
  int compare;
  explicit __host__ __device__ LessThan(int compare) : compare(compare) {}
  __host__ __device__ bool operator()(const int& a) const { return a < compare; }
};

struct Multiple {
  int of;
  __host__ __device__ bool operator()(int a) const { return a % of == 0; }
};

int main() {
  constexpr int n = 1200;
  std::vector<int> in(n), out(n), rest(n);
  std::vector<unsigned char> flags(n);
  for (int i = 0; i < n; ++i) {
    in[i] = i * i % 311 / 3;
    flags[i] = i % 5 == 0 || i % 7 == 3;
  }
  int *d_in, *d_out, *d_values, *d_second, *d_count;
  unsigned char* d_flags;
  cudaStream_t stream;
  SAFE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  SAFE(cudaMalloc(&d_in, sizeof(int) * n));
  SAFE(cudaMalloc(&d_out, sizeof(int) * n));
  SAFE(cudaMalloc(&d_values, sizeof(int) * n));
  SAFE(cudaMalloc(&d_second, sizeof(int) * n));
  SAFE(cudaMalloc(&d_count, sizeof(int) * 2));
  SAFE(cudaMalloc(&d_flags, n));
  SAFE(cudaMemcpy(d_in, in.data(), sizeof(int) * n, cudaMemcpyHostToDevice));
  SAFE(cudaMemcpy(d_flags, flags.data(), n, cudaMemcpyHostToDevice));

  // One buffer, as large as the largest of the calls needs.
  std::size_t sizes[5] = {};
  SAFE(cub::DeviceSelect::Flagged(nullptr, sizes[0], d_in, d_flags, d_out, d_count, n));
  SAFE(cub::DeviceSelect::If(nullptr, sizes[1], d_in, d_out, d_count, n, LessThan(20)));
  SAFE(cub::DeviceSelect::Unique(nullptr, sizes[2], d_in, d_out, d_count, n));
  SAFE(cub::DevicePartition::If(nullptr, sizes[3], d_in, d_out, d_count, n, LessThan(50)));
  SAFE(cub::DevicePartition::If(nullptr, sizes[4], d_in, d_out, d_second, d_values, d_count, n, Multiple{2},
                                Multiple{3}));
  std::size_t bytes = *std::max_element(sizes, sizes + 5);
  void* storage;
  SAFE(cudaMalloc(&storage, bytes));

  int count[2];
  bool ok = true;
  auto fetch = [&](const char* name) {
    SAFE(cudaStreamSynchronize(stream));
    SAFE(cudaMemcpy(count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
    SAFE(cudaMemcpy(out.data(), d_out, sizeof(int) * n, cudaMemcpyDeviceToHost));
    std::printf("%-10s %d\n", name, count[0]);
  };
  SAFE(cudaMemset(d_out, 0, sizeof(int) * n));

  SAFE(cub::DeviceSelect::Flagged(storage, bytes, d_in, d_flags, d_out, d_count, n, stream));
  fetch("flagged");
  std::vector<int> expected;
  for (int i = 0; i < n; ++i)
    if (flags[i]) expected.push_back(in[i]);
  ok = ok && count[0] == (int)expected.size() && std::equal(expected.begin(), expected.end(), out.begin());

  SAFE(cub::DeviceSelect::If(storage, bytes, d_in, d_out, d_count, n, LessThan(20), stream));
  fetch("below 20");
  expected.clear();
  std::copy_if(in.begin(), in.end(), std::back_inserter(expected), LessThan(20));
  ok = ok && count[0] == (int)expected.size() && std::equal(expected.begin(), expected.end(), out.begin());

  SAFE(cub::DeviceSelect::Unique(storage, bytes, d_in, d_out, d_count, n, stream));
  fetch("unique");
  expected.clear();
  std::unique_copy(in.begin(), in.end(), std::back_inserter(expected));
  ok = ok && count[0] == (int)expected.size() && std::equal(expected.begin(), expected.end(), out.begin());

  // Selected items first, the others behind them in reverse order.
  SAFE(cub::DevicePartition::If(storage, bytes, d_in, d_out, d_count, n, LessThan(50), stream));
  fetch("partition");
  auto middle = std::stable_partition(expected.begin(), expected.begin(), LessThan(50));
  expected = in;
  middle = std::stable_partition(expected.begin(), expected.end(), LessThan(50));
  std::reverse(middle, expected.end());
  ok = ok && count[0] == middle - expected.begin() && out == expected;

  SAFE(cub::DevicePartition::If(storage, bytes, d_in, d_out, d_second, d_values, d_count, n, Multiple{2}, Multiple{3},
                                stream));
  SAFE(cudaStreamSynchronize(stream));
  SAFE(cudaMemcpy(count, d_count, sizeof count, cudaMemcpyDeviceToHost));
  SAFE(cudaMemcpy(out.data(), d_second, sizeof(int) * count[1], cudaMemcpyDeviceToHost));
  SAFE(cudaMemcpy(rest.data(), d_values, sizeof(int) * (n - count[0] - count[1]), cudaMemcpyDeviceToHost));
  int second = 0, third = 0;
  for (int each : in) {
    if (each % 2 == 0) continue;
    if (each % 3 == 0) ok = ok && out[second++] == each;
    else ok = ok && rest[third++] == each;
  }
  ok = ok && second == count[1] && third == n - count[0] - count[1];
  std::printf("three ways %d %d %d\n", count[0], count[1], third);

  SAFE(cudaStreamDestroy(stream));
  for (void* each : {(void*)d_in, (void*)d_out, (void*)d_values, (void*)d_second, (void*)d_count, (void*)d_flags, storage})
    SAFE(cudaFree(each));
  std::printf("%s\n", ok ? "PASSED" : "FAILED");
  return !ok;
}
