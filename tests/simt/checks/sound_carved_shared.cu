// check: sound
// near: out_of_bounds
// what: one block of dynamic shared memory, carved into doubles, ints and bytes, each full to its last element

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void bucket_means(const double* x, const unsigned char* bucket, double* means, int n, int buckets) {
  extern __shared__ double sums[];
  int* counts = (int*)(sums + buckets);
  unsigned char* mine = (unsigned char*)(counts + buckets);
  int t = threadIdx.x;
  if (t < buckets) sums[t] = 0, counts[t] = 0;
  mine[t] = t < n ? bucket[t] : 255;
  __syncthreads();
  if (t < n) {
    atomicAdd(&sums[mine[t]], x[t]);
    atomicAdd(&counts[mine[t]], 1);
  }
  __syncthreads();
  if (t < buckets) means[t] = sums[t] / counts[t];
}

int main() {
  const int n = 61, buckets = 5, threads = 64;
  double x[n], means[buckets], *d_x, *d_means;
  unsigned char bucket[n], *d_bucket;
  for (int i = 0; i < n; i++) x[i] = i, bucket[i] = i % buckets;
  CHECK(cudaMalloc(&d_x, sizeof(x)));
  CHECK(cudaMalloc(&d_means, sizeof(means)));
  CHECK(cudaMalloc(&d_bucket, n));
  CHECK(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_bucket, bucket, n, cudaMemcpyHostToDevice));
  bucket_means<<<1, threads, buckets * (sizeof(double) + sizeof(int)) + threads>>>(d_x, d_bucket, d_means, n, buckets);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(means, d_means, sizeof(means), cudaMemcpyDeviceToHost));
  for (double m : means) printf("%g ", m);
  printf("\n");
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_means));
  CHECK(cudaFree(d_bucket));
  return 0;
}
