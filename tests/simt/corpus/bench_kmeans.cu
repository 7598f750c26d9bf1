// title: k-means: transposed features, nearest centre per thread, sums per block
// features: constant_memory, dynamic_shared_memory, atomics, device_arrays
// args: 2000 4 5

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define ERR(x)                                                        \
  {                                                                   \
    cudaError_t e = (x);                                              \
    if (e != cudaSuccess) {                                           \
      fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(e));   \
      exit(1);                                                        \
    }                                                                 \
  }

#define MAX_CLUSTERS 16
#define MAX_FEATURES 8
__constant__ int c_clusters[MAX_CLUSTERS * MAX_FEATURES];

// Points are integers, so that sums are exact and every order gives the same.
__global__ void invert_mapping(const int* in, int* out, int npoints, int nfeatures) {
  int p = threadIdx.x + blockDim.x * blockIdx.x;
  if (p < npoints)
    for (int i = 0; i < nfeatures; i++) out[p + npoints * i] = in[p * nfeatures + i];
}

__global__ void assign(const int* features, int nfeatures, int npoints, int nclusters, int* membership, unsigned long long* sums, int* counts,
                       int* changed) {
  extern __shared__ int shared[];  // sums and counts of the block
  int* blockCounts = shared + nclusters * nfeatures;
  for (int i = threadIdx.x; i < nclusters * (nfeatures + 1); i += blockDim.x) shared[i] = 0;
  __syncthreads();
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < npoints) {
    int index = -1, best = 0x7fffffff;
    for (int c = 0; c < nclusters; c++) {
      int dist = 0;
      for (int f = 0; f < nfeatures; f++) {
        int d = features[p + f * npoints] - c_clusters[c * nfeatures + f];
        dist += d * d;
      }
      if (dist < best) best = dist, index = c;
    }
    if (membership[p] != index) {
      membership[p] = index;
      atomicAdd(changed, 1);
    }
    for (int f = 0; f < nfeatures; f++) atomicAdd(&shared[index * nfeatures + f], features[p + f * npoints]);
    atomicAdd(&blockCounts[index], 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < nclusters * nfeatures; i += blockDim.x) atomicAdd(&sums[i], (unsigned long long)shared[i]);
  for (int i = threadIdx.x; i < nclusters; i += blockDim.x) atomicAdd(&counts[i], blockCounts[i]);
}

int main(int argc, char** argv) {
  int npoints = argc > 1 ? atoi(argv[1]) : 2000, nfeatures = argc > 2 ? atoi(argv[2]) : 4, k = argc > 3 ? atoi(argv[3]) : 5;
  if (nfeatures > MAX_FEATURES || k > MAX_CLUSTERS) return 1;
  std::vector<int> points(npoints * nfeatures), member(npoints, -1), centres(k * nfeatures);
  unsigned s = 11;
  for (int p = 0; p < npoints; p++)
    for (int f = 0; f < nfeatures; f++) {
      s = s * 1103515245u + 12345u;
      points[p * nfeatures + f] = 1000 * ((p % k + 1) * (f + 2) % 7) + (int)(s >> 16) % 600;
    }
  for (int c = 0; c < k; c++)
    for (int f = 0; f < nfeatures; f++) centres[c * nfeatures + f] = points[c * nfeatures + f];
  int *d_in, *d_features, *d_member, *d_counts, *d_changed;
  unsigned long long* d_sums;
  ERR(cudaMalloc(&d_in, points.size() * sizeof(int)));
  ERR(cudaMalloc(&d_features, points.size() * sizeof(int)));
  ERR(cudaMalloc(&d_member, npoints * sizeof(int)));
  ERR(cudaMalloc(&d_counts, k * sizeof(int)));
  ERR(cudaMalloc(&d_sums, k * nfeatures * sizeof(unsigned long long)));
  ERR(cudaMalloc(&d_changed, sizeof(int)));
  ERR(cudaMemcpy(d_in, points.data(), points.size() * sizeof(int), cudaMemcpyHostToDevice));
  ERR(cudaMemset(d_member, 0xff, npoints * sizeof(int)));
  const int threads = 128, blocks = (npoints + threads - 1) / threads;
  invert_mapping<<<blocks, threads>>>(d_in, d_features, npoints, nfeatures);
  ERR(cudaGetLastError());
  std::vector<int> start = centres, counts(k);
  std::vector<unsigned long long> sums(k * nfeatures);
  int loops = 0, changed;
  do {
    ERR(cudaMemcpyToSymbol(c_clusters, centres.data(), centres.size() * sizeof(int)));
    ERR(cudaMemset(d_sums, 0, sums.size() * sizeof(sums[0])));
    ERR(cudaMemset(d_counts, 0, k * sizeof(int)));
    ERR(cudaMemset(d_changed, 0, sizeof(int)));
    assign<<<blocks, threads, k * (nfeatures + 1) * sizeof(int)>>>(d_features, nfeatures, npoints, k, d_member, d_sums, d_counts, d_changed);
    ERR(cudaGetLastError());
    ERR(cudaMemcpy(sums.data(), d_sums, sums.size() * sizeof(sums[0]), cudaMemcpyDeviceToHost));
    ERR(cudaMemcpy(counts.data(), d_counts, k * sizeof(int), cudaMemcpyDeviceToHost));
    ERR(cudaMemcpy(&changed, d_changed, sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < k * nfeatures; i++)
      if (counts[i / nfeatures]) centres[i] = (int)(sums[i] / counts[i / nfeatures]);
  } while (changed && ++loops < 50);
  ERR(cudaMemcpy(member.data(), d_member, npoints * sizeof(int), cudaMemcpyDeviceToHost));
  ERR(cudaFree(d_in));
  ERR(cudaFree(d_features));
  ERR(cudaFree(d_member));
  ERR(cudaFree(d_counts));
  ERR(cudaFree(d_sums));
  ERR(cudaFree(d_changed));

  std::vector<int> want(npoints, -1), c = start;
  for (bool moved = true; moved;) {
    moved = false;
    std::vector<long long> sum(k * nfeatures, 0), n(k, 0);
    for (int p = 0; p < npoints; p++) {
      int index = 0;
      double best = DBL_MAX;
      for (int j = 0; j < k; j++) {
        double d = 0;
        for (int f = 0; f < nfeatures; f++) d += pow(points[p * nfeatures + f] - c[j * nfeatures + f], 2.0);
        if (d < best) best = d, index = j;
      }
      moved |= want[p] != index;
      want[p] = index;
      n[index]++;
      for (int f = 0; f < nfeatures; f++) sum[index * nfeatures + f] += points[p * nfeatures + f];
    }
    for (int i = 0; i < k * nfeatures; i++)
      if (n[i / nfeatures]) c[i] = (int)(sum[i] / n[i / nfeatures]);
  }
  printf("%d points, %d clusters, %d loops, sizes", npoints, k, loops);
  for (int n : counts) printf(" %d", n);
  bool ok = want == member && c == centres;
  printf("\n%s\n", ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
