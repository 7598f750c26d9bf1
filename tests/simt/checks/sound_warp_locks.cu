// check: sound
// near: race
// what: one lane of each warp takes the lock of the bucket that it changes; locks are atomics with fences

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Bucket { int lock, count; float least, most; };

__global__ void extremes(const float* in, int n, Bucket* buckets) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float v = in[(32 * warp + lane) % n], least = v, most = v;
  for (int d = 16; d > 0; d /= 2) {
    least = fminf(least, __shfl_xor_sync(0xffffffff, least, d));
    most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, d));
  }
  if (lane != 0) return;
  Bucket* bucket = &buckets[warp % 3];
  while (atomicCAS(&bucket->lock, 0, 1)) __nanosleep(20);
  __threadfence();
  if (bucket->count == 0 || least < bucket->least) bucket->least = least;
  if (bucket->count == 0 || most > bucket->most) bucket->most = most;
  bucket->count++;
  __threadfence();
  atomicExch(&bucket->lock, 0);
}

int main() {
  const int n = 320;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i * 7 % 320;
  Bucket buckets[3], *d_buckets;
  float* d_in;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_buckets, sizeof(buckets)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_buckets, 0, sizeof(buckets)));
  extremes<<<5, 64>>>(d_in, n, d_buckets);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(buckets, d_buckets, sizeof(buckets), cudaMemcpyDeviceToHost));
  for (Bucket b : buckets) printf("%d: %g … %g\n", b.count, b.least, b.most);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_buckets));
  return 0;
}
