// title: Sparse matrix-vector products: CSR per thread, CSR per warp, ELLPACK column by column
// features: warp_shuffles, read_only_cache, sparse_formats, classes
// args: 600

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <vector>

#include <cuda_runtime.h>

template <typename F>
void attempt(F&& f, const char* what) {
  cudaError_t e = f();
  if (e != cudaSuccess) {
    std::cerr << what << " failed: " << cudaGetErrorString(e) << std::endl;
    std::exit(1);
  }
}
#define ATTEMPT(...) attempt([&] { return __VA_ARGS__; }, #__VA_ARGS__)

template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t n) : n_(n) { ATTEMPT(cudaMalloc(&p_, n * sizeof(T))); }
  explicit Buffer(const std::vector<T>& v) : Buffer(v.size()) { ATTEMPT(cudaMemcpy(p_, v.data(), n_ * sizeof(T), cudaMemcpyHostToDevice)); }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(p_); }
  operator T*() { return p_; }
  std::vector<T> fetch() const {
    std::vector<T> v(n_);
    ATTEMPT(cudaMemcpy(v.data(), p_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }

 private:
  T* p_ = nullptr;
  size_t n_;
};

__global__ void csrScalar(const double* __restrict__ val, const int* __restrict__ cols, const int* __restrict__ rows, const double* x, int n, double* out) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    double t = 0;
    for (int j = rows[row]; j < rows[row + 1]; j++) t += val[j] * __ldg(&x[cols[j]]);
    out[row] = t;
  }
}

__global__ void csrVector(const double* __restrict__ val, const int* __restrict__ cols, const int* __restrict__ rows, const double* x, int n, double* out) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= n) return;
  double t = 0;
  for (int j = rows[row] + lane; j < rows[row + 1]; j += 32) t += val[j] * __ldg(&x[cols[j]]);
  for (int d = 16; d; d >>= 1) t += __shfl_down_sync(0xffffffff, t, d);
  if (!lane) out[row] = t;
}

__global__ void ellpack(const double* __restrict__ val, const int* __restrict__ cols, const int* __restrict__ lengths, const double* x, int n, double* out) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  double t = 0;
  for (int k = 0, length = lengths[row]; k < length; k++) t += val[k * n + row] * __ldg(&x[cols[k * n + row]]);
  out[row] = t;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 600;
  std::vector<int> rows{0}, cols, lengths(n);
  std::vector<double> val, x(n);
  int widest = 0;
  for (int i = 0; i < n; i++) {
    x[i] = (i % 9 - 4) * 0.5;
    int length = 1 + (i * i) % 23 + (i % 50 == 0 ? 40 : 0);  // a few long rows
    for (int k = 0; k < length; k++) {
      cols.push_back((i + k * k * 7) % n);
      val.push_back(((i + 3 * k) % 8) * 0.25 - 1);
    }
    rows.push_back((int)cols.size());
    lengths[i] = length;
    widest = std::max(widest, length);
  }
  std::vector<double> ellVal((size_t)widest * n, 0.0);
  std::vector<int> ellCols((size_t)widest * n, 0);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < lengths[i]; k++) {
      ellVal[(size_t)k * n + i] = val[rows[i] + k];
      ellCols[(size_t)k * n + i] = cols[rows[i] + k];
    }
  std::vector<double> want(n, 0.0);
  for (int i = 0; i < n; i++)
    for (int j = rows[i]; j < rows[i + 1]; j++) want[i] += val[j] * x[cols[j]];
  bool ok = true;
  {
    Buffer<double> dVal(val), dX(x), dEllVal(ellVal), out(n);
    Buffer<int> dRows(rows), dCols(cols), dEllCols(ellCols), dLengths(lengths);
    for (int version = 0; version < 3; version++) {
      ATTEMPT(cudaMemset(out, 0xff, n * sizeof(double)));
      switch (version) {
        case 0: csrScalar<<<(n + 127) / 128, 128>>>(dVal, dCols, dRows, dX, n, out); break;
        case 1: csrVector<<<(n + 3) / 4, 128>>>(dVal, dCols, dRows, dX, n, out); break;
        default: ellpack<<<(n + 127) / 128, 128>>>(dEllVal, dEllCols, dLengths, dX, n, out);
      }
      ATTEMPT(cudaGetLastError());
      std::vector<double> got = out.fetch();
      double sum = 0;
      for (int i = 0; i < n; i++) {
        ok = ok && got[i] == want[i];  // multiples of 1/8: every order gives the same
        sum += got[i] * (i % 5);
      }
      const char* names[] = {"CSR, a thread a row", "CSR, a warp a row", "ELLPACK"};
      std::cout << std::left << std::setw(22) << names[version] << "weighted sum " << std::fixed << std::setprecision(3) << sum << "\n";
    }
  }
  std::cout << cols.size() << " values\n" << (ok ? "PASSED" : "FAILED") << std::endl;
  return ok ? 0 : 1;
}
