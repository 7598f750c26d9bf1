// title: k-means clustering with centroids in shared memory and sums added atomically
// features: atomics, shared_memory, dynamic_shared_memory, thread_indexing
// args: 2000 5

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <random>
#include <string>
#include <vector>

struct Data {
  explicit Data(int size) : size(size), bytes(size * sizeof(float)) {
    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
    cudaMemset(x, 0, bytes);
    cudaMemset(y, 0, bytes);
  }
  Data(const std::vector<float>& h_x, const std::vector<float>& h_y) : Data(h_x.size()) {
    cudaMemcpy(x, h_x.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(y, h_y.data(), bytes, cudaMemcpyHostToDevice);
  }
  void clear() {
    cudaMemset(x, 0, bytes);
    cudaMemset(y, 0, bytes);
  }
  ~Data() {
    cudaFree(x);
    cudaFree(y);
  }
  float* x{nullptr};
  float* y{nullptr};
  int size{0};
  int bytes{0};
};

__device__ float squared_l2_distance(float x_1, float y_1, float x_2, float y_2) {
  return (x_1 - x_2) * (x_1 - x_2) + (y_1 - y_2) * (y_1 - y_2);
}

// Sums per block in shared memory, then one atomic per block, cluster and coordinate. Coordinates are multiples of 1/8,
// so that sums are exact in any order.
__global__ void assign_clusters(const float* __restrict__ data_x, const float* __restrict__ data_y, int data_size,
                                const float* __restrict__ means_x, const float* __restrict__ means_y, float* new_sums_x,
                                float* new_sums_y, int k, int* counts, int* membership) {
  extern __shared__ float shared_means[];  // k of x, k of y, k sums of x, k sums of y, k counts
  float* sums_x = shared_means + 2 * k;
  float* sums_y = sums_x + k;
  int* local_counts = reinterpret_cast<int*>(sums_y + k);
  for (int c = threadIdx.x; c < k; c += blockDim.x) {
    shared_means[c] = means_x[c];
    shared_means[k + c] = means_y[c];
    sums_x[c] = sums_y[c] = 0.0f;
    local_counts[c] = 0;
  }
  __syncthreads();

  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < data_size) {
    const float x = data_x[index], y = data_y[index];
    float best_distance = FLT_MAX;
    int best_cluster = 0;
    for (int cluster = 0; cluster < k; ++cluster) {
      const float distance = squared_l2_distance(x, y, shared_means[cluster], shared_means[k + cluster]);
      if (distance < best_distance) {
        best_distance = distance;
        best_cluster = cluster;
      }
    }
    membership[index] = best_cluster;
    atomicAdd(&sums_x[best_cluster], x);
    atomicAdd(&sums_y[best_cluster], y);
    atomicAdd(&local_counts[best_cluster], 1);
  }
  __syncthreads();
  for (int c = threadIdx.x; c < k; c += blockDim.x) {
    atomicAdd(&new_sums_x[c], sums_x[c]);
    atomicAdd(&new_sums_y[c], sums_y[c]);
    atomicAdd(&counts[c], local_counts[c]);
  }
}

__global__ void compute_new_means(float* means_x, float* means_y, const float* new_sum_x, const float* new_sum_y,
                                  const int* counts) {
  const int cluster = threadIdx.x;
  const int count = max(1, counts[cluster]);
  means_x[cluster] = new_sum_x[cluster] / count;
  means_y[cluster] = new_sum_y[cluster] / count;
}

int main(int argc, const char* argv[]) {
  const int n = argc > 1 ? std::stoi(argv[1]) : 2000;
  const int k = argc > 2 ? std::stoi(argv[2]) : 5;
  const int number_of_iterations = 8;

  std::vector<float> h_x, h_y;
  std::mt19937 rng(42);
  for (int i = 0; i < n; i++) {  // k clouds, far apart
    const int cloud = i % k;
    h_x.push_back(20.0f * cloud + float(rng() % 64) / 8);
    h_y.push_back(15.0f * (cloud % 2) + float(rng() % 64) / 8);
  }
  std::vector<float> start_x(h_x.begin(), h_x.begin() + k), start_y(h_y.begin(), h_y.begin() + k);
  Data d_data(h_x, h_y), d_means(start_x, start_y), d_sums(k);
  int *d_counts, *d_membership;
  cudaMalloc(&d_counts, k * sizeof(int));
  cudaMalloc(&d_membership, n * sizeof(int));

  const int threads = 128, blocks = (n + threads - 1) / threads;
  for (int iteration = 0; iteration < number_of_iterations; ++iteration) {
    cudaMemset(d_counts, 0, k * sizeof(int));
    d_sums.clear();
    assign_clusters<<<blocks, threads, 5 * k * sizeof(float)>>>(d_data.x, d_data.y, d_data.size, d_means.x, d_means.y,
                                                                d_sums.x, d_sums.y, k, d_counts, d_membership);
    compute_new_means<<<1, k>>>(d_means.x, d_means.y, d_sums.x, d_sums.y, d_counts);
  }
  std::vector<float> mean_x(k), mean_y(k);
  std::vector<int> counts(k), membership(n);
  cudaMemcpy(mean_x.data(), d_means.x, d_means.bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(mean_y.data(), d_means.y, d_means.bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(counts.data(), d_counts, k * sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(membership.data(), d_membership, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(d_counts);
  cudaFree(d_membership);
  if (cudaError_t status = cudaGetLastError()) {
    std::cerr << cudaGetErrorString(status) << std::endl;
    return 1;
  }

  // The same in double
  std::vector<double> cx(start_x.begin(), start_x.end()), cy(start_y.begin(), start_y.end());
  std::vector<int> belongs(n);
  for (int iteration = 0; iteration < number_of_iterations; ++iteration) {
    std::vector<double> sx(k, 0), sy(k, 0), count(k, 0);
    for (int i = 0; i < n; i++) {
      int best = 0;
      for (int c = 1; c < k; c++)
        if (std::hypot(h_x[i] - cx[c], h_y[i] - cy[c]) < std::hypot(h_x[i] - cx[best], h_y[i] - cy[best])) best = c;
      belongs[i] = best;
      sx[best] += h_x[i], sy[best] += h_y[i], count[best]++;
    }
    for (int c = 0; c < k; c++) cx[c] = sx[c] / std::max(1.0, count[c]), cy[c] = sy[c] / std::max(1.0, count[c]);
  }
  bool ok = belongs == membership;
  std::cout << std::fixed << std::setprecision(2);
  for (int c = 0; c < k; c++) {
    std::cout << "cluster " << c << ": " << counts[c] << " points, mean (" << mean_x[c] << ", " << mean_y[c] << ")\n";
    ok = ok && std::abs(cx[c] - mean_x[c]) < 1e-3 && std::abs(cy[c] - mean_y[c]) < 1e-3;
  }
  std::cout << (ok ? "PASSED" : "FAILED") << std::endl;
  return ok ? 0 : 1;
}
