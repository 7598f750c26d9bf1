// title: A sparse matrix in CSR form from unordered triplets: radix sort, run lengths, prefix sums
// features: cub_device, sparse
#include <cub/cub.cuh>
#include <cuda/std/functional>

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

inline void ensure(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

template <typename T>
class Buffer {
  T* data_ = nullptr;
  std::size_t size_;

 public:
  explicit Buffer(std::size_t n) : size_(n) { ensure(cudaMalloc(&data_, n * sizeof(T)), "cudaMalloc"); }
  explicit Buffer(const std::vector<T>& from) : Buffer(from.size()) {
    ensure(cudaMemcpy(data_, from.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "upload");
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data_); }
  T* get() { return data_; }
  std::vector<T> download(std::size_t n) const {
    std::vector<T> host(n);
    ensure(cudaMemcpy(host.data(), data_, n * sizeof(T), cudaMemcpyDeviceToHost), "download");
    return host;
  }
};

// Calls a device-wide function twice: for the size, and with the storage.
template <typename F>
void with_storage(F&& f) {
  std::size_t bytes = 0;
  ensure(f(nullptr, bytes), "size");
  Buffer<char> storage(bytes);
  ensure(f(storage.get(), bytes), "call");
}

struct Triplet {
  int row, col;
  float value;
};

__global__ void pack(const Triplet* t, unsigned long long* keys, float* values, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    keys[i] = (unsigned long long)t[i].row << 32 | (unsigned)t[i].col;
    values[i] = t[i].value;
  }
}

__global__ void unpack(const unsigned long long* keys, int* rows, int* cols, const int* n) {
  for (int i = threadIdx.x; i < *n; i += blockDim.x) {
    rows[i] = (int)(keys[i] >> 32);
    cols[i] = (int)(unsigned)keys[i];
  }
}

__global__ void count_rows(const int* rows, const int* n, int* counts) {
  for (int i = threadIdx.x; i < *n; i += blockDim.x) atomicAdd(&counts[rows[i]], 1);
}

__global__ void multiply(const int* offsets, const int* cols, const float* values, const float* x, float* y, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int k = offsets[r]; k < offsets[r + 1]; ++k) sum += values[k] * x[cols[k]];
  y[r] = sum;
}

}  // namespace

int main() try {
  const int rows = 120, cols = 90, entries = 1500;
  std::vector<Triplet> triplets(entries);
  unsigned state = 5;
  auto random = [&state](unsigned below) { return (state = state * 1664525u + 1013904223u) / 65536u % below; };
  for (auto& t : triplets) t = {(int)random(rows), (int)random(cols), (float)random(9) - 4.0f};

  Buffer<Triplet> d_triplets(triplets);
  Buffer<unsigned long long> keys(entries), sorted(entries), unique(entries);
  Buffer<float> values(entries), sorted_values(entries), sums(entries);
  Buffer<int> count(1), row_of(entries), col_of(entries), row_counts(rows + 1), offsets(rows + 1);
  pack<<<(entries + 255) / 256, 256>>>(d_triplets.get(), keys.get(), values.get(), entries);
  ensure(cudaGetLastError(), "pack");

  with_storage([&](void* p, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(p, bytes, keys.get(), sorted.get(), values.get(), sorted_values.get(),
                                           entries, 0, 40);
  });
  // Several entries at one place are added up.
  with_storage([&](void* p, std::size_t& bytes) {
    return cub::DeviceReduce::ReduceByKey(p, bytes, sorted.get(), unique.get(), sorted_values.get(), sums.get(),
                                          count.get(), cuda::std::plus<>{}, entries);
  });
  unpack<<<1, 128>>>(unique.get(), row_of.get(), col_of.get(), count.get());
  ensure(cudaMemset(row_counts.get(), 0, (rows + 1) * sizeof(int)), "memset");
  count_rows<<<1, 128>>>(row_of.get(), count.get(), row_counts.get());
  with_storage([&](void* p, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(p, bytes, row_counts.get(), offsets.get(), rows + 1);
  });

  std::vector<float> x(cols);
  for (int c = 0; c < cols; ++c) x[c] = (float)(c % 7 - 3);
  Buffer<float> d_x(x), y(rows);
  multiply<<<2, 64>>>(offsets.get(), col_of.get(), sums.get(), d_x.get(), y.get(), rows);
  ensure(cudaDeviceSynchronize(), "multiply");

  const int nonzeros = count.download(1)[0];
  const auto got = y.download(rows);
  const auto starts = offsets.download(rows + 1);

  std::vector<double> dense(rows * cols), expected(rows);
  std::vector<bool> used(rows * cols);
  for (const auto& t : triplets) {
    dense[t.row * cols + t.col] += t.value;
    used[t.row * cols + t.col] = true;
  }
  int wrong = 0;
  long long checksum = 0;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) expected[r] += dense[r * cols + c] * x[c];
    if (got[r] != expected[r]) ++wrong;
    checksum += (long long)got[r] * (r + 1);
  }
  const bool ok = wrong == 0 && nonzeros == std::count(used.begin(), used.end(), true) && starts[rows] == nonzeros;
  std::cout << entries << " triplets, " << nonzeros << " places, checksum " << checksum << ", " << wrong << " wrong\n"
            << (ok ? "PASSED" : "FAILED") << '\n';
  return ok ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
