// title: tiled matrix product of any size with thread coarsening and dynamic shared memory
// features: shared_memory, matmul_tiled, dynamic_shared_memory, templates

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <random>
#include <vector>

namespace gemm {

constexpr int kTile = 16;
constexpr int kCoarse = 4;

class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t count) : count_(count) { check(cudaMalloc(&data_, count * sizeof(float))); }
  explicit DeviceBuffer(const std::vector<float>& host) : DeviceBuffer(host.size()) {
    check(cudaMemcpy(data_, host.data(), count_ * sizeof(float), cudaMemcpyHostToDevice));
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(data_); }

  float* get() { return data_; }
  const float* get() const { return data_; }
  std::vector<float> download() const {
    std::vector<float> host(count_);
    check(cudaMemcpy(host.data(), data_, count_ * sizeof(float), cudaMemcpyDeviceToHost));
    return host;
  }

  static void check(cudaError_t e) {
    if (e == cudaSuccess) return;
    std::cerr << cudaGetErrorName(e) << ": " << cudaGetErrorString(e) << std::endl;
    std::abort();
  }

 private:
  float* data_ = nullptr;
  size_t count_ = 0;
};

// A block computes kTile rows and kTile * COARSE columns of c.
template <int TILE, int COARSE>
__global__ void coarsened(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n,
                          int k) {
  extern __shared__ float tiles[];
  float* a_tile = tiles;                // TILE x TILE
  float* b_tile = tiles + TILE * TILE;  // TILE x TILE

  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty;
  const int first_column = blockIdx.x * TILE * COARSE + tx;

  float sums[COARSE];
#pragma unroll
  for (int s = 0; s < COARSE; ++s) sums[s] = 0.0f;

  for (int phase = 0; phase < (k + TILE - 1) / TILE; ++phase) {
    const int p = phase * TILE;
    a_tile[ty * TILE + tx] = (row < m && p + tx < k) ? a[row * k + p + tx] : 0.0f;
    for (int s = 0; s < COARSE; ++s) {
      const int column = first_column + s * TILE;
      b_tile[ty * TILE + tx] = (p + ty < k && column < n) ? b[(p + ty) * n + column] : 0.0f;
      __syncthreads();
#pragma unroll 4
      for (int e = 0; e < TILE; ++e) sums[s] += a_tile[ty * TILE + e] * b_tile[e * TILE + tx];
      __syncthreads();
    }
  }
  for (int s = 0; s < COARSE; ++s) {
    const int column = first_column + s * TILE;
    if (row < m && column < n) c[row * n + column] = sums[s];
  }
}

template <int COARSE>
std::vector<float> multiply(const DeviceBuffer& a, const DeviceBuffer& b, int m, int n, int k) {
  DeviceBuffer c(size_t(m) * n);
  const dim3 block(kTile, kTile);
  const dim3 grid((n + kTile * COARSE - 1) / (kTile * COARSE), (m + kTile - 1) / kTile);
  const size_t shared = 2 * kTile * kTile * sizeof(float);
  coarsened<kTile, COARSE><<<grid, block, shared>>>(a.get(), b.get(), c.get(), m, n, k);
  DeviceBuffer::check(cudaGetLastError());
  return c.download();
}

}  // namespace gemm

int main() {
  bool all = true;
  const std::array<int, 3> shapes[] = {{33, 70, 45}, {64, 64, 64}, {1, 100, 17}};
  for (auto [m, n, k] : shapes) {
    std::mt19937 random(m * 1000 + n);
    auto fill = [&random](std::vector<float>& v) {
      for (auto& x : v) x = static_cast<float>(static_cast<int>(random() % 9) - 4);
    };
    std::vector<float> a(m * k), b(k * n);
    fill(a);
    fill(b);
    std::vector<double> expected(m * n, 0.0);
    for (int i = 0; i < m; ++i)
      for (int e = 0; e < k; ++e)
        for (int j = 0; j < n; ++j) expected[i * n + j] += double(a[i * k + e]) * b[e * n + j];

    gemm::DeviceBuffer da(a), db(b);
    const auto one = gemm::multiply<1>(da, db, m, n, k);
    const auto four = gemm::multiply<gemm::kCoarse>(da, db, m, n, k);
    const bool good = std::equal(one.begin(), one.end(), expected.begin()) && one == four;
    long long checksum = 0;
    for (size_t i = 0; i < four.size(); ++i) checksum += static_cast<long long>(four[i]) * int64_t(i % 31 + 1);
    std::cout << std::setw(3) << m << " x" << std::setw(4) << n << " x" << std::setw(3) << k << "  checksum "
              << checksum << (good ? "  good" : "  BAD") << '\n';
    all &= good;
  }
  std::cout << (all ? "PASSED" : "FAILED") << '\n';
  return all ? 0 : 1;
}
