// title: Runs, segmented sums and stream compaction with thrust's scans
// features: thrust, streams
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <thrust/copy.h>
#include <thrust/device_malloc.h>
#include <thrust/device_free.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/merge.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#define CHECK(call)                                                                           \
  do {                                                                                        \
    cudaError_t err_ = (call);                                                                \
    if (err_ != cudaSuccess) {                                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_));           \
      exit(2);                                                                                \
    }                                                                                         \
  } while (0)

static int failures = 0;
#define EXPECT(condition)                                            \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("line %d: %s is false\n", __LINE__, #condition);        \
      failures++;                                                    \
    }                                                                \
  } while (0)

struct positive {
  __device__ bool operator()(int x) const { return x > 0; }
};

int main() {
  const int n = 1500;
  int *keys_h = (int*)malloc(n * sizeof(int)), *values_h = (int*)malloc(n * sizeof(int));
  unsigned s = 99;
  for (int i = 0, key = 0; i < n; i++) {
    s = s * 1103515245u + 12345u;
    if ((s >> 20) % 6 == 0) key++;
    keys_h[i] = key;
    values_h[i] = (int)((s >> 16) % 41) - 20;
  }

  // Memory from cudaMalloc, wrapped.
  int *keys_raw, *values_raw, *out_raw;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc((void**)&keys_raw, n * sizeof(int)));
  CHECK(cudaMalloc((void**)&values_raw, n * sizeof(int)));
  CHECK(cudaMalloc((void**)&out_raw, n * sizeof(int)));
  CHECK(cudaMemcpyAsync(keys_raw, keys_h, n * sizeof(int), cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpyAsync(values_raw, values_h, n * sizeof(int), cudaMemcpyHostToDevice, stream));
  thrust::device_ptr<int> keys(keys_raw), values = thrust::device_pointer_cast(values_raw), out(out_raw);
  auto policy = thrust::cuda::par.on(stream);

  std::vector<int> got(n);
  auto fetch = [&](int count) {
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(got.data(), out_raw, count * sizeof(int), cudaMemcpyDeviceToHost));
  };

  thrust::inclusive_scan_by_key(policy, keys, keys + n, values, out);
  fetch(n);
  for (int i = 0, sum = 0; i < n; i++) {
    sum = i > 0 && keys_h[i] == keys_h[i - 1] ? sum + values_h[i] : values_h[i];
    EXPECT(got[i] == sum);
  }
  thrust::exclusive_scan_by_key(policy, keys, keys + n, values, out, 100);
  fetch(n);
  for (int i = 0, sum = 0; i < n; i++) {
    if (i == 0 || keys_h[i] != keys_h[i - 1]) sum = 100;
    EXPECT(got[i] == sum);
    sum += values_h[i];
  }
  thrust::exclusive_scan(policy, values, values + n, out, -1000, thrust::maximum<int>());
  fetch(n);
  for (int i = 0, most = -1000; i < n; i++) {
    EXPECT(got[i] == most);
    if (values_h[i] > most) most = values_h[i];
  }

  // One sum for each run; the keys are thrown away.
  auto ends = thrust::reduce_by_key(policy, keys, keys + n, values, thrust::make_discard_iterator(), out);
  const int runs = (int)(ends.second - out);
  fetch(runs);
  long long checksum = 0;
  for (int i = 0, run = -1; i < n;) {
    int sum = 0, key = keys_h[i];
    run++;
    while (i < n && keys_h[i] == key) sum += values_h[i++];
    EXPECT(run < runs && got[run] == sum);
    checksum += (long long)sum * (run + 1);
  }
  printf("%d runs, checksum %lld\n", runs, checksum);

  // Compaction: the positive values, then what is unique among the keys.
  const int kept = (int)(thrust::copy_if(policy, values, values + n, out, positive()) - out);
  fetch(kept);
  int at = 0;
  for (int i = 0; i < n; i++)
    if (values_h[i] > 0) {
      EXPECT(at < kept && got[at] == values_h[i]);
      at++;
    }
  EXPECT(at == kept);
  const int distinct = (int)(thrust::unique(policy, keys, keys + n) - keys);
  EXPECT(distinct == runs);
  printf("%d positive, %d distinct keys\n", kept, distinct);

  // Sets: the even numbers and the multiples of three below 300.
  thrust::device_ptr<int> even = thrust::device_malloc<int>(150), threes = thrust::device_malloc<int>(100);
  for (int i = 0; i < 150; i++) even[i] = 2 * i;
  thrust::transform(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(100), threes,
                    thrust::placeholders::_1 * 3);
  thrust::device_ptr<int> end = thrust::set_intersection(even, even + 150, threes, threes + 100, out);
  EXPECT(end - out == 50);
  EXPECT(out[49] == 294);
  EXPECT(thrust::set_union(even, even + 150, threes, threes + 100, out) - out == 200);
  EXPECT(thrust::set_difference(even, even + 150, threes, threes + 100, out) - out == 100);
  EXPECT(thrust::merge(even, even + 150, threes, threes + 100, out) - out == 250);
  EXPECT(out[2] == 2 && out[0] == 0 && out[1] == 0);
  EXPECT(thrust::reduce(out, out + 250) == 149 * 150 + 3 * 99 * 50);
  thrust::device_free(even);
  thrust::device_free(threes);

  CHECK(cudaFree(keys_raw));
  CHECK(cudaFree(values_raw));
  CHECK(cudaFree(out_raw));
  CHECK(cudaStreamDestroy(stream));
  free(keys_h);
  free(values_h);
  printf("%s\n", failures ? "FAILED" : "PASSED");
  return failures != 0;
}
