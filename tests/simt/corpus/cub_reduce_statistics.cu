// title: Statistics of a signal with cub::DeviceReduce
// features: cub_device
// args: 5000
#include <cub/cub.cuh>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(expression)                                                                          \
  do {                                                                                                  \
    const cudaError_t status = (expression);                                                            \
    if (status != cudaSuccess) {                                                                        \
      std::fprintf(stderr, "%s failed in line %d: %s\n", #expression, __LINE__, cudaGetErrorString(status)); \
      std::exit(EXIT_FAILURE);                                                                          \
    }                                                                                                   \
  } while (false)

// What one pass needs for mean and variance.
struct Moments {
  long long count, sum, squares;
  int least, most;
};

struct ToMoments {
  __host__ __device__ Moments operator()(int x) const { return {1, x, (long long)x * x, x, x}; }
};

struct Combine {
  __host__ __device__ Moments operator()(const Moments& a, const Moments& b) const {
    return {a.count + b.count, a.sum + b.sum, a.squares + b.squares, a.least < b.least ? a.least : b.least,
            a.most > b.most ? a.most : b.most};
  }
};

struct ExclusiveOr {
  __host__ __device__ int operator()(int a, int b) const { return a ^ b; }
};

__global__ void make_signal(int* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned h = i * 2654435761u;
    h ^= h >> 15;
    x[i] = (int)(h % 2001u) - 1000;
  }
}

// Owns the temporary storage of a call and grows when another call needs more.
class Temporary {
 public:
  ~Temporary() { cudaFree(storage_); }
  template <class Call>
  void run(Call call) {
    std::size_t needed = 0;
    CUDA_CHECK(call(nullptr, needed));
    if (needed > size_) {
      CUDA_CHECK(cudaFree(storage_));
      CUDA_CHECK(cudaMalloc(&storage_, needed));
      size_ = needed;
    }
    CUDA_CHECK(call(storage_, needed));
  }

 private:
  void* storage_ = nullptr;
  std::size_t size_ = 0;
};

template <class T>
T fetch(const T* pointer) {
  T value;
  CUDA_CHECK(cudaMemcpy(&value, pointer, sizeof(T), cudaMemcpyDeviceToHost));
  return value;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 4096;
  int *x, *result, *index;
  Moments* moments;
  CUDA_CHECK(cudaMalloc(&x, n * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&result, sizeof(int)));
  CUDA_CHECK(cudaMalloc(&index, sizeof(int)));
  CUDA_CHECK(cudaMalloc(&moments, sizeof(Moments)));
  make_signal<<<8, 128>>>(x, n);
  CUDA_CHECK(cudaGetLastError());

  Temporary temporary;
  temporary.run([&](void* p, std::size_t& bytes) { return cub::DeviceReduce::Sum(p, bytes, x, result, n); });
  const int sum = fetch(result);
  temporary.run([&](void* p, std::size_t& bytes) { return cub::DeviceReduce::Min(p, bytes, x, result, n); });
  const int least = fetch(result);
  temporary.run([&](void* p, std::size_t& bytes) { return cub::DeviceReduce::ArgMax(p, bytes, x, result, index, n); });
  const int most = fetch(result), where = fetch(index);
  const Moments none = {0, 0, 0, 1 << 30, -(1 << 30)};
  temporary.run([&](void* p, std::size_t& bytes) {
    return cub::DeviceReduce::TransformReduce(p, bytes, x, moments, n, Combine(), ToMoments(), none);
  });
  const Moments m = fetch(moments);
  // The first few only, by an operator of our own.
  temporary.run([&](void* p, std::size_t& bytes) {
    return cub::DeviceReduce::Reduce(p, bytes, x, result, 20, ExclusiveOr(), 7);
  });
  const int folded = fetch(result);

  std::vector<int> host(n);
  CUDA_CHECK(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  long long sum_ref = 0, squares_ref = 0;
  int least_ref = host[0], where_ref = 0, folded_ref = 7;
  for (int i = 0; i < n; ++i) {
    sum_ref += host[i];
    squares_ref += (long long)host[i] * host[i];
    if (host[i] < least_ref) least_ref = host[i];
    if (host[i] > host[where_ref]) where_ref = i;
    if (i < 20) folded_ref ^= host[i];
  }
  const double mean = (double)m.sum / m.count;
  std::printf("n %lld, sum %d, mean %.4f, deviation %.4f\n", m.count, sum, mean,
              std::sqrt((double)m.squares / m.count - mean * mean));
  std::printf("from %d to %d, first at %d\n", least, most, where);
  const bool ok = sum == sum_ref && m.sum == sum_ref && m.squares == squares_ref && m.count == n &&
                  least == least_ref && m.least == least_ref && most == host[where_ref] && m.most == most &&
                  where == where_ref && folded == folded_ref;
  CUDA_CHECK(cudaFree(x));
  CUDA_CHECK(cudaFree(result));
  CUDA_CHECK(cudaFree(index));
  CUDA_CHECK(cudaFree(moments));
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
