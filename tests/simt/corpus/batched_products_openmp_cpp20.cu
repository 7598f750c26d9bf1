// title: small matrix products in batches: OpenMP threads launch, and compute the reference, in C++20
// features: openmp, std_flags, alignment, templates, streams, vector_types
// flags: -std=c++20 -fopenmp

#include <omp.h>

#include <array>
#include <compare>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <ranges>
#include <span>
#include <vector>

template <class T>
concept Scalar = std::integral<T> || std::floating_point<T>;

struct Shape {
  int rows, cols;
  friend constexpr auto operator<=>(const Shape&, const Shape&) = default;
  [[nodiscard]] constexpr int size() const noexcept { return rows * cols; }
};

// 4 x 4 matrices, which a thread reads as four vectors of 16 bytes
template <Scalar T>
struct alignas(4 * sizeof(T)) Quad {
  T v[4];
};

template <Scalar T>
struct alignas(64) Matrix {
  Quad<T> row[4];
  static constexpr Shape shape{.rows = 4, .cols = 4};
};
static_assert(alignof(Matrix<std::int32_t>) == 64 && sizeof(Quad<float>) == 16);
static_assert(Matrix<float>::shape.size() == 16);

template <Scalar T>
__host__ __device__ constexpr Matrix<T> operator*(const Matrix<T>& a, const Matrix<T>& b) {
  Matrix<T> c{};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 4; ++k) c.row[i].v[j] += a.row[i].v[k] * b.row[k].v[j];
  return c;
}

// Each thread multiplies the matrices of a chain, from left to right.
template <Scalar T>
__global__ void chain_products(const Matrix<T>* in, Matrix<T>* out, int chains, int length) {
  const int chain = blockIdx.x * blockDim.x + threadIdx.x;
  if (chain >= chains) return;
  auto product = in[chain * length];
  for (int i = 1; i < length; ++i) product = product * in[chain * length + i];
  out[chain] = product;
}

void must(cudaError_t status, int line = __builtin_LINE()) {
  if (status == cudaSuccess) [[likely]] return;
  std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(status));
  std::exit(1);
}

template <Scalar T>
int compare(const char* name, int chains, int length, T scale) {
  std::vector<Matrix<T>> in(chains * length), got(chains), want(chains);
#pragma omp parallel for
  for (int m = 0; m < chains * length; ++m)
    for (int i = 0; i < 16; ++i) in[m].row[i / 4].v[i % 4] = static_cast<T>((m * 7 + i * 5) % 9 - 4) * scale;

  const int threads = 3;
  std::array<cudaStream_t, threads> streams{};
  for (auto& s : streams) must(cudaStreamCreate(&s));
  Matrix<T>*d_in, *d_out;
  must(cudaMalloc(&d_in, in.size() * sizeof(in[0])));
  must(cudaMalloc(&d_out, got.size() * sizeof(got[0])));
  int misaligned = reinterpret_cast<std::uintptr_t>(d_in) % 256 != 0;
  if (Matrix<T>::shape < Shape{4, 4}) return 1;

#pragma omp parallel num_threads(threads)
  {
    // a thread takes every third group of chains, and the host's part of it in the meantime
    const int self = omp_get_thread_num();
    const int group = 40;
    const auto stream = streams[self];
    for (int first = self * group; first < chains; first += omp_get_num_threads() * group) {
      const int count = std::min(group, chains - first);
      const std::span part{in.data() + first * length, static_cast<std::size_t>(count) * length};
      must(cudaMemcpyAsync(d_in + first * length, part.data(), part.size_bytes(), cudaMemcpyHostToDevice, stream));
      chain_products<<<(count + 31) / 32, 32, 0, stream>>>(d_in + first * length, d_out + first, count, length);
      must(cudaGetLastError());
      must(cudaMemcpyAsync(&got[first], d_out + first, count * sizeof(got[0]), cudaMemcpyDeviceToHost, stream));
      for (int c = 0; c < count; ++c) {
        const auto chain = part.subspan(c * length, length);
        want[first + c] = std::accumulate(chain.begin() + 1, chain.end(), chain.front(), std::multiplies<>{});
      }
      must(cudaStreamSynchronize(stream));
    }
  }
  int wrong = 0;
  double trace = 0;
#pragma omp parallel for reduction(+ : wrong, trace) schedule(guided)
  for (int c = 0; c < chains; ++c)
    for (int i = 0; i < 16; ++i) {
      const T a = got[c].row[i / 4].v[i % 4], b = want[c].row[i / 4].v[i % 4];
      wrong += a != b;
      if (i % 5 == 0) trace += static_cast<double>(a);
    }
  for (auto s : streams | std::views::reverse) must(cudaStreamDestroy(s));
  must(cudaFree(d_in));
  must(cudaFree(d_out));
  std::printf("%-6s %d chains of %d: traces %.0f\n", name, chains, length, trace);
  return wrong + misaligned;
}

int main() {
  // All values are integers, or halves, which floats hold exactly at these lengths.
  int wrong = compare<std::int32_t>("int", 250, 6, 1);
  wrong += compare<float>("float", 130, 4, 0.5f);
  wrong += compare<double>("double", 61, 7, 2.0);
  std::puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
