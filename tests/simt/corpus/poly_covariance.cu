// title: Correlation and covariance matrices of a data set, mean and deviation first
// features: two_dimensional_grids, reductions, templates
// args: 60 90

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#define CHECK_ERROR(where)                                                            \
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) {                 \
    std::cerr << where << ": " << cudaGetErrorString(error) << std::endl;             \
    std::exit(EXIT_FAILURE);                                                          \
  }

#define EPS 0.005f

// data: n points (rows) of m variables (columns)
__global__ void mean_kernel(int m, int n, float* mean, const float* data) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < m) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += data[i * m + j];
    mean[j] = sum / n;
  }
}

__global__ void std_kernel(int m, int n, const float* mean, float* stddev, const float* data) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < m) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += (data[i * m + j] - mean[j]) * (data[i * m + j] - mean[j]);
    float s = sqrtf(sum / n);
    stddev[j] = s <= EPS ? 1.0f : s;  // a constant variable
  }
}

template <bool Scale>
__global__ void center_kernel(int m, int n, const float* mean, const float* stddev, float* data) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < n && j < m) {
    float v = data[i * m + j] - mean[j];
    if (Scale) v /= sqrtf((float)n) * stddev[j];
    data[i * m + j] = v;
  }
}

// The upper triangle; both halves are written.
__global__ void products_kernel(int m, int n, float divisor, float* out, const float* data) {
  int j1 = blockIdx.y * blockDim.y + threadIdx.y, j2 = blockIdx.x * blockDim.x + threadIdx.x;
  if (j1 >= m || j2 >= m || j2 < j1) return;
  float sum = 0.0f;
  for (int i = 0; i < n; i++) sum += data[i * m + j1] * data[i * m + j2];
  out[j1 * m + j2] = sum / divisor;
  if (j1 != j2) out[j2 * m + j1] = sum / divisor;
}

int main(int argc, char** argv) {
  const int m = argc > 1 ? std::atoi(argv[1]) : 60, n = argc > 2 ? std::atoi(argv[2]) : 90;
  std::vector<float> data(n * m), corr(m * m), cov(m * m);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) data[i * m + j] = j % 20 == 7 ? 3.0f : (float)((i * (j + 1)) % 17) / 4 + 0.01f * j * i;
  float *d_data, *d_mean, *d_std, *d_out;
  cudaMalloc(&d_data, data.size() * sizeof(float));
  cudaMalloc(&d_mean, m * sizeof(float));
  cudaMalloc(&d_std, m * sizeof(float));
  cudaMalloc(&d_out, m * m * sizeof(float));
  CHECK_ERROR("allocation");
  dim3 line(64), lines((m + 63) / 64), block(16, 8), all((m + 15) / 16, (n + 7) / 8), square((m + 15) / 16, (m + 7) / 8);
  for (int kind = 0; kind < 2; kind++) {
    cudaMemcpy(d_data, data.data(), data.size() * sizeof(float), cudaMemcpyHostToDevice);
    mean_kernel<<<lines, line>>>(m, n, d_mean, d_data);
    std_kernel<<<lines, line>>>(m, n, d_mean, d_std, d_data);
    if (kind == 0)
      center_kernel<true><<<all, block>>>(m, n, d_mean, d_std, d_data);
    else
      center_kernel<false><<<all, block>>>(m, n, d_mean, d_std, d_data);
    products_kernel<<<square, block>>>(m, n, kind == 0 ? 1.0f : n - 1.0f, d_out, d_data);
    CHECK_ERROR("kernels");
    cudaMemcpy((kind == 0 ? corr : cov).data(), d_out, m * m * sizeof(float), cudaMemcpyDeviceToHost);
    CHECK_ERROR("copy");
  }
  cudaFree(d_data);
  cudaFree(d_mean);
  cudaFree(d_std);
  cudaFree(d_out);
  CHECK_ERROR("free");

  std::vector<double> mean(m, 0), dev(m, 0);
  for (int j = 0; j < m; j++) {
    for (int i = 0; i < n; i++) mean[j] += data[i * m + j] / (double)n;
    for (int i = 0; i < n; i++) dev[j] += pow(data[i * m + j] - mean[j], 2) / n;
    dev[j] = sqrt(dev[j]) <= EPS ? 1 : sqrt(dev[j]);
  }
  double worst = 0, sum = 0;
  for (int a = 0; a < m; a++)
    for (int b = 0; b < m; b++) {
      double s = 0;
      for (int i = 0; i < n; i++) s += (data[i * m + a] - mean[a]) * (data[i * m + b] - mean[b]);
      worst = fmax(worst, fabs(s / (n - 1) - cov[a * m + b]) / 10);
      worst = fmax(worst, fabs(s / n / (dev[a] * dev[b]) - corr[a * m + b]));
      sum += corr[a * m + b];
    }
  printf("%d variables: corr[0][1] = %.2f, cov[0][1] = %.2f, sum of correlations %.0f\n", m, corr[1], cov[1], sum);
  std::cout << (worst < 1e-4 ? "PASSED" : "FAILED") << std::endl;
  return worst < 1e-4 ? 0 : 1;
}
