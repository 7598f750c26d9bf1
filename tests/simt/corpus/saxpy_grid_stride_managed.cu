// title: saxpy and friends with grid-stride loops on managed memory
// features: managed_memory, grid_stride_loops, templates

#include <cmath>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

using namespace std;

inline void gpuCheck(cudaError_t code, const char *file, int line) {
  if (code != cudaSuccess) throw runtime_error(string(file) + ":" + to_string(line) + ": " + cudaGetErrorString(code));
}
#define GPU(call) gpuCheck((call), __FILE__, __LINE__)

struct ManagedDeleter {
  void operator()(void *p) const { cudaFree(p); }
};
template <typename T>
using managed_ptr = unique_ptr<T[], ManagedDeleter>;

template <typename T>
managed_ptr<T> make_managed(size_t n) {
  T *p = nullptr;
  GPU(cudaMallocManaged(&p, n * sizeof(T)));
  return managed_ptr<T>(p);
}

template <typename T>
__global__ void init(int n, T *x, T *y) {
  int index = threadIdx.x + blockIdx.x * blockDim.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < n; i += stride) {
    x[i] = static_cast<T>(1 + i % 3);
    y[i] = static_cast<T>(2);
  }
}

template <typename T>
__global__ void axpy(int n, T a, const T *__restrict__ x, T *__restrict__ y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = a * x[i] + y[i];
}

template <typename T, typename F>
__global__ void apply(int n, T *y, F f) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = f(y[i], i);
}

template <typename T>
struct ScaleAndShift {
  T scale, shift;
  __device__ T operator()(T value, int index) const { return value * scale + shift * (index & 1); }
};

template <typename T>
bool run(int n, const char *name) {
  auto x = make_managed<T>(n);
  auto y = make_managed<T>(n);

  int device = 0, processors = 0;
  GPU(cudaGetDevice(&device));
  GPU(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  const int blockSize = 128;
  const int blocks = min(2 * processors, (n + blockSize - 1) / blockSize);

  init<<<blocks, blockSize>>>(n, x.get(), y.get());
  axpy<<<blocks, blockSize>>>(n, T(3), x.get(), y.get());
  axpy<<<1, 32>>>(n, T(-1), x.get(), y.get());  // one warp strides over the whole array
  apply<<<blocks, blockSize>>>(n, y.get(), ScaleAndShift<T>{T(0.5), T(4)});
  GPU(cudaGetLastError());
  GPU(cudaDeviceSynchronize());

  double maxError = 0, sum = 0;
  for (int i = 0; i < n; i++) {
    double expected = ((3.0 - 1.0) * (1 + i % 3) + 2.0) * 0.5 + 4.0 * (i % 2);
    maxError = fmax(maxError, fabs(static_cast<double>(y[i]) - expected));
    sum += y[i];
  }
  cout << name << ": " << n << " elements, max error " << maxError << ", sum " << sum << '\n';
  return maxError == 0;
}

int main() {
  cout.precision(10);
  bool ok = true;
  try {
    for (int n : {1, 31, 1000, 20011}) {
      ok = run<float>(n, "float") && ok;
      ok = run<double>(n, "double") && ok;
    }
  } catch (const exception &e) {
    cerr << e.what() << endl;
    ok = false;
  }
  cout << (ok ? "PASSED" : "FAILED") << endl;
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
