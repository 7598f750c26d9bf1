// title: Price of an Asian option by Monte Carlo, one path a thread, with antithetic paths
// features: curand_device, cub, classes, templates
// args: 4096 24

#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <vector>

#include <cub/block/block_reduce.cuh>
#include <curand_kernel.h>

inline void throwOnError(cudaError_t status, const char* file, int line) {
  if (status != cudaSuccess) {
    std::ostringstream text;
    text << file << ":" << line << " " << cudaGetErrorName(status) << " - " << cudaGetErrorString(status);
    throw std::runtime_error(text.str());
  }
}
#define CUDA_TRY(expression) throwOnError((expression), __FILE__, __LINE__)

template <typename Real>
struct Option {
  Real spot, strike, rate, sigma, tenor;
  int steps;
};

template <typename Real>
class DeviceVector {
 public:
  explicit DeviceVector(std::size_t n) : size_(n) { CUDA_TRY(cudaMalloc(&data_, n * sizeof(Real))); }
  ~DeviceVector() { cudaFree(data_); }
  DeviceVector(DeviceVector&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  Real* data() { return data_; }
  std::vector<Real> toHost() const {
    std::vector<Real> host(size_);
    CUDA_TRY(cudaMemcpy(host.data(), data_, size_ * sizeof(Real), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  Real* data_ = nullptr;
  std::size_t size_;
};

constexpr int kThreads = 128;

// The mean of the geometric average has a closed form, so both averages are taken.
__global__ void pricePaths(Option<float> o, unsigned long long seed, int paths, double2* blockSums) {
  using Reduce = cub::BlockReduce<double, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  int id = blockIdx.x * kThreads + threadIdx.x;
  double arithmetic = 0, geometric = 0;
  if (id < paths) {
    curandStateMRG32k3a state;
    curand_init(seed, id, 0, &state);
    float dt = o.tenor / o.steps, drift = (o.rate - 0.5f * o.sigma * o.sigma) * dt, spread = o.sigma * sqrtf(dt);
    float logUp = logf(o.spot), logDown = logUp;
    double sumUp = 0, sumDown = 0, logsUp = 0, logsDown = 0;
    for (int i = 0; i < o.steps; i++) {
      float z = curand_normal(&state);
      logUp += drift + spread * z;
      logDown += drift - spread * z;
      sumUp += expf(logUp), sumDown += expf(logDown);
      logsUp += logUp, logsDown += logDown;
    }
    double discount = exp(-(double)o.rate * o.tenor);
    arithmetic = 0.5 * discount * (fmax(sumUp / o.steps - o.strike, 0.0) + fmax(sumDown / o.steps - o.strike, 0.0));
    geometric = 0.5 * discount * (fmax(exp(logsUp / o.steps) - o.strike, 0.0) + fmax(exp(logsDown / o.steps) - o.strike, 0.0));
  }
  double a = Reduce(storage).Sum(arithmetic);
  __syncthreads();
  double g = Reduce(storage).Sum(geometric);
  if (threadIdx.x == 0) blockSums[blockIdx.x] = make_double2(a, g);
}

static double cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

static double geometricPrice(const Option<double>& o) {
  double n = o.steps, dt = o.tenor / n, mean = std::log(o.spot) + (o.rate - 0.5 * o.sigma * o.sigma) * dt * (n + 1) / 2;
  double var = o.sigma * o.sigma * dt * (n + 1) * (2 * n + 1) / (6 * n), sd = std::sqrt(var);
  double d2 = (mean - std::log(o.strike)) / sd, d1 = d2 + sd;
  return std::exp(-o.rate * o.tenor) * (std::exp(mean + var / 2) * cdf(d1) - o.strike * cdf(d2));
}

int main(int argc, char** argv) {
  try {
    int paths = argc > 1 ? std::atoi(argv[1]) : 4096, steps = argc > 2 ? std::atoi(argv[2]) : 24;
    Option<float> option{40.0f, 35.0f, 0.03f, 0.20f, 1.0f / 3.0f, steps};
    int blocks = (paths + kThreads - 1) / kThreads;
    DeviceVector<double2> sums(blocks);
    pricePaths<<<blocks, kThreads>>>(option, 987654321ULL, paths, sums.data());
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cudaDeviceSynchronize());
    double arithmetic = 0, geometric = 0;
    for (const double2& s : sums.toHost()) arithmetic += s.x / paths, geometric += s.y / paths;
    Option<double> exact{40.0, 35.0, (double)0.03f, (double)0.20f, 1.0 / 3.0, steps};
    double golden = geometricPrice(exact);
    std::cout << std::fixed << std::setprecision(1) << "arithmetic " << arithmetic << ", geometric " << geometric
              << ", closed form of the geometric one " << golden << "\n";
    bool ok = std::fabs(geometric - golden) < 0.04 && arithmetic > geometric && arithmetic - geometric < 0.2;
    std::cout << (ok ? "PASSED" : "FAILED") << "\n";
    return ok ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 2;
  }
}
