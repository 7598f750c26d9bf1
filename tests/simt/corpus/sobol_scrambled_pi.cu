// title: Randomized quasi-Monte Carlo: pi by scrambled Sobol points, with an error estimate over replicas
// features: curand_device, quasi_random, warp_shuffles, structs
// flags: -lcurand
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <curand_kernel.h>

namespace qmc {

constexpr int kWarp = 32;

inline void require(cudaError_t status, const char* file, int line) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s(%d): %s\n", file, line, cudaGetErrorName(status));
  std::exit(2);
}
#define REQUIRE(call) ::qmc::require((call), __FILE__, __LINE__)

template <typename T>
class DeviceVector {
 public:
  explicit DeviceVector(std::size_t size) : size_(size) { REQUIRE(cudaMalloc(&data_, size * sizeof(T))); }
  explicit DeviceVector(const std::vector<T>& from) : DeviceVector(from.size()) {
    REQUIRE(cudaMemcpy(data_, from.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  ~DeviceVector() { cudaFree(data_); }
  T* data() { return data_; }
  std::vector<T> download() const {
    std::vector<T> host(size_);
    REQUIRE(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

struct Scramble {
  std::uint64_t x, y;
};

// One warp for each replica. The lanes share its points, each with a stretch of its own.
__global__ void estimate(unsigned long long* vectors, const Scramble* scrambles, int points_per_lane, double* estimates) {
  const int lane = threadIdx.x % kWarp;
  const int replica = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
  curandStateScrambledSobol64_t x, y;
  const unsigned long long first = 1ull * lane * points_per_lane;
  curand_init(vectors, scrambles[replica].x, first, &x);
  curand_init(vectors + 64, scrambles[replica].y, first, &y);
  double sum = 0;
  for (int i = 0; i < points_per_lane; ++i) {
    const double u = curand_uniform_double(&x), v = curand_uniform_double(&y);
    sum += 1.0 / (1.0 + u * u) + sqrt(1.0 - v * v);  // pi / 4 each
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
  if (lane == 0) estimates[replica] = 2 * sum / (kWarp * points_per_lane);
}

}  // namespace qmc

int main() {
  using namespace qmc;
  constexpr int replicas = 32, points_per_lane = 64, block = 128;

  curandDirectionVectors64_t* directions = nullptr;
  if (curandGetDirectionVectors64(&directions, CURAND_DIRECTION_VECTORS_64_JOEKUO6) != CURAND_STATUS_SUCCESS) return 2;
  std::vector<unsigned long long> two_dimensions(directions[0], directions[0] + 64);
  two_dimensions.insert(two_dimensions.end(), directions[1], directions[1] + 64);

  std::mt19937_64 engine(2024);
  std::vector<Scramble> shifts(replicas);
  for (Scramble& shift : shifts) {
    shift.x = engine();
    shift.y = engine();
  }

  DeviceVector<unsigned long long> vectors(two_dimensions);
  DeviceVector<Scramble> scrambles(shifts);
  DeviceVector<double> estimates(replicas);
  estimate<<<replicas * kWarp / block, block>>>(vectors.data(), scrambles.data(), points_per_lane, estimates.data());
  REQUIRE(cudaGetLastError());
  REQUIRE(cudaDeviceSynchronize());

  double mean = 0, squares = 0, worst = 0;
  for (double e : estimates.download()) {
    mean += e / replicas;
    squares += e * e / replicas;
    worst = std::max(worst, std::fabs(e - M_PI));
  }
  const double error = std::sqrt(std::max(0.0, squares - mean * mean) / (replicas - 1));
  std::printf("pi is about %.4f; each of %d replicas is within %s\n", mean, replicas, worst < 5e-3 ? "0.005" : "more");
  std::printf("standard error below 1e-4: %s\n", error < 1e-4 ? "yes" : "no");
  const bool passed = std::fabs(mean - M_PI) < 5e-4 && worst < 5e-3 && error < 1e-4;
  std::puts(passed ? "PASSED" : "FAILED");
  return passed ? 0 : 1;
}
