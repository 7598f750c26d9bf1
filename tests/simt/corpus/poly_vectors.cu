// title: Matrix-vector kernels: atax, bicg, mvt, gesummv and gemver
// features: function_pointers, double_precision, lambdas
// args: 150

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

using real = double;
using Vec = std::vector<real>;

inline void cu(cudaError_t e, const char* file, int line) {
  if (e != cudaSuccess) {
    std::fprintf(stderr, "%s:%d %s\n", file, line, cudaGetErrorString(e));
    std::exit(1);
  }
}
#define CU(x) cu(x, __FILE__, __LINE__)

constexpr int kBlock = 64;

// y (+)= alpha A x, a thread a row
__global__ void rowsKernel(int n, real alpha, const real* A, const real* x, real* y, bool add) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    real sum = add ? y[i] : 0;
    for (int j = 0; j < n; j++) sum += alpha * A[i * n + j] * x[j];
    y[i] = sum;
  }
}

// y (+)= alpha A^T x, a thread a column
__global__ void columnsKernel(int n, real alpha, const real* A, const real* x, real* y, bool add) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < n) {
    real sum = add ? y[j] : 0;
    for (int i = 0; i < n; i++) sum += alpha * A[i * n + j] * x[i];
    y[j] = sum;
  }
}

__global__ void rankTwoKernel(int n, real* A, const real* u1, const real* v1, const real* u2, const real* v2) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (j < n) A[i * n + j] += u1[i] * v1[j] + u2[i] * v2[j];
}

class Device {
 public:
  explicit Device(const Vec& v) : n(v.size()) {
    CU(cudaMalloc(&p, n * sizeof(real)));
    CU(cudaMemcpy(p, v.data(), n * sizeof(real), cudaMemcpyHostToDevice));
  }
  Device(const Device&) = delete;
  ~Device() { CU(cudaFree(p)); }
  Vec get() const {
    Vec v(n);
    CU(cudaMemcpy(v.data(), p, n * sizeof(real), cudaMemcpyDeviceToHost));
    return v;
  }
  real* p = nullptr;
  size_t n;
};

static Vec times(const Vec& A, const Vec& x, bool transposed) {
  const int n = (int)x.size();
  Vec y(n, 0);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) (transposed ? y[j] : y[i]) += A[i * n + j] * (transposed ? x[i] : x[j]);
  return y;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 150, blocks = (n + kBlock - 1) / kBlock;
  Vec A(n * n), B(n * n), x(n), y(n), u(n), v(n), zero(n, 0);
  for (int i = 0; i < n; i++) {
    x[i] = 1 + i * M_PI / n, y[i] = (i % 13) / 13.0, u[i] = (i % 7 - 3) / 7.0, v[i] = (i % 5) / 5.0;
    for (int j = 0; j < n; j++) A[i * n + j] = ((i + j) % n) / (5.0 * n), B[i * n + j] = (i * (j + 2) % n) / (real)n;
  }
  Device dA(A), dB(B), dx(x), dy(y), du(u), dv(v), out(zero), tmp(zero);
  const real alpha = 1.25, beta = 0.75;
  struct Case {
    const char* name;
    std::function<void()> device;
    std::function<Vec()> host;
  };
  const Case cases[] = {
      {"atax", [&] { rowsKernel<<<blocks, kBlock>>>(n, 1, dA.p, dx.p, tmp.p, false), columnsKernel<<<blocks, kBlock>>>(n, 1, dA.p, tmp.p, out.p, false); },
       [&] { return times(A, times(A, x, false), true); }},
      {"bicg", [&] { columnsKernel<<<blocks, kBlock>>>(n, 1, dB.p, dy.p, out.p, false), rowsKernel<<<blocks, kBlock>>>(n, 1, dB.p, dx.p, out.p, true); },
       [&] {
         Vec s = times(B, y, true), q = times(B, x, false);
         for (int i = 0; i < n; i++) s[i] += q[i];
         return s;
       }},
      {"gesummv", [&] { rowsKernel<<<blocks, kBlock>>>(n, alpha, dA.p, dx.p, out.p, false), rowsKernel<<<blocks, kBlock>>>(n, beta, dB.p, dx.p, out.p, true); },
       [&] {
         Vec a = times(A, x, false), b = times(B, x, false);
         for (int i = 0; i < n; i++) a[i] = alpha * a[i] + beta * b[i];
         return a;
       }},
      {"mvt", [&] { CU(cudaMemcpy(out.p, dy.p, n * sizeof(real), cudaMemcpyDeviceToDevice)), columnsKernel<<<blocks, kBlock>>>(n, 1, dA.p, dv.p, out.p, true); },
       [&] {
         Vec a = times(A, v, true);
         for (int i = 0; i < n; i++) a[i] += y[i];
         return a;
       }},
      {"gemver",
       [&] {
         rankTwoKernel<<<dim3(blocks, n), kBlock>>>(n, dA.p, du.p, dv.p, dy.p, dx.p);
         CU(cudaMemcpy(tmp.p, dx.p, n * sizeof(real), cudaMemcpyDeviceToDevice));
         columnsKernel<<<blocks, kBlock>>>(n, beta, dA.p, dy.p, tmp.p, true);
         rowsKernel<<<blocks, kBlock>>>(n, alpha, dA.p, tmp.p, out.p, false);
       },
       [&] {
         for (int i = 0; i < n; i++)
           for (int j = 0; j < n; j++) A[i * n + j] += u[i] * v[j] + y[i] * x[j];
         Vec t = times(A, y, true);
         for (int i = 0; i < n; i++) t[i] = x[i] + beta * t[i];
         Vec w = times(A, t, false);
         for (real& e : w) e *= alpha;
         return w;
       }}};
  bool ok = true;
  for (const Case& c : cases) {
    c.device();
    CU(cudaGetLastError());
    Vec got = out.get(), want = c.host();
    real sum = 0, worst = 0;
    for (int i = 0; i < n; i++) {
      sum += got[i] / n;
      worst = std::fmax(worst, std::fabs(got[i] - want[i]) / (1 + std::fabs(want[i])));
    }
    std::printf("%-8s mean %.4f%s\n", c.name, sum, worst < 1e-9 ? "" : "  wrong");
    ok = ok && worst < 1e-9;
  }
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
