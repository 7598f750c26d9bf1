// title: Radix sorts of keys and pairs: floats, descending, some bits only, double buffers
// features: cub_device
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include <cub/device/device_radix_sort.cuh>
#include <cub/util_allocator.cuh>

using namespace cub;

static void check(cudaError_t e, int line) {
  if (e != cudaSuccess) {
    printf("CUDA error in line %d: %s\n", line, cudaGetErrorName(e));
    exit(1);
  }
}
#define CK(x) check((x), __LINE__)

bool all_ok = true;
void report(const char *what, bool ok) {
  printf("%-34s %s\n", what, ok ? "ok" : "wrong");
  all_ok = all_ok && ok;
}

int main() {
  const int n = 2048;
  std::vector<float> keys(n);
  std::vector<int> ids(n);
  srand(0);
  unsigned s = 1;
  for (int i = 0; i < n; i++) {
    s = s * 69069u + 362437u;
    keys[i] = (float)((int)(s >> 12) % 1000 - 500) / 8.0f;
    ids[i] = i;
  }
  keys[5] = -0.0f;

  float *d_keys_in, *d_keys_out;
  int *d_ids_in, *d_ids_out;
  CK(cudaMalloc(&d_keys_in, n * sizeof(float)));
  CK(cudaMalloc(&d_keys_out, n * sizeof(float)));
  CK(cudaMalloc(&d_ids_in, n * sizeof(int)));
  CK(cudaMalloc(&d_ids_out, n * sizeof(int)));
  CK(cudaMemcpy(d_keys_in, keys.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_ids_in, ids.data(), n * sizeof(int), cudaMemcpyHostToDevice));

  // pairs, ascending; a radix sort is stable
  void *d_temp = NULL;
  size_t temp_bytes = 0;
  CK(DeviceRadixSort::SortPairs(d_temp, temp_bytes, d_keys_in, d_keys_out, d_ids_in, d_ids_out, n));
  CK(cudaMalloc(&d_temp, temp_bytes));
  CK(DeviceRadixSort::SortPairs(d_temp, temp_bytes, d_keys_in, d_keys_out, d_ids_in, d_ids_out, n));
  std::vector<float> sorted(n);
  std::vector<int> order(n);
  CK(cudaMemcpy(sorted.data(), d_keys_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(order.data(), d_ids_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::vector<int> expected(ids);
  std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  bool same = order == expected;
  for (int i = 0; i < n; i++) same = same && sorted[i] == keys[expected[i]];
  report("pairs of float and int", same);
  printf("smallest %.3f, largest %.3f\n", sorted.front(), sorted.back());

  // descending, in a double buffer
  DoubleBuffer<float> key_buffer(d_keys_in, d_keys_out);
  DoubleBuffer<int> id_buffer(d_ids_in, d_ids_out);
  size_t bytes = 0;
  void *d_own = NULL;
  CK(DeviceRadixSort::SortPairsDescending(d_own, bytes, key_buffer, id_buffer, n));
  CK(cudaMalloc(&d_own, bytes));
  CK(DeviceRadixSort::SortPairsDescending(d_own, bytes, key_buffer, id_buffer, n));
  CK(cudaMemcpy(sorted.data(), key_buffer.Current(), n * sizeof(float), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(order.data(), id_buffer.Current(), n * sizeof(int), cudaMemcpyDeviceToHost));
  std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) { return a < b; });
  std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) { return keys[a] > keys[b]; });
  same = order == expected;
  for (int i = 1; i < n; i++) same = same && sorted[i - 1] >= sorted[i];
  report("descending, double buffer", same);
  CK(cudaFree(d_own));

  // only bits 4 to 11 of unsigned keys
  CachingDeviceAllocator allocator(true);
  unsigned *d_a = NULL, *d_b = NULL;
  CK(allocator.DeviceAllocate((void **)&d_a, n * sizeof(unsigned)));
  CK(allocator.DeviceAllocate((void **)&d_b, n * sizeof(unsigned)));
  std::vector<unsigned> numbers(n), result(n);
  for (int i = 0; i < n; i++) numbers[i] = s = s * 69069u + 362437u;
  CK(cudaMemcpy(d_a, numbers.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
  void *d_keys_temp = NULL;
  size_t keys_bytes = 0;
  CK(DeviceRadixSort::SortKeys(d_keys_temp, keys_bytes, d_a, d_b, n, 4, 12));
  CK(allocator.DeviceAllocate(&d_keys_temp, keys_bytes));
  CK(DeviceRadixSort::SortKeys(d_keys_temp, keys_bytes, d_a, d_b, n, 4, 12));
  CK(cudaMemcpy(result.data(), d_b, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  std::stable_sort(numbers.begin(), numbers.end(),
                   [](unsigned a, unsigned b) { return (a >> 4 & 255) < (b >> 4 & 255); });
  report("eight bits of unsigned keys", result == numbers);
  CK(allocator.DeviceFree(d_a));
  CK(allocator.DeviceFree(d_b));
  CK(allocator.DeviceFree(d_keys_temp));

  CK(cudaFree(d_temp));
  CK(cudaFree(d_keys_in));
  CK(cudaFree(d_keys_out));
  CK(cudaFree(d_ids_in));
  CK(cudaFree(d_ids_out));
  printf("%s\n", all_ok ? "PASSED" : "FAILED");
  return all_ok ? 0 : 1;
}
