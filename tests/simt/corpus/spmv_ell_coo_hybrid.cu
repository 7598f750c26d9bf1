// title: sparse matrix times vector in the formats COO, ELL and hybrid ELL-COO
// features: sparse_matrices, atomics, classes_on_host, templates

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sparse {

template <typename T>
class device_vector {
  T* data_ = nullptr;
  size_t size_ = 0;

 public:
  device_vector() = default;
  explicit device_vector(const std::vector<T>& host) { assign(host); }
  device_vector(device_vector&& other) noexcept { swap(other); }
  device_vector& operator=(device_vector&& other) noexcept {
    swap(other);
    return *this;
  }
  ~device_vector() {
    if (data_) cudaFree(data_);
  }
  void swap(device_vector& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  void assign(const std::vector<T>& host) {
    if (data_) cudaFree(data_);
    data_ = nullptr;
    size_ = host.size();
    if (size_ == 0) return;
    if (cudaMalloc((void**)&data_, size_ * sizeof(T)) != cudaSuccess) throw std::runtime_error("cudaMalloc");
    if (cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice) != cudaSuccess)
      throw std::runtime_error("cudaMemcpy");
  }
  std::vector<T> host() const {
    std::vector<T> h(size_);
    if (cudaMemcpy(h.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost) != cudaSuccess)
      throw std::runtime_error("cudaMemcpy back");
    return h;
  }
  T* data() const { return data_; }
  size_t size() const { return size_; }
};

template <typename T>
__global__ void coo_kernel(int nnz, const int* row, const int* col, const T* value, const T* x, T* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < nnz) atomicAdd(&y[row[i]], value[i] * x[col[i]]);
}

// Column-major with padding, so that neighbouring threads read neighbouring words.
template <typename T>
__global__ void ell_kernel(int rows, int width, const int* lengths, const int* col, const T* value, const T* x, T* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  T sum = 0;
  for (int t = 0; t < min(lengths[row], width); ++t) {
    int i = t * rows + row;
    sum += x[col[i]] * value[i];
  }
  y[row] = sum;
}

template <typename T>
struct Coo {
  std::vector<int> row, col;
  std::vector<T> value;
  void add(int r, int c, T v) {
    row.push_back(r);
    col.push_back(c);
    value.push_back(v);
  }
  size_t nnz() const { return value.size(); }
};

// The first `width` elements of each row in ELL, the others in COO. Width 0: all in COO.
template <typename T>
class Hybrid {
 public:
  Hybrid(int rows, const Coo<T>& coo, int width) : rows_(rows), width_(width) {
    std::vector<int> lengths(rows, 0), col(size_t(rows) * width, 0);
    std::vector<T> value(col.size(), T(0));
    Coo<T> rest;
    for (size_t i = 0; i < coo.nnz(); i++) {
      int& at = lengths[coo.row[i]];
      if (at < width) {
        col[at * rows + coo.row[i]] = coo.col[i];
        value[at * rows + coo.row[i]] = coo.value[i];
        at++;
      } else {
        rest.add(coo.row[i], coo.col[i], coo.value[i]);
      }
    }
    lengths_.assign(lengths);
    col_.assign(col);
    value_.assign(value);
    rest_row_ = device_vector<int>(rest.row);
    rest_col_ = device_vector<int>(rest.col);
    rest_value_ = device_vector<T>(rest.value);
  }
  size_t in_coo() const { return rest_value_.size(); }
  std::vector<T> operator*(const std::vector<T>& x) const {
    device_vector<T> dx(x), dy(std::vector<T>(rows_, T(0)));
    const int block = 96;
    if (width_)
      ell_kernel<T><<<(rows_ + block - 1) / block, block>>>(rows_, width_, lengths_.data(), col_.data(), value_.data(),
                                                            dx.data(), dy.data());
    if (int n = in_coo())
      coo_kernel<<<(n + block - 1) / block, block>>>(n, rest_row_.data(), rest_col_.data(), rest_value_.data(),
                                                     dx.data(), dy.data());
    if (cudaGetLastError() != cudaSuccess) throw std::runtime_error("launch");
    return dy.host();
  }

 private:
  int rows_, width_;
  device_vector<int> lengths_, col_, rest_row_, rest_col_;
  device_vector<T> value_, rest_value_;
};

}  // namespace sparse

template <typename T>
bool test(const char* type) {
  const int rows = 300, columns = 257;
  sparse::Coo<T> coo;
  std::vector<T> x(columns);
  std::vector<double> expected(rows, 0.0);
  std::map<int, int> histogram;
  for (int c = 0; c < columns; c++) x[c] = T(c % 8) / 4;
  for (int r = 0; r < rows; r++) {
    int length = (r * r) % 7 + (r % 29 == 0 ? 60 : 0);
    histogram[length]++;
    for (int e = 0; e < length; e++) {
      int c = (r + e * 4) % columns;
      T v = T((r * 5 + e) % 16 - 8);
      coo.add(r, c, v);
      expected[r] += double(v) * x[c];
    }
  }
  bool ok = true;
  for (int width : {0, 3, 6, 66}) {
    sparse::Hybrid<T> matrix(rows, coo, width);
    std::vector<T> y = matrix * x;
    int wrong = 0;
    double sum = 0;
    for (int r = 0; r < rows; r++) {
      wrong += std::fabs(double(y[r]) - expected[r]) > 1e-6;
      sum += y[r];
    }
    std::printf("%s, ELL width %2d: %zu of %zu elements in COO, sum of y %.2f, %d wrong\n", type, width,
                matrix.in_coo(), coo.nnz(), sum, wrong);
    ok = ok && !wrong;
  }
  std::printf("longest row: %d\n", histogram.rbegin()->first);
  return ok;
}

int main() try {
  bool ok = test<float>("float");
  ok = test<double>("double") && ok;
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
} catch (const std::exception& e) {
  std::printf("%s\nFAILED\n", e.what());
  return 1;
}
